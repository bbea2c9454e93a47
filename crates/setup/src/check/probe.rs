//! Probes side by side, each with an end.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::Finding;

/// All probes together end after this.
const LIMIT: Duration = Duration::from_secs(20);

/// Something to look at.
pub(crate) struct Probe {
    pub(super) id: &'static str,
    pub(super) subject: String,
    pub(super) look: Box<dyn FnOnce() -> Vec<Finding> + Send>,
}

impl Probe {
    pub(super) fn new(
        id: &'static str,
        subject: impl Into<String>,
        look: impl FnOnce() -> Vec<Finding> + Send + 'static,
    ) -> Self {
        Self { id, subject: subject.into(), look: Box::new(look) }
    }
}

/// Runs all probes at the same time and returns what they found, in their order. One that does not end in
/// time is a finding itself; its thread is left behind.
pub(crate) fn run_all(probes: Vec<Probe>) -> Vec<Finding> {
    run_all_within(probes, LIMIT)
}

fn run_all_within(probes: Vec<Probe>, limit: Duration) -> Vec<Finding> {
    let end = Instant::now() + limit;
    let (sender, receiver) = channel();
    let mut slots: Vec<_> = Vec::new();
    for (position, Probe { id, subject, look }) in probes.into_iter().enumerate() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            // Nobody listens any more once the limit is over.
            let _ = sender.send((position, look()));
        });
        slots.push((id, subject, None));
    }
    drop(sender);
    let left = || end.saturating_duration_since(Instant::now());
    // Ends when every probe has answered or died, or the time is over.
    while let Ok((position, findings)) = receiver.recv_timeout(left()) {
        slots[position].2 = Some(findings);
    }
    let findings = slots.into_iter().flat_map(|(id, subject, findings)| {
        findings.unwrap_or_else(|| {
            let message = format!("no answer within {} s", limit.as_secs());
            vec![
                Finding::error(id, &subject, message)
                    .hint("something here hangs; look at it first"),
            ]
        })
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe that hangs costs the limit once and is named; the others keep their answers and their order.
    #[test]
    fn a_hanging_probe_is_a_finding() {
        let (keep, hang) = channel::<()>();
        let probes = vec![
            Probe::new("hangs", "disk", move || {
                let _ = hang.recv();
                Vec::new()
            }),
            Probe::new("answers", "bmc", || vec![Finding::ok("answers", "bmc", "well")]),
            Probe::new("panics", "other", || panic!("a probe has a bug")),
        ];
        let findings = run_all_within(probes, Duration::from_secs(3));
        let ids: Vec<_> = findings.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!(ids, ["hangs", "answers", "panics"]);
        assert_eq!(findings[1].status, super::super::Status::Ok);
        assert_eq!(findings[0].status, super::super::Status::Error);
        drop(keep);
    }
}
