//! Keys and values.

use dyad_core::ids::Revision;
use dyad_http::Deadline;
use serde::{Deserialize, Serialize};

use super::json::{Bytes, Header, HeaderOnly, Number};
use super::{Client, Effect, Error};

/// What a read may rely on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Sees every write that was acknowledged before it began. Needs a leader.
    #[default]
    Linearizable,
    /// What this member holds, however old. Needs nobody.
    Serializable,
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// When it was made.
    pub create_revision: Revision,
    /// When it was last changed.
    pub mod_revision: Revision,
    /// How often it was changed since it was made.
    pub version: u64,
}

/// Which keys to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    /// The key, or the first one.
    pub key: Vec<u8>,
    /// Where to stop, if more than one key is meant.
    pub end: Option<Vec<u8>>,
    /// At most so many; 0 is all.
    pub limit: u64,
    /// As of this revision; `None` is now.
    pub revision: Option<Revision>,
    /// What it may rely on.
    pub consistency: Consistency,
    /// Only count.
    pub count_only: bool,
}

impl Range {
    /// One key.
    pub fn key(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// All keys that begin so.
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        let key = prefix.into();
        Self { end: Some(prefix_end(&key)), key, ..Self::default() }
    }
}

/// The first key behind all that begin so; a zero byte is etcd's word for "no end".
fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeResult {
    /// The revision of the key space that was read.
    pub revision: Revision,
    /// The keys.
    pub kvs: Vec<KeyValue>,
    /// How many there are, also beyond the limit.
    pub count: u64,
    /// Whether the limit cut it short.
    pub more: bool,
}

/// What a transaction compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The value.
    Value(Vec<u8>),
    /// When the key was made; 0 if it is not there.
    CreateRevision(Revision),
    /// When the key was last changed; 0 if it is not there.
    ModRevision(Revision),
    /// How often it was changed; 0 if it is not there.
    Version(u64),
}

/// One condition of a transaction: the key's target equals this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compare {
    /// Of which key.
    pub key: Vec<u8>,
    /// What it must be equal to.
    pub target: Target,
}

/// One thing that a transaction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Writes a key.
    Put {
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// Reads a key.
    Get {
        /// The key.
        key: Vec<u8>,
    },
    /// Deletes a key.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
}

/// A transaction: if all conditions hold the one list is done, else the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Txn {
    /// The conditions.
    pub compare: Vec<Compare>,
    /// Done if all hold.
    pub success: Vec<Operation>,
    /// Done if one does not.
    pub failure: Vec<Operation>,
}

/// What one operation of a transaction gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationResult {
    /// Written.
    Put,
    /// The key as it was read, if it was there.
    Get(Option<KeyValue>),
    /// How many keys were deleted.
    Delete(u64),
}

/// What a transaction gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnResult {
    /// Whether the conditions held.
    pub succeeded: bool,
    /// The revision after it.
    pub revision: Revision,
    /// What each operation gave.
    pub results: Vec<OperationResult>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeyValueJson {
    key: Bytes,
    value: Bytes,
    create_revision: Number,
    mod_revision: Number,
    version: Number,
}

