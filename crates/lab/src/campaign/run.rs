//! Doing a plan, step by step.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::audit::Audit;
use super::evidence::Evidence;
use super::hands::Hands;
use super::person;
use super::plan::{Plan, Step};
use super::replay::Replayed;
use super::report::{Recovery, Report, Violation};
use super::segment::{self, Segment};
use super::settle::{self, settle};
use crate::clients::Load;
use crate::error::Result;
use crate::events::now_us;
use crate::progress::Progress;
use crate::{Lab, LabConfig, Lifetime, Supervision};

/// How often the nodes' power is looked at while nothing is to be done.
const LOOK: Duration = Duration::from_millis(500);

/// What a campaign needs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What to do.
    pub plan: Plan,
    /// No step begins after this time.
    pub limit: Duration,
    /// The pair.
    pub lab: LabConfig,
    /// How its supervisor is started.
    pub supervision: Supervision,
    /// The load of the clients.
    pub load: Load,
    /// Where to keep what tells why. Must be there, and empty.
    pub directory: PathBuf,
    /// The command that does it again.
    pub again: String,
    /// Commands that are run in both nodes before the first step; deliberately broken builds are told their rule so.
    pub prepare: Vec<Vec<String>>,
    /// Decisions that replay differently do not end the campaign: the rules are broken on purpose.
    pub broken_rules: bool,
}

/// What was done in a step, and what came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done<'a> {
    time_us: u64,
    step: usize,
    did: &'a str,
    came_of_it: &'a str,
}

/// A campaign under way.
struct Campaign<'a> {
    settings: &'a Settings,
    lab: &'a Lab,
    progress: &'a dyn Progress,
    evidence: Evidence,
    hands: Hands<'a>,
    segment: Option<Segment>,
    /// The revision that the store must not fall below.
    floor: u64,
    replayed: Replayed,
    recoveries: Vec<Duration>,
    report: Report,
}

/// Starts a pair, does the plan to it, and tells what came of it. Errors are those of the lab; a promise that was
/// not kept is in the report.
pub fn run(settings: &Settings, progress: &dyn Progress) -> Result<Report> {
    let start = Instant::now();
    let lab = Lab::up(&settings.lab, &settings.supervision, Lifetime::OfCaller, progress)?;
    let evidence = Evidence::begin(&settings.directory, &lab);
    evidence.document("plan.json", &settings.plan)?;
    let report = Report {
        seed: settings.plan.seed,
        release: settings.lab.release.name().to_owned(),
        faults_planned: settings.plan.faults(),
        again: settings.again.clone(),
        ..Report::default()
    };
    let mut campaign = Campaign {
        settings,
        lab: &lab,
        progress,
        evidence,
        hands: Hands::new(&lab),
        segment: None,
        floor: 0,
        replayed: Replayed::default(),
        recoveries: Vec::new(),
        report,
    };
    campaign.prepare()?;
    let outcome = campaign.steps(start)?;
    let mut report = campaign.report;
    report.passed = outcome.is_ok();
    report.violation = outcome.err();
    report.duration_s = start.elapsed().as_secs_f64();
    report.recovery = recovery(campaign.recoveries);
    report.confirmations = campaign.hands.confirmations;
    report.decisions = campaign.replayed.decisions;
    campaign.evidence.document("report.json", &report)?;
    Ok(report)
}

fn recovery(mut times: Vec<Duration>) -> Recovery {
    times.sort();
    let seconds = |time: Option<&Duration>| time.map_or(0.0, Duration::as_secs_f64);
    Recovery {
        median_s: seconds(times.get(times.len() / 2)),
        max_s: seconds(times.last()),
        limit_s: settle::LIMIT.as_secs_f64(),
    }
}

