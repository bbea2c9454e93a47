//! `dyad setup`: makes this machine one node of a pair.

use std::time::Duration;

use dyad_node::Place;
use dyad_openshift::Access;
use dyad_setup::check::Here;
use dyad_setup::job::apply::{self, ApplyOptions};
use dyad_setup::job::{self, HandOver, OldEtcd, Options};
use dyad_setup::state::{FailureKind, SetupFailure, SetupState};

use super::over_ssh;
use crate::cli::SetupArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Where OpenShift's etcd operator has its pod's manifest.
const OPENSHIFT_MANIFEST: &str = "/etc/kubernetes/manifests/etcd-pod.yaml";
/// How long Pacemaker may take to be there at a boot.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);

/// Runs the job; progress is talk, what it came to is data.
pub(super) fn run(arguments: SetupArguments, format: Format) -> anyhow::Result<Exit> {
    if let Some(file) = &arguments.over_ssh {
        return over_ssh::run(file, format);
    }
    let hand_over = hand_over(&arguments)?;
    let options = Options { bundle: arguments.bundle, hand_over, once: arguments.once };
    let say = |text: &str| anstream::eprintln!("{text}");
    // A change that was cut off by a reboot is brought to its end first.
    if arguments.once && options.bundle.is_none() && apply::is_waiting(&Place::default()) {
        let resume = ApplyOptions::default();
        apply::run(&resume, &Here::this_machine(), &Place::default(), &say).map_err(told)?;
    }
    let state = job::run(&options, &Here::this_machine(), &Place::default(), &say);
    if state.failure.is_none() {
        apply::answer(&Here::this_machine(), &Place::default(), ANSWER_LIMIT, &say);
    }
    match format {
        Format::Json => {
            let mut text = serde_json::to_string_pretty(&state)?;
            text.push('\n');
            output::print_data(&text)?;
        }
        Format::Text if state.failure.is_none() => output::print_data(&summary(&state))?,
        Format::Text => {}
    }
    match state.failure {
        None => Ok(Exit::Ok),
        Some(failure) => Err(told(failure).into()),
    }
}

/// The etcd that is to be taken over.
fn hand_over(arguments: &SetupArguments) -> Result<Option<HandOver>, Failure> {
    let unit = arguments.take_over_unit.clone().map(OldEtcd::Unit);
    let manifest = arguments.take_over_manifest.clone();
    let pod = match openshift(arguments) {
        Some(access) => {
            let manifest = manifest.unwrap_or_else(|| OPENSHIFT_MANIFEST.into());
            Some(OldEtcd::OpenShift { access, manifest })
        }
        None => manifest.map(OldEtcd::StaticPod),
    };
    match (unit.or(pod), arguments.take_over_data.clone()) {
        (Some(old), Some(data_dir)) => Ok(Some(HandOver { old, data_dir })),
        (None, None) => Ok(None),
        _ => Err(Failure::new(Exit::Usage, "--take-over-data needs to know whose data they are")
            .hint("give --take-over-unit, --take-over-manifest or --take-over-openshift with it")),
    }
}

fn openshift(arguments: &SetupArguments) -> Option<Access> {
    Some(Access {
        url: arguments.take_over_openshift.clone()?,
        token_file: arguments.openshift_token_file.clone()?,
        ca_file: arguments.openshift_ca_file.clone()?,
    })
}

fn summary(state: &SetupState) -> String {
    let pair = state.pair.as_deref().unwrap_or_default();
    format!("{}: ready, one of the pair {pair}\n", state.node)
}

pub(super) fn told(failure: SetupFailure) -> Failure {
    let exit = match failure.kind {
        FailureKind::Failed => Exit::Failed,
        FailureKind::NotFit => Exit::No,
        FailureKind::Refused => Exit::Refused,
        FailureKind::TimedOut => Exit::TimedOut,
    };
    let message = format!("step {}: {}", failure.step, failure.why);
    Failure { exit, message, hint: failure.hint }
}