impl From<KeyValueJson> for KeyValue {
    fn from(json: KeyValueJson) -> Self {
        Self {
            key: json.key.0,
            value: json.value.0,
            create_revision: Revision(json.create_revision.0),
            mod_revision: Revision(json.mod_revision.0),
            version: json.version.0,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RangeJson {
    header: Header,
    kvs: Vec<KeyValueJson>,
    count: Number,
    more: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeleteJson {
    deleted: Number,
}

#[derive(Serialize)]
struct PutBody {
    key: Bytes,
    value: Bytes,
}

#[derive(Serialize)]
struct KeyBody {
    key: Bytes,
}

#[derive(Serialize)]
struct RangeBody {
    key: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    range_end: Option<Bytes>,
    limit: Number,
    revision: Number,
    serializable: bool,
    count_only: bool,
}

impl From<&Range> for RangeBody {
    fn from(range: &Range) -> Self {
        Self {
            key: Bytes(range.key.clone()),
            range_end: range.end.clone().map(Bytes),
            limit: Number(range.limit),
            revision: Number(range.revision.map_or(0, |revision| revision.0)),
            serializable: range.consistency == Consistency::Serializable,
            count_only: range.count_only,
        }
    }
}

#[derive(Serialize)]
struct TxnBody {
    compare: Vec<CompareBody>,
    success: Vec<OperationBody>,
    failure: Vec<OperationBody>,
}

#[derive(Default, Serialize)]
struct CompareBody {
    key: Bytes,
    target: &'static str,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_revision: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mod_revision: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Number>,
}

impl From<&Compare> for CompareBody {
    fn from(compare: &Compare) -> Self {
        let mut body = Self { key: Bytes(compare.key.clone()), result: "EQUAL", ..Self::default() };
        match &compare.target {
            Target::Value(value) => {
                body.target = "VALUE";
                body.value = Some(Bytes(value.clone()));
            }
            Target::CreateRevision(revision) => {
                body.target = "CREATE";
                body.create_revision = Some(Number(revision.0));
            }
            Target::ModRevision(revision) => {
                body.target = "MOD";
                body.mod_revision = Some(Number(revision.0));
            }
            Target::Version(version) => {
                body.target = "VERSION";
                body.version = Some(Number(*version));
            }
        }
        body
    }
}

#[derive(Serialize)]
enum OperationBody {
    #[serde(rename = "request_put")]
    Put(PutBody),
    #[serde(rename = "request_range")]
    Range(KeyBody),
    #[serde(rename = "request_delete_range")]
    Delete(KeyBody),
}

impl From<&Operation> for OperationBody {
    fn from(operation: &Operation) -> Self {
        match operation {
            Operation::Put { key, value } => {
                Self::Put(PutBody { key: Bytes(key.clone()), value: Bytes(value.clone()) })
            }
            Operation::Get { key } => Self::Range(KeyBody { key: Bytes(key.clone()) }),
            Operation::Delete { key } => Self::Delete(KeyBody { key: Bytes(key.clone()) }),
        }
    }
}

#[derive(Deserialize)]
enum OperationJson {
    #[serde(rename = "response_put")]
    Put(serde::de::IgnoredAny),
    #[serde(rename = "response_range")]
    Range(RangeJson),
    #[serde(rename = "response_delete_range")]
    Delete(DeleteJson),
}

impl From<OperationJson> for OperationResult {
    fn from(json: OperationJson) -> Self {
        match json {
            OperationJson::Put(_) => Self::Put,
            OperationJson::Range(range) => {
                Self::Get(range.kvs.into_iter().next().map(KeyValue::from))
            }
            OperationJson::Delete(delete) => Self::Delete(delete.deleted.0),
        }
    }
}

#[derive(Deserialize)]
struct TxnJson {
    #[serde(default)]
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<OperationJson>,
}

impl Client {
    /// Writes a key. Returns the revision of that write.
    pub fn put(&self, key: &[u8], value: &[u8], deadline: Deadline) -> Result<Revision, Error> {
        let body = PutBody { key: key.into(), value: value.into() };
        let answer: HeaderOnly =
            self.call("put a key", "/v3/kv/put", &body, Effect::Changes, deadline)?;
        Ok(Revision(answer.header.revision.0))
    }

    /// Reads one key.
    pub fn get(
        &self,
        key: &[u8],
        consistency: Consistency,
        deadline: Deadline,
    ) -> Result<Option<KeyValue>, Error> {
        let range = Range { consistency, ..Range::key(key) };
        Ok(self.range(&range, deadline)?.kvs.into_iter().next())
    }

    /// Reads keys.
    pub fn range(&self, range: &Range, deadline: Deadline) -> Result<RangeResult, Error> {
        let body = RangeBody::from(range);
        let answer: RangeJson =
            self.call("read keys", "/v3/kv/range", &body, Effect::Reads, deadline)?;
        Ok(RangeResult {
            revision: Revision(answer.header.revision.0),
            kvs: answer.kvs.into_iter().map(KeyValue::from).collect(),
            count: answer.count.0,
            more: answer.more,
        })
    }

    /// Deletes a key, or all up to `end`. Returns how many there were.
    pub fn delete(&self, key: &[u8], end: Option<&[u8]>, deadline: Deadline) -> Result<u64, Error> {
        #[derive(Serialize)]
        struct Body {
            key: Bytes,
            #[serde(skip_serializing_if = "Option::is_none")]
            range_end: Option<Bytes>,
        }
        let body = Body { key: key.into(), range_end: end.map(Bytes::from) };
        let answer: DeleteJson =
            self.call("delete keys", "/v3/kv/deleterange", &body, Effect::Changes, deadline)?;
        Ok(answer.deleted.0)
    }

    /// Does a transaction.
    pub fn txn(&self, txn: &Txn, deadline: Deadline) -> Result<TxnResult, Error> {
        let body = TxnBody {
            compare: txn.compare.iter().map(CompareBody::from).collect(),
            success: txn.success.iter().map(OperationBody::from).collect(),
            failure: txn.failure.iter().map(OperationBody::from).collect(),
        };
        let answer: TxnJson =
            self.call("do a transaction", "/v3/kv/txn", &body, Effect::Changes, deadline)?;
        Ok(TxnResult {
            succeeded: answer.succeeded,
            revision: Revision(answer.header.revision.0),
            results: answer.responses.into_iter().map(OperationResult::from).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prefix ends right behind the last key that begins so, also at the byte that cannot be raised.
    #[test]
    fn prefixes_end_behind_their_last_key() {
        assert_eq!(prefix_end(b"ab"), b"ac");
        assert_eq!(prefix_end(b"a\xff"), b"b");
        assert_eq!(prefix_end(b"\xff\xff"), [0]);
        assert_eq!(prefix_end(b""), [0]);
    }
}
