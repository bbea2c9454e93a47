//! `dyad etcd take-over`: the survivor of two voters goes on alone.
//!
//! First everything is gathered and looked at that could forbid it; only then is the vote cast.

use std::fmt::Write as _;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dyad_core::dataset::{Class, Dataset};
use dyad_core::ids::{ClusterId, MemberId};
use etcd_peer::client::{Client, Deadline, Members};
use etcd_peer::stand_in::{self, Limits, Report, StandIn, Survivor, TimedStep, Veto};
use etcd_peer::{Identity, Tls};
use serde::Serialize;

use crate::cli::TakeOver;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// How long the survivor's client port may take to tell the membership.
const GATHER_MAX: Duration = Duration::from_secs(2);
/// How long the dead member may take to show that it lives.
const SIGN_OF_LIFE_MAX: Duration = Duration::from_secs(1);

/// A member as it is needed here, from a live list or from disk.
#[derive(Debug, Clone)]
struct Known {
    id: MemberId,
    name: String,
    learner: bool,
    peer_urls: Vec<String>,
    client_urls: Vec<String>,
}

impl Known {
    fn shown(&self) -> String {
        if self.name.is_empty() {
            self.id.to_string()
        } else {
            format!("{} ({})", self.name, self.id)
        }
    }
}

/// What is known before the vote.
#[derive(Debug)]
struct Facts {
    cluster: ClusterId,
    own: MemberId,
    members: Vec<Known>,
    client: Option<Client>,
}

pub(super) fn run(arguments: &TakeOver, format: Format) -> anyhow::Result<Exit> {
    let began = Instant::now();
    let proof = arguments.proof.trim();
    if proof.is_empty() {
        return Err(Failure::new(Exit::Usage, "the proof is empty")
            .hint("say with --proof how you know that the member is down, e.g. \"BMC says Off\"")
            .into());
    }
    let client_tls =
        tls(arguments.cacert.as_deref(), arguments.cert.as_deref(), arguments.key.as_deref());
    let peer_tls = tls(
        arguments.peer_cacert.as_deref(),
        arguments.peer_cert.as_deref(),
        arguments.peer_key.as_deref(),
    );
    let peer_tls = peer_tls.or_else(|| client_tls.clone());
    let facts = gather(arguments, client_tls.as_ref())?;
    let (survivor, dead) = who_is_who(&facts, &arguments.dead)?;
    look_for_life(&dead)?;

    let peer_url = match &arguments.peer_endpoint {
        Some(url) => url.clone(),
        None => survivor.peer_urls.first().cloned().ok_or_else(|| {
            Failure::new(Exit::Failed, format!("{} has no peer URL", survivor.shown()))
                .hint("name it with --peer-endpoint")
        })?,
    };
    let target = Survivor {
        cluster: facts.cluster,
        survivor: survivor.id,
        dead: dead.id,
        tls: peer_tls.filter(|_| peer_url.starts_with("https:")),
        peer_url,
    };
    let limits = Limits { total: Duration::from_secs(arguments.limit) };
    let lock = arguments.lock.clone().unwrap_or_else(|| default_lock(survivor.id));
    let mut stand_in = StandIn::new(target, lock, limits);
    if let Some(client) = facts.client {
        stand_in = stand_in.client(client);
    }
    let checks_ms = ms(began.elapsed());
    anstream::eprintln!(
        "taking over from {}, for at most {} s",
        dead.shown(),
        limits.total.as_secs()
    );
    let report = stand_in.run(&mut |_| {}).map_err(|error| failure(&error))?;
    let outcome = Outcome {
        cluster: facts.cluster,
        survivor: Named::from(&survivor),
        dead: Named::from(&dead),
        proof,
        server_version: report.server_version.as_deref(),
        checks_ms,
        steps: &report.steps,
    };
    match format {
        Format::Text => output::print_data(&text(&outcome, &report))?,
        Format::Json => output::print_json("TakeOver", outcome)?,
    }
    Ok(Exit::Ok)
}

fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

fn default_lock(survivor: MemberId) -> PathBuf {
    format!("/run/lock/dyad-stand-in-{survivor}.lock").into()
}

