//! What a client asks next.
//!
//! Three kinds of keys under the run's prefix: `r/N` are registers, written, compared and read by everybody;
//! `d/N` come and go; `u/CLIENT.N` are inserted once and must be there for ever. Every value is unique within
//! the run, so that a read tells which write it saw.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Config;
use crate::chance::Chance;
use crate::operation::{Action, Answer, Outcome};

/// What the clients of a run know of each other.
#[derive(Debug, Default)]
pub(super) struct Shared {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The value last seen in each key: what a comparison asks for.
    values: HashMap<Arc<str>, String>,
    /// Keys that were inserted once.
    inserted: Vec<Arc<str>>,
}

impl Shared {
    /// The choices of one client.
    pub(super) fn workload(self: &Arc<Self>, config: &Config, client: u32) -> Workload {
        Workload {
            shared: Arc::clone(self),
            chance: Chance::new(config.seed, u64::from(client)),
            prefix: config.prefix.clone(),
            registers: u64::from(config.registers),
            client,
            number: 0,
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The choices of one client.
#[derive(Debug)]
pub(super) struct Workload {
    shared: Arc<Shared>,
    chance: Chance,
    prefix: String,
    registers: u64,
    client: u32,
    number: u64,
}

/// How many registers get half of the requests.
const HOT: u64 = 2;

impl Workload {
    /// The next request.
    pub(super) fn next(&mut self) -> (Arc<str>, Action) {
        self.number += 1;
        let value = format!("{}.{}", self.client, self.number);
        let get = Action::Get { serializable: false };
        match self.chance.below(100) {
            0..12 => (self.key(format_args!("u/{value}")), Action::Insert { value }),
            12..17 => (self.inserted(), get),
            17..21 => (self.coming_and_going(), Action::Insert { value }),
            21..25 => (self.coming_and_going(), Action::Delete),
            25..28 => (self.coming_and_going(), get),
            28..33 => (self.register(), Action::Get { serializable: true }),
            33..58 => (self.register(), Action::Put { value }),
            58..80 => {
                let key = self.register();
                let action = match self.shared.known().values.get(&key) {
                    Some(seen) => Action::Cas { expect: seen.clone(), value },
                    None => Action::Put { value },
                };
                (key, action)
            }
            _ => (self.register(), get),
        }
    }

    /// Learns from an answer what to ask for later.
    pub(super) fn learn(&self, key: &Arc<str>, action: &Action, outcome: &Outcome) {
        let Outcome::Ok(Answer { applied, observed, .. }) = outcome else { return };
        let held = match (action, observed) {
            (Action::Delete, _) | (_, None) if !applied => None,
            (_, Some(item)) if !applied => Some(item.value.as_str()),
            _ => action.value(),
        };
        let mut known = self.shared.known();
        if *applied && key.starts_with(&format!("{}u/", self.prefix)) {
            known.inserted.push(Arc::clone(key));
        } else if let Some(value) = held {
            known.values.insert(Arc::clone(key), value.to_owned());
        }
    }

    fn key(&self, name: std::fmt::Arguments) -> Arc<str> {
        Arc::from(format!("{}{name}", self.prefix))
    }

    fn register(&mut self) -> Arc<str> {
        let among = if self.chance.once_in(2) { HOT.min(self.registers) } else { self.registers };
        let number = self.chance.below(among);
        self.key(format_args!("r/{number}"))
    }

    fn coming_and_going(&mut self) -> Arc<str> {
        let number = self.chance.below(self.registers);
        self.key(format_args!("d/{number}"))
    }

    /// A key that somebody inserted once; before there is any, a register.
    fn inserted(&mut self) -> Arc<str> {
        let shared = Arc::clone(&self.shared);
        let known = shared.known();
        if known.inserted.is_empty() {
            drop(known);
            return self.register();
        }
        let number = self.chance.below(known.inserted.len() as u64);
        Arc::clone(&known.inserted[number as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::load::Endpoint;

    /// The same seed asks the same; no value is ever written twice; every action occurs.
    #[test]
    fn the_choices_repeat_and_values_do_not() {
        let endpoint = Endpoint { name: "a".to_owned(), url: String::new() };
        let config = Config::new(vec![endpoint], 7);
        let run = || -> Vec<(Arc<str>, Action)> {
            let shared = Arc::new(Shared::default());
            let mut clients: Vec<Workload> =
                (0..4).map(|client| shared.workload(&config, client)).collect();
            (0..2000)
                .map(|turn| {
                    let client = &mut clients[turn % 4];
                    let (key, action) = client.next();
                    let applied = action.mutates();
                    let answer = Outcome::Ok(Answer { revision: 1, applied, observed: None });
                    client.learn(&key, &action, &answer);
                    (key, action)
                })
                .collect()
        };
        let asked = run();
        assert_eq!(asked, run());
        let mut values = HashSet::new();
        assert!(asked.iter().filter_map(|(_, action)| action.value()).all(|it| values.insert(it)));
        let names: HashSet<&str> = asked.iter().map(|(_, action)| action.name()).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        assert!(asked.iter().all(|(key, _)| key.starts_with(&config.prefix)));
    }
}
