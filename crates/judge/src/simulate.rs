//! A history as a working store would give it, without a store: what the judge is tried and timed with.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::chance::Chance;
use crate::history::{FinalItem, FinalState, Header, History};
use crate::operation::{Action, Answer, Item, Operation, Outcome};

/// What to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// Seed of all choices.
    pub seed: u64,
    /// How many operations.
    pub operations: usize,
    /// How many clients, each with one operation at a time.
    pub clients: u32,
    /// How many keys hold registers.
    pub keys: u64,
    /// How many of those get half of all operations.
    pub hot_keys: u64,
    /// One operation in this many ends with an unknown outcome.
    pub unknown_one_in: u64,
}

impl Default for Simulation {
    fn default() -> Self {
        Self {
            seed: 1,
            operations: 100_000,
            clients: 32,
            keys: 100,
            hot_keys: 2,
            unknown_one_in: 300,
        }
    }
}

const MS: u64 = 1_000_000;

/// How long a client waits for an answer before it gives up.
const TIME_OUT: u64 = 2_000 * MS;

/// A request before it is known what comes of it.
struct Request {
    client: u32,
    key: Arc<str>,
    kind: u64,
    invoke_ns: u64,
    /// When it takes effect.
    instant: u64,
    complete_ns: Option<u64>,
    /// An unknown one may never take effect.
    executed: bool,
}

#[derive(Default)]
struct Store {
    revision: u64,
    items: BTreeMap<Arc<str>, FinalItem>,
}

/// The history of a run in which every operation took effect at one instant between its beginning and its
/// end, or, if its outcome is unknown, at some instant after its beginning, or never.
pub fn simulate(simulation: Simulation) -> History {
    let mut requests = requests(simulation);
    requests.sort_by_key(|request| request.instant);
    let mut store = Store { revision: 1, ..Store::default() };
    let mut last_seen: HashMap<(u32, Arc<str>), String> = HashMap::new();
    let endpoints: [Arc<str>; 2] = [Arc::from("a"), Arc::from("b")];
    let mut operations = Vec::with_capacity(requests.len());
    for (number, request) in requests.into_iter().enumerate() {
        let seen = last_seen.get(&(request.client, Arc::clone(&request.key)));
        let action = action(request.kind, format!("v{number}"), seen);
        let answer = if request.executed {
            store.perform(&request.key, &action)
        } else {
            Answer { revision: 0, applied: false, observed: None }
        };
        let outcome = if request.complete_ns.is_some() {
            let value = match (&answer.observed, action.value()) {
                (Some(item), _) => Some(item.value.as_str()),
                (None, value) => value.filter(|_| answer.applied),
            };
            if let Some(value) = value {
                last_seen.insert((request.client, Arc::clone(&request.key)), value.to_owned());
            }
            Outcome::Ok(answer)
        } else {
            Outcome::Unknown { reason: "time ran out".to_owned() }
        };
        operations.push(Operation {
            id: 0,
            client: request.client,
            endpoint: Arc::clone(&endpoints[request.client as usize % 2]),
            key: request.key,
            action,
            invoke_ns: request.invoke_ns,
            complete_ns: request.complete_ns,
            gave_up_ns: request.complete_ns.is_none().then_some(request.invoke_ns + TIME_OUT),
            outcome,
        });
    }
    operations.sort_by_key(|operation| operation.invoke_ns);
    for (position, operation) in operations.iter_mut().enumerate() {
        operation.id = position as u64 + 1;
    }
    let finals = endpoints.iter().map(|endpoint| store.state(endpoint)).collect();
    let endpoints = endpoints.iter().map(ToString::to_string).collect();
    let header = Header { seed: simulation.seed, endpoints, ..Header::default() };
    History { header, operations, finals, ended: true }
}

fn requests(simulation: Simulation) -> Vec<Request> {
    let mut requests = Vec::with_capacity(simulation.operations);
    for client in 0..simulation.clients {
        let mut chance = Chance::new(simulation.seed, u64::from(client));
        let share = simulation.operations / simulation.clients as usize
            + usize::from((client as usize) < simulation.operations % simulation.clients as usize);
        let mut now = chance.below(10 * MS);
        for number in 0..share {
            let kind = chance.below(100);
            let unknown = chance.once_in(simulation.unknown_one_in);
            let late = if unknown { 2 * TIME_OUT } else { 3 * MS };
            let instant = now + 1 + chance.below(late);
            let end = instant + chance.below(2 * MS);
            requests.push(Request {
                client,
                key: key(simulation, &mut chance, kind, client, number),
                kind,
                invoke_ns: now,
                instant,
                complete_ns: (!unknown).then_some(end),
                executed: !unknown || chance.once_in(2),
            });
            let answered = if unknown { now + TIME_OUT } else { end };
            now = answered + 1 + chance.below(MS);
        }
    }
    requests
}

fn key(
    simulation: Simulation,
    chance: &mut Chance,
    kind: u64,
    client: u32,
    number: usize,
) -> Arc<str> {
    if INSERTS.contains(&kind) {
        return Arc::from(format!("u/{client}.{number}"));
    }
    let keys = if chance.once_in(2) { simulation.hot_keys } else { simulation.keys };
    let class = if REMOVALS.contains(&kind) { 'd' } else { 'r' };
    Arc::from(format!("{class}/{}", chance.below(keys.max(1))))
}

/// Of a hundred operations: unique inserts, and what happens to keys that come and go.
const INSERTS: std::ops::Range<u64> = 0..10;
const REMOVALS: std::ops::Range<u64> = 10..20;

fn action(kind: u64, value: String, seen: Option<&String>) -> Action {
    match (kind, seen) {
        (0..13, _) => Action::Insert { value },
        (13..16, _) => Action::Delete,
        (20..45, _) => Action::Put { value },
        (45..65, Some(seen)) => Action::Cas { expect: seen.clone(), value },
        _ => Action::Get { serializable: false },
    }
}

impl Store {
    fn perform(&mut self, key: &Arc<str>, action: &Action) -> Answer {
        let held = self.items.get(key).cloned();
        let applied = match action {
            Action::Get { .. } => false,
            Action::Put { .. } => true,
            Action::Cas { expect, .. } => held.as_ref().is_some_and(|item| item.value == *expect),
            Action::Insert { .. } => held.is_none(),
            Action::Delete => held.is_some(),
        };
        if applied {
            self.revision += 1;
            self.change(key, action.value(), held.as_ref());
        }
        let observed = held
            .filter(|_| !applied || matches!(action, Action::Delete))
            .map(|item| Item { value: item.value, mod_revision: item.mod_revision });
        Answer { revision: self.revision, applied, observed }
    }

    fn change(&mut self, key: &Arc<str>, value: Option<&str>, held: Option<&FinalItem>) {
        let Some(value) = value else {
            self.items.remove(key);
            return;
        };
        let item = FinalItem {
            value: value.to_owned(),
            create_revision: held.map_or(self.revision, |item| item.create_revision),
            mod_revision: self.revision,
            version: held.map_or(1, |item| item.version + 1),
        };
        self.items.insert(Arc::clone(key), item);
    }

    fn state(&self, endpoint: &str) -> FinalState {
        FinalState {
            endpoint: endpoint.to_owned(),
            prefix: String::new(),
            revision: self.revision,
            cluster_id: None,
            items: self.items.iter().map(|(key, item)| (key.to_string(), item.clone())).collect(),
        }
    }
}