impl Campaign<'_> {
    fn prepare(&mut self) -> Result<()> {
        let limit = settle::LIMIT;
        self.lab.wait_until("a protected pair", limit, || self.lab.missing_of_protection())?;
        for command in &self.settings.prepare {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            for node in self.lab.names() {
                let finished = self.lab.exec(node, &words, Duration::from_secs(30))?;
                if !finished.success() {
                    let what = "preparing it";
                    let said = finished.stderr;
                    return Err(crate::Error::Node { node: node.to_owned(), what, said });
                }
            }
        }
        Ok(())
    }

    /// Does the steps until the plan or the time ends, or a promise is not kept.
    fn steps(&mut self, start: Instant) -> Result<Result<(), Violation>> {
        let plan = &self.settings.plan;
        for (number, step) in plan.steps.iter().enumerate() {
            if start.elapsed() >= self.settings.limit {
                break;
            }
            let began_us = now_us();
            let outcome = self.one(number, step, began_us)?;
            self.report.steps += 1;
            self.report.faults += step.faults.len();
            for kind in &step.faults {
                *self.report.kinds.entry(kind.to_string()).or_default() += 1;
            }
            if let Err(violation) = outcome {
                self.report.failed_step = Some(format!("step {}: {}", number + 1, step.summary()));
                self.evidence.keep_all(self.lab, began_us);
                return Ok(Err(violation));
            }
        }
        let began_us = now_us();
        let judged = self.judge(false)?;
        if judged.is_err() {
            self.evidence.keep_all(self.lab, began_us);
        }
        Ok(judged)
    }

    fn one(&mut self, number: usize, step: &Step, began_us: u64) -> Result<Result<(), Violation>> {
        // A loss that somebody accepts is not to hide one that nobody did.
        if step.is_careless()
            && let Err(violation) = self.judge(false)?
        {
            return Ok(Err(violation));
        }
        self.begin_segment()?;
        self.progress.step(&format!(
            "step {} of {}: {}",
            number + 1,
            self.settings.plan.steps.len(),
            step.summary()
        ));
        if let Some(leader) = step.leader {
            self.hands.lead(leader);
        }
        self.hands.accepted.clear();
        self.hands.given_up.clear();
        if let Err(violation) = self.break_and_repair(number, step)? {
            return Ok(Err(violation));
        }
        let settled = settle(self.lab, &mut self.hands, step)?;
        // Also if it went wrong: what was decided before that is wanted then.
        let decisions = self.look_at_decisions(step)?;
        let took = match settled {
            Ok(took) => took,
            Err(violation) => return Ok(Err(violation)),
        };
        self.recoveries.push(took);
        let decisions = match decisions {
            Ok(decisions) => decisions,
            Err(violation) => return Ok(Err(violation)),
        };
        let audit = Audit { lab: self.lab, step, began_us, decisions: &decisions };
        let fencings = audit.fencings()?;
        self.report.fencings += fencings;
        if let Err(violation) = audit.check()? {
            return Ok(Err(violation));
        }
        if let Some(segment) = &mut self.segment {
            segment.faults += step.faults.len();
        }
        self.hands.forget_failures();
        let text = format!("  whole after {:.0} s, {fencings} fenced", took.as_secs_f64());
        self.progress.step(&text);
        let accepted = !self.hands.accepted.is_empty();
        if let Err(violation) = self.accepted_losses() {
            return Ok(Err(violation));
        }
        let full = self.segment.as_ref().is_some_and(|it| it.faults >= segment::FAULTS_MAX);
        if accepted || full { self.judge(accepted) } else { Ok(Ok(())) }
    }

    /// Does what the step says, at its times, and the repair at its end.
    fn break_and_repair(&mut self, number: usize, step: &Step) -> Result<Result<(), Violation>> {
        let start = Instant::now();
        let repair = super::Timed { at_ms: step.repair_ms, act: super::Act::Repair };
        for timed in step.acts.iter().chain([&repair]) {
            let at = Duration::from_millis(timed.at_ms);
            while let Some(left) = at.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
                if let Some(violation) = settle::mutual_kill(&self.lab.status()?, step) {
                    return Ok(Err(violation));
                }
                std::thread::sleep(left.min(LOOK));
            }
            let time_us = now_us();
            let came_of_it = self.hands.perform(&timed.act)?;
            let did = timed.act.to_string();
            let (did, came_of_it) = (did.as_str(), came_of_it.as_str());
            let done = Done { time_us, step: number + 1, did, came_of_it };
            self.evidence.add("done.jsonl", &done)?;
        }
        Ok(Ok(()))
    }

    /// Takes over the new decisions and makes each of them again (P8).
    fn look_at_decisions(
        &mut self,
        step: &Step,
    ) -> Result<Result<Vec<(String, serde_json::Value)>, Violation>> {
        let decisions = self.evidence.decisions(self.lab)?;
        for (node, entry) in &decisions {
            self.replayed.add(node, entry);
        }
        let Some(difference) = self.replayed.different.first() else { return Ok(Ok(decisions)) };
        if self.settings.broken_rules {
            let after = self.report.faults + step.faults.len();
            self.report.first_difference_after_faults.get_or_insert(after);
            return Ok(Ok(decisions));
        }
        let what = format!(
            "a decision of {} replays differently: logged {}, now {:?}",
            difference.node, difference.logged, difference.replayed
        );
        Ok(Err(Violation::new("P8", what)))
    }

    /// A loss that was accepted was named, and is written down with who accepted it; a history that was given up is
    /// still there.
    fn accepted_losses(&self) -> Result<(), Violation> {
        self.hands.given_up.iter().try_for_each(|side| person::clear_archive(self.lab, *side))?;
        for accepted in &self.hands.accepted {
            let record = &accepted.record;
            let named = record["because"].as_str().is_some_and(|because| !because.is_empty());
            let signed = record["who"].is_string() && record["why"].is_string();
            if !named || !signed || record["acceptLoss"] != true {
                let what = format!("a loss was accepted, and only this is written down: {record}");
                return Err(Violation::new("P8", what));
            }
        }
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<()> {
        if self.segment.is_none() {
            let number = self.report.segments + 1;
            let load = &self.settings.load;
            self.segment = Some(Segment::begin(self.lab, load, &self.evidence, number)?);
        }
        Ok(())
    }

    /// Ends the piece of history under way, if there is one, and judges it.
    fn judge(&mut self, accepted: bool) -> Result<Result<(), Violation>> {
        let Some(segment) = self.segment.take() else { return Ok(Ok(())) };
        let evidence = &self.evidence;
        segment.end(self.lab, evidence, accepted, &mut self.floor, &mut self.report)
    }
}
