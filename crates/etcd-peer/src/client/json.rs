//! How etcd's gateway writes protocol buffers as JSON: 64-bit numbers are strings, bytes are base64, and what
//! is zero or empty is left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number that is a string in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) u64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Number(u64),
        }
        match Form::deserialize(deserializer)? {
            Form::Text(text) => text.parse().map(Self).map_err(serde::de::Error::custom),
            Form::Number(number) => Ok(Self(number)),
        }
    }
}

/// Bytes that are base64 in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// What heads every answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    pub(super) cluster_id: Number,
    pub(super) member_id: Number,
    pub(super) revision: Number,
}

/// An answer of which only the head matters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HeaderOnly {
    pub(super) header: Header,
}

/// A request without anything in it.
#[derive(Debug, Serialize)]
pub(super) struct Empty {}

#[cfg(test)]
mod tests {
    use super::*;

    /// R10: ids above 2^53 survive, whether etcd writes them as strings (gateway) or numbers (peer port).
    #[test]
    fn large_numbers_survive() {
        for text in ["\"18446744073709551615\"", "18446744073709551615"] {
            assert_eq!(serde_json::from_str::<Number>(text).unwrap(), Number(u64::MAX));
        }
        assert_eq!(serde_json::to_string(&Number(u64::MAX)).unwrap(), "\"18446744073709551615\"");
        assert!(serde_json::from_str::<Number>("\"x\"").is_err());
        assert!(serde_json::from_str::<Number>("1.5").is_err());
    }
}
