//! A place in the tree that knows its path.

use crate::problem::Problem;
use crate::yaml::{Node, Value, key_path};

/// A value of the tree with the keys that lead to it.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) path: String,
    pub(crate) node: &'a Node,
}

impl<'a> Cursor<'a> {
    /// The top of the file.
    pub(crate) fn top(node: &'a Node) -> Self {
        Self { path: String::new(), node }
    }

    /// The value of this key; an empty one counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        let node = self.node.get(key).filter(|node| node.value != Value::Null)?;
        Some(Self { path: key_path(&self.path, key), node })
    }

    /// The value at the end of these keys.
    pub(crate) fn at(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(self.clone(), |cursor, key| cursor.get(key))
    }

    /// The entries, if it is a list.
    pub(crate) fn items(&self) -> Vec<Self> {
        let Value::List(items) = &self.node.value else { return Vec::new() };
        let item = |(position, node)| Self { path: format!("{}[{position}]", self.path), node };
        items.iter().enumerate().map(item).collect()
    }

    /// The entries of this key.
    pub(crate) fn list(&self, key: &str) -> Vec<Self> {
        self.get(key).map(|list| list.items()).unwrap_or_default()
    }

    /// The text, if it is one that somebody has filled in.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) if placeholder(text).is_none() => Some(text.as_str()),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self.node.value {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// An error at this place.
    pub(crate) fn error(&self, id: &'static str, message: impl Into<String>) -> Problem {
        Problem::error(id, Some(self.node.at), &self.path, message)
    }

    /// A warning at this place.
    pub(crate) fn warning(&self, id: &'static str, message: impl Into<String>) -> Problem {
        Problem::warning(id, Some(self.node.at), &self.path, message)
    }

    /// Every text below this place.
    pub(crate) fn texts(&self) -> Vec<(Self, &'a str)> {
        match &self.node.value {
            Value::Text(text) => vec![(self.clone(), text.as_str())],
            Value::List(_) => self.items().iter().flat_map(Self::texts).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| Self { path: key_path(&self.path, &entry.key), node: &entry.value })
                .flat_map(|inner| inner.texts())
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// What is still to be filled in: `<the address of ...>` stands for it.
pub(crate) fn placeholder(text: &str) -> Option<&str> {
    text.strip_prefix('<')?.strip_suffix('>')
}
