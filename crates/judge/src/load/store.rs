//! The judge's five actions as requests to one etcd member.

use std::time::Duration;

use etcd_peer::client::{
    self, Client, Compare, Consistency, Deadline, KeyValue, Operation, OperationResult, Range,
    Target, Txn,
};

use super::{Config, Endpoint};
use crate::operation::{Action, Answer, Item, Outcome};

/// One member, as one client reaches it.
#[derive(Debug)]
pub(super) struct Etcd {
    client: Client,
    request_limit: Duration,
}

impl Etcd {
    pub(super) fn new(endpoint: &Endpoint, config: &Config) -> Result<Self, client::Error> {
        let client = Client::new(&endpoint.url, config.tls.as_ref())?;
        Ok(Self { client, request_limit: config.request_limit })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Does the action. Never fails: an error is an outcome too.
    pub(super) fn perform(&self, key: &str, action: &Action) -> Outcome {
        let deadline = Deadline::after(self.request_limit);
        let answer = match action {
            Action::Get { serializable } => self.get(key, *serializable, deadline),
            Action::Put { value } => self
                .client
                .put(key.as_bytes(), value.as_bytes(), deadline)
                .map(|revision| Answer { revision: revision.0, applied: true, observed: None }),
            Action::Cas { expect, value } => {
                self.put_if(key, Target::Value(expect.as_bytes().to_vec()), value, deadline)
            }
            Action::Insert { value } => self.put_if(key, Target::Version(0), value, deadline),
            Action::Delete => self.delete(key, deadline),
        };
        answer.map_or_else(|error| outcome(&error), Outcome::Ok)
    }

    fn get(
        &self,
        key: &str,
        serializable: bool,
        deadline: Deadline,
    ) -> Result<Answer, client::Error> {
        let consistency =
            if serializable { Consistency::Serializable } else { Consistency::Linearizable };
        let range = Range { consistency, ..Range::key(key) };
        let result = self.client.range(&range, deadline)?;
        let observed = result.kvs.into_iter().next().map(item);
        Ok(Answer { revision: result.revision.0, applied: false, observed })
    }

    /// Writes the key if the condition holds, else reads it, in one transaction.
    fn put_if(
        &self,
        key: &str,
        target: Target,
        value: &str,
        deadline: Deadline,
    ) -> Result<Answer, client::Error> {
        let key = key.as_bytes().to_vec();
        let txn = Txn {
            compare: vec![Compare { key: key.clone(), target }],
            success: vec![Operation::Put { key: key.clone(), value: value.as_bytes().to_vec() }],
            failure: vec![Operation::Get { key }],
        };
        let result = self.client.txn(&txn, deadline)?;
        let observed = read_in(result.results);
        Ok(Answer { revision: result.revision.0, applied: result.succeeded, observed })
    }

    /// Reads the key and removes it, in one transaction.
    fn delete(&self, key: &str, deadline: Deadline) -> Result<Answer, client::Error> {
        let key = key.as_bytes().to_vec();
        let success = vec![Operation::Get { key: key.clone() }, Operation::Delete { key }];
        let txn = Txn { compare: Vec::new(), success, failure: Vec::new() };
        let result = self.client.txn(&txn, deadline)?;
        let applied = result.results.contains(&OperationResult::Delete(1));
        let observed = read_in(result.results);
        Ok(Answer { revision: result.revision.0, applied, observed })
    }

    /// Whether there is no key under the prefix.
    pub(super) fn is_empty(&self, prefix: &str, limit: Duration) -> Result<bool, client::Error> {
        let range = Range { count_only: true, ..Range::prefix(prefix) };
        Ok(self.client.range(&range, Deadline::after(limit))?.count == 0)
    }
}

/// What the read of a transaction found.
fn read_in(results: Vec<OperationResult>) -> Option<Item> {
    results.into_iter().find_map(|result| match result {
        OperationResult::Get(found) => found.map(item),
        OperationResult::Put | OperationResult::Delete(_) => None,
    })
}

fn item(found: KeyValue) -> Item {
    let value = String::from_utf8_lossy(&found.value).into_owned();
    Item { value, mod_revision: found.mod_revision.0 }
}

/// What an error says about the request. In doubt: unknown.
fn outcome(error: &client::Error) -> Outcome {
    let reason = chain(error);
    match error.outcome() {
        client::Outcome::NotExecuted => Outcome::Failed { reason },
        client::Outcome::Unknown => Outcome::Unknown { reason },
    }
}

/// An error with its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