fn tls(cacert: Option<&Path>, cert: Option<&Path>, key: Option<&Path>) -> Option<Tls> {
    let identity = cert.zip(key).map(|(cert, key)| Identity {
        certificate_file: cert.to_owned(),
        key_file: key.to_owned(),
    });
    cacert.map(|ca| Tls { ca_file: ca.to_owned(), identity })
}

/// The membership: from the client port, or, where that does not answer, from the data directory.
fn gather(arguments: &TakeOver, tls: Option<&Tls>) -> anyhow::Result<Facts> {
    let client = Client::new(&arguments.endpoint, tls).map_err(|error| {
        Failure::new(Exit::Usage, chain(&error)).hint(
            "--endpoint, --cacert, --cert and --key name the survivor's client port and files",
        )
    })?;
    let error = match client.members(Deadline::after(GATHER_MAX)) {
        Ok(members) => return Ok(Facts::from_list(members, client)),
        Err(error) => error,
    };
    let Some(dir) = &arguments.data_dir else {
        return Err(Failure::new(Exit::Failed, chain(&error))
            .hint(
                "an etcd that was just started answers no client before it has a leader; \
                 --data-dir tells what its client port does not",
            )
            .into());
    };
    anstream::eprintln!("{}; reading {} instead", chain(&error), dir.display());
    let dataset = etcd_disk::read(dir).map_err(|error| {
        Failure::new(Exit::Failed, format!("{}: {}", dir.display(), chain(&error)))
    })?;
    Facts::from_disk(dir, dataset)
}

impl Facts {
    fn from_list(list: Members, client: Client) -> Self {
        let known = |member: etcd_peer::client::Member| Known {
            id: member.id,
            name: member.name,
            learner: member.learner,
            peer_urls: member.peer_urls,
            client_urls: member.client_urls,
        };
        Self {
            cluster: list.cluster,
            own: list.asked,
            members: list.members.into_iter().map(known).collect(),
            client: Some(client),
        }
    }

    fn from_disk(dir: &Path, dataset: Dataset) -> anyhow::Result<Self> {
        let (Some(cluster), Some(own), Class::Pair) =
            (dataset.cluster_id, dataset.member_id, dataset.class)
        else {
            let message =
                format!("{} is of class {}: {}", dir.display(), dataset.class, dataset.reason);
            return Err(Failure::new(Exit::Refused, message)
                .hint("only one of two voters can be helped: a dataset of class pair")
                .into());
        };
        let known = |member: dyad_core::dataset::Member| Known {
            id: member.id,
            name: member.name,
            learner: member.learner,
            peer_urls: member.peer_urls,
            client_urls: Vec::new(),
        };
        let members = dataset.members.into_iter().map(known).collect();
        Ok(Self { cluster, own, members, client: None })
    }
}

/// Survivor and dead member; refused unless exactly these two vote.
fn who_is_who(facts: &Facts, wanted: &str) -> anyhow::Result<(Known, Known)> {
    let refused = |message: String| Failure::new(Exit::Refused, message);
    let dead = find(&facts.members, wanted)?;
    let survivor = facts
        .members
        .iter()
        .find(|member| member.id == facts.own)
        .ok_or_else(|| refused(format!("the survivor {} is not a member", facts.own)))?;
    if dead.id == survivor.id {
        return Err(refused(format!("{} is the one that was asked", dead.shown()))
            .hint("--endpoint is the survivor's, --dead names the other one")
            .into());
    }
    if survivor.learner {
        return Err(refused(format!(
            "{} is a learner: it may lack acknowledged writes, and cannot take over",
            survivor.shown()
        ))
        .into());
    }
    if dead.learner {
        return Err(refused(format!("{} is a learner and has no vote", dead.shown()))
            .hint("the survivor runs alone already; remove the learner with etcdctl member remove")
            .into());
    }
    let others: Vec<_> = facts
        .members
        .iter()
        .filter(|member| !member.learner && ![dead.id, survivor.id].contains(&member.id))
        .map(Known::shown)
        .collect();
    if !others.is_empty() {
        return Err(refused(format!("there are other voters: {}", others.join(", ")))
            .hint("a take-over is for exactly two voters")
            .into());
    }
    Ok((survivor.clone(), dead.clone()))
}

