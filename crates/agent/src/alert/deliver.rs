//! Posting events to the receiver: in their order, retried, and given up in the end.

use std::path::Path;
use std::time::Duration;

use dyad_cluster::pair::{Pair, Webhook};
use dyad_http::{Client, Deadline};
use dyad_node::journal::now_ms;
use dyad_node::webhook::Receiver;

use super::event::Event;
use super::spool::{self, Spool};

/// One attempt, from the name to the answer.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(10);
/// The wait after the first failure; each further one doubles it, up to the longest.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// See above.
const PAUSE_LONGEST: Duration = Duration::from_mins(1);
/// An event that is older tells nobody anything.
const AGE_MAX_MS: u64 = 24 * 3600 * 1000;
/// The receiver understands the request and does not want this document, now or later.
const UNWANTED: [u16; 4] = [400, 413, 415, 422];

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Events that the receiver took.
    pub delivered: usize,
    /// Events that were given up.
    pub dropped: usize,
    /// Attempts that failed and were repeated.
    pub retries: usize,
}

/// Delivers until nothing waits. What goes wrong is said once, without the address.
pub fn deliver(pair: &Pair, spool: &Spool, say: &dyn Fn(&str)) -> Result<Delivery, String> {
    let mut delivery = Delivery::default();
    let Some(webhook) = &pair.webhook else {
        // The pair has no receiver any more.
        spool.clear().map_err(|error| error.to_string())?;
        return Ok(delivery);
    };
    let mut pause = PAUSE_FIRST;
    let mut said = String::new();
    loop {
        let waiting = spool.waiting().map_err(|error| error.to_string())?;
        let Some(path) = waiting.first() else {
            spool.sweep().map_err(|error| error.to_string())?;
            return Ok(delivery);
        };
        match attempt(&pair.name, webhook, path) {
            Outcome::Taken => {
                if !said.is_empty() {
                    say("event: the receiver takes events again");
                    said.clear();
                }
                pause = PAUSE_FIRST;
                delivery.delivered += 1;
                remove(path)?;
            }
            Outcome::GivenUp(why) => {
                say(&format!("event: one is given up: {why}"));
                delivery.dropped += 1;
                remove(path)?;
            }
            Outcome::Failed(why) => {
                if why != said {
                    say(&format!("event: not delivered, to be tried again: {why}"));
                    said = why;
                }
                delivery.retries += 1;
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSE_LONGEST);
            }
        }
    }
}

enum Outcome {
    Taken,
    GivenUp(String),
    Failed(String),
}

/// Address and certificates are read each time: both may have been corrected meanwhile.
fn attempt(pair: &str, webhook: &Webhook, path: &Path) -> Outcome {
    let event = match spool::read(path) {
        Ok(event) => Event { pair: pair.to_owned(), ..event },
        Err(error) => return Outcome::GivenUp(format!("it cannot be read: {error}")),
    };
    if now_ms().saturating_sub(event.time_ms) > AGE_MAX_MS {
        return Outcome::GivenUp(format!("it is too old: {}", event.text));
    }
    let receiver = match Receiver::read(&webhook.url_file) {
        Ok(receiver) => receiver,
        Err(why) => return Outcome::Failed(format!("{}: {why}", webhook.url_file.display())),
    };
    match receiver.client(webhook) {
        Ok(client) => post(&client, &receiver, &event),
        Err(why) => Outcome::Failed(why),
    }
}

fn post(client: &Client, receiver: &Receiver, event: &Event) -> Outcome {
    let document = match serde_json::to_vec(event) {
        Ok(document) => document,
        Err(error) => return Outcome::GivenUp(error.to_string()),
    };
    match client.send(&receiver.request(document), Deadline::after(ATTEMPT_LIMIT)) {
        Ok(answer) if (200..300).contains(&answer.status) => Outcome::Taken,
        Ok(answer) if UNWANTED.contains(&answer.status) => {
            Outcome::GivenUp(format!("the receiver answers {}: {}", answer.status, event.text))
        }
        Ok(answer) => Outcome::Failed(format!("the receiver answers {}", answer.status)),
        Err(error) => Outcome::Failed(dyad_node::gather::words(&error)),
    }
}

fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}
