//! `dyad maintenance`: a node leaves for planned work, and comes back.

use std::sync::Arc;
use std::time::Duration;

use dyad_core::state::State;
use dyad_node::Node;
use dyad_status::Status;
use dyad_status::look::{PATIENT, Seen, look};
use serde::Serialize;

use super::{person, standby, this_node, waiting};
use crate::cli::{MaintenanceArguments, MaintenanceCommand};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    node: String,
    in_maintenance: bool,
    state: State,
    because: String,
}

/// Starts or ends it.
pub(super) fn run(command: MaintenanceCommand, format: Format) -> anyhow::Result<Exit> {
    let node = Arc::new(this_node::open()?);
    let (status, arguments, starts) = match &command {
        MaintenanceCommand::Start(arguments) => (start(&node, arguments)?, arguments, true),
        MaintenanceCommand::End(arguments) => (end(&node, arguments)?, arguments, false),
    };
    let name = arguments.node.clone();
    match format {
        Format::Json => {
            let (state, because) = (status.state, status.because);
            let body = Body { node: name, in_maintenance: starts, state, because };
            output::print_json("Maintenance", body)?;
        }
        Format::Text if starts => output::print_data(&format!(
            "{name} is out of service; the other node serves alone\n\
             {name} may now be rebooted or shut down: systemctl reboot, systemctl poweroff\n\
             afterwards: dyad maintenance end {name}\n"
        ))?,
        Format::Text => {
            let text = format!("{name} is in service again; the pair is {}\n", status.state);
            output::print_data(&text)?;
        }
    }
    Ok(Exit::Ok)
}

fn limit(arguments: &MaintenanceArguments) -> Duration {
    Duration::from_secs(arguments.wait)
}

/// Takes a node out of service, and waits until it is.
pub(super) fn start(node: &Arc<Node>, arguments: &MaintenanceArguments) -> anyhow::Result<Status> {
    let target = &person::named(node, &arguments.node)?.name;
    let seen = look(node, PATIENT);
    if is_out(&seen, &arguments.node) {
        return Ok(seen.status);
    }
    // What is not known is not taken for good: the other node might be the one that is in trouble.
    if seen.status.fencing.enabled.is_none() {
        let message = format!("not everything could be known: {}", seen.status.unknown.join("; "));
        return Err(Failure::new(Exit::Refused, message).hint("dyad status").into());
    }
    seen.judgement.may_leave(&seen.gathered.facts, target).map_err(|refused| {
        let message = format!("{target} stays in service: {}", refused.because);
        Failure::new(Exit::Refused, message).hint(refused.command)
    })?;
    let act = format!("takes {target} out of service");
    person::write_down(node, &act, arguments.reason.as_deref())?;
    standby::tell(node, target, true)?;
    let what = format!("{target} to leave");
    Ok(waiting::until(node, limit(arguments), &what, |seen| is_out(seen, &arguments.node))?)
}

/// Takes a node back into service, and waits until it has rejoined.
pub(super) fn end(node: &Arc<Node>, arguments: &MaintenanceArguments) -> anyhow::Result<Status> {
    let target = &person::named(node, &arguments.node)?.name;
    let act = format!("takes {target} back into service");
    person::write_down(node, &act, arguments.reason.as_deref())?;
    standby::tell(node, target, false)?;
    Ok(waiting::until(node, limit(arguments), &format!("{target} to rejoin"), |seen| {
        matches!(seen.judgement.state, State::Protected | State::AtRisk)
    })?)
}

/// The node runs nothing any more, as both sides say.
fn is_out(seen: &Seen, name: &str) -> bool {
    let in_maintenance = seen.judgement.state == State::Maintenance;
    let target = seen.status.nodes.iter().find(|each| each.name == name);
    let other = seen.status.nodes.iter().find(|each| each.name != name);
    let serves = other.is_some_and(|each| each.etcd.role.as_deref() == Some("leader"));
    let at_rest = target.is_some_and(|each| match each.etcd.role.as_deref() {
        // A node that was shut down says nothing.
        None => each.in_cluster == Some(false),
        Some(role) => role == "stopped",
    });
    let here = seen.status.seen_by == name;
    let idle = seen.status.units.iter().all(|unit| {
        let runs = if here { unit.runs_here } else { unit.runs_on_peer };
        runs == Some(false)
    });
    let about_it = seen.judgement.on.as_ref().is_some_and(|on| on.0 == name);
    in_maintenance && about_it && serves && at_rest && idle
}