/// The member with this name or id. Compared whole (R10); a name wins over an id that looks the same.
fn find<'a>(members: &'a [Known], wanted: &str) -> anyhow::Result<&'a Known> {
    let named: Vec<_> = members.iter().filter(|member| member.name == wanted).collect();
    let id = wanted.parse::<MemberId>().ok();
    match (&named[..], members.iter().find(|member| Some(member.id) == id)) {
        ([member], _) => Ok(member),
        ([], Some(member)) => Ok(member),
        ([], None) => {
            let known: Vec<_> = members.iter().map(Known::shown).collect();
            Err(Failure::new(Exit::Refused, format!("there is no member {wanted}"))
                .hint(format!("the members are {}", known.join(", ")))
                .into())
        }
        _ => Err(Failure::new(Exit::Usage, format!("several members are named {wanted}"))
            .hint("name it by its id")
            .into()),
    }
}

/// Refuses if anything answers at one of the dead member's addresses.
fn look_for_life(dead: &Known) -> anyhow::Result<()> {
    let urls: Vec<_> = dead.client_urls.iter().chain(&dead.peer_urls).cloned().collect();
    let looks: Vec<_> = urls
        .into_iter()
        .map(|url| std::thread::spawn(move || answers(&url).then_some(url)))
        .collect();
    let alive = looks.into_iter().find_map(|look| look.join().ok().flatten());
    match alive {
        None => Ok(()),
        Some(url) => Err(Failure::new(
            Exit::Refused,
            format!("{} answers at {url}: it is not dead", dead.shown()),
        )
        .hint("power it off first, and make sure that it stays off")
        .into()),
    }
}

/// Whether somebody accepts a connection there. An address that cannot be looked up answers nothing.
fn answers(url: &str) -> bool {
    let Ok(endpoint) = dyad_http::Endpoint::parse(url) else { return false };
    let Ok(mut addresses) = (endpoint.host(), endpoint.port()).to_socket_addrs() else {
        return false;
    };
    addresses.any(|address| TcpStream::connect_timeout(&address, SIGN_OF_LIFE_MAX).is_ok())
}

/// What a failed vote means to a script.
fn failure(error: &stand_in::Error) -> Failure {
    use stand_in::Error;
    let message = chain(error);
    match error {
        Error::Vetoed(Veto::DeadIsLearner(_)) => Failure::new(Exit::Refused, message)
            .hint("the survivor runs alone already; remove the learner with etcdctl member remove"),
        Error::Vetoed(_) | Error::WrongCluster { .. } | Error::Foreign(_) | Error::Displaced(_) => {
            Failure::new(Exit::Refused, message)
                .hint("nothing was changed; is the right member named, and is this its cluster?")
        }
        Error::Busy(_) => Failure::new(Exit::Failed, message)
            .hint("it will be done soon; look at the members then"),
        Error::TimedOut { burnt: true, .. } => Failure::new(Exit::TimedOut, message).hint(
            "a vote was cast: the dead member must never start again with its data; run this again \
             to complete the take-over",
        ),
        Error::TimedOut { .. } => Failure::new(Exit::TimedOut, message)
            .hint("nothing was changed; is the survivor's etcd running, and is this its peer URL?"),
        _ => Failure::new(Exit::Failed, message),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let _ = write!(text, ": {inner}");
        cause = inner.source();
    }
    text
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    id: MemberId,
    name: String,
}

impl From<&Known> for Named {
    fn from(known: &Known) -> Self {
        Self { id: known.id, name: known.name.clone() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    cluster: ClusterId,
    survivor: Named,
    dead: Named,
    proof: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<&'a str>,
    /// How long everything before the vote took; the steps count from there.
    checks_ms: f64,
    steps: &'a [TimedStep],
}

fn text(outcome: &Outcome<'_>, report: &Report) -> String {
    let shown = |named: &Named| format!("{} ({})", named.name, named.id);
    let total = report.steps.last().map_or(0.0, |timed| timed.ms);
    let (survivor, dead) = (shown(&outcome.survivor), shown(&outcome.dead));
    let mut text = format!("{survivor} runs alone. It took over from {dead} in {total} ms.\n");
    let _ = writeln!(text, "proof: {}\n", outcome.proof);
    for timed in &report.steps {
        let _ = writeln!(text, "{:>9.1} ms  {}", timed.ms, timed.step);
    }
    let _ = writeln!(
        text,
        "\n{} must never start again with its old data. To bring the node back, move the\n\
         data aside, add it as a learner, and promote it when it has caught up.",
        outcome.dead.name
    );
    text
}
