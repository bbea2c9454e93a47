//! YAML as a tree in which everything knows its place.
//!
//! A serde deserializer stops at the first mistake and has forgotten the line by the time a rule about two
//! distant keys is checked. This tree keeps both, so that all mistakes are shown at once. It takes the part
//! of YAML 1.2 that a configuration needs: no anchors, no tags, one document, bounded in size and depth.

use granit_parser::{Event, Parser, ScalarStyle, Span};

use crate::problem::{Position, Problem};

/// No description of a pair is longer than this.
pub const FILE_BYTES_MAX: usize = 256 * 1024;
/// Nor nested deeper.
const DEPTH_MAX: usize = 32;
/// Nor made of more parts.
const NODES_MAX: usize = 20_000;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Where it begins.
    pub(crate) at: Position,
    /// What it is.
    pub(crate) value: Value,
}

/// A value, typed by the rules of YAML 1.2's core schema: `no` is a text, not a lie.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Another number, or one that is too large.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the file's order.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) at: Position,
    /// The value.
    pub(crate) value: Node,
}

impl Value {
    /// What kind of value it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Integer(_) => "a whole number",
            Self::Float(number) if number.is_infinite() => "a number this large",
            Self::Float(_) => "a number with a fraction",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl Node {
    /// The value of this key, if this is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => {
                entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
            }
            _ => None,
        }
    }
}

/// Reads a file's bytes. What is wrong does not always prevent a tree: a key that stands twice is reported
/// and its first value kept.
pub(crate) fn parse(bytes: &[u8]) -> (Option<Node>, Vec<Problem>) {
    let text = match text_of(bytes) {
        Ok(text) => text,
        Err(problem) => return (None, vec![problem]),
    };
    if let Some(problem) = tab_indentation(text) {
        return (None, vec![problem]);
    }
    let options = granit_parser::options! {
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
        disallow_directives: true,
    };
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(text, options),
        problems: Vec::new(),
        nodes: 0,
    };
    let tree = builder.document();
    let mut problems = builder.problems;
    let tree = tree.map_err(|problem| problems.push(problem)).ok().flatten();
    if tree.is_none() && problems.is_empty() {
        problems.push(Problem::error("empty", None, "", "the file is empty"));
    }
    (tree, problems)
}

fn position_of(bytes: &[u8], offset: usize) -> Position {
    let before = &bytes[..offset.min(bytes.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
    Position { line: before.split(|byte| *byte == b'\n').count(), column }
}

/// The text of the file, if it is text.
fn text_of(bytes: &[u8]) -> Result<&str, Problem> {
    if bytes.len() > FILE_BYTES_MAX {
        let message = format!(
            "the file has {} bytes; a description of a pair has at most {FILE_BYTES_MAX}",
            bytes.len()
        );
        return Err(Problem::error("too-large", None, "", message).hint("is it the right file?"));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(
            Problem::error("not-utf8", None, "", "the file is UTF-16").hint("save it as UTF-8")
        );
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let text = str::from_utf8(bytes).map_err(|error| {
        let at = position_of(bytes, error.valid_up_to());
        Problem::error("not-utf8", Some(at), "", "a byte here is not UTF-8")
            .hint("save the file as UTF-8")
    })?;
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    match text.find(is_control) {
        None => Ok(text),
        Some(offset) => {
            let code = text[offset..].chars().next().map_or(0, u32::from);
            let message = format!("there is a control character here (U+{code:04X})");
            let at = position_of(bytes, offset);
            Err(Problem::error("control-character", Some(at), "", message)
                .hint("is it a text file? remove the character"))
        }
    }
}

/// A tab in the indentation, which YAML forbids and editors hide.
fn tab_indentation(text: &str) -> Option<Problem> {
    text.lines().enumerate().find_map(|(line, content)| {
        let indentation = content.len() - content.trim_start_matches([' ', '\t']).len();
        let rest = &content[indentation..];
        let tab = content[..indentation].find('\t').filter(|_| !rest.is_empty())?;
        let at = Position { line: line + 1, column: tab + 1 };
        (!rest.starts_with('#')).then(|| {
            Problem::error("tab", Some(at), "", "the line is indented with a tab")
                .hint("YAML takes spaces only")
        })
    })
}

/// The keys that lead to a place.
#[derive(Default)]
struct Path {
    text: String,
    depth: usize,
}

impl Path {
    fn key(&self, key: &str) -> Self {
        Self { text: key_path(&self.text, key), depth: self.depth + 1 }
    }

    fn item(&self, position: usize) -> Self {
        Self { text: format!("{}[{position}]", self.text), depth: self.depth + 1 }
    }
}

/// The path of a key inside a mapping.
pub(crate) fn key_path(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

struct Builder<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
    problems: Vec<Problem>,
    nodes: usize,
}

fn start(span: Span) -> Position {
    // The parser counts lines from 1 and columns from 0.
    Position { line: span.start.line(), column: span.start.col() + 1 }
}

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Position)>, Problem> {
        match self.events.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => Ok(Some((event, start(span)))),
            Some(Err(error)) => {
                let mark = error.marker();
                let at = Position { line: mark.line(), column: mark.col() + 1 };
                let message = format!("this is not YAML: {}", error.info());
                Err(Problem::error("syntax", Some(at), "", message)
                    .hint("the mistake may be on the line before: a missing colon, quote or space"))
            }
        }
    }

    fn document(&mut self) -> Result<Option<Node>, Problem> {
        let mut tree = None;
        while let Some((event, at)) = self.next()? {
            match event {
                Event::DocumentStart(..) if tree.is_some() => {
                    return Err(Problem::error(
                        "second-document",
                        Some(at),
                        "",
                        "a second YAML document begins here",
                    )
                    .hint("one file describes one pair"));
                }
                Event::DocumentStart(..)
                | Event::DocumentEnd
                | Event::StreamStart
                | Event::StreamEnd => {}
                event => {
                    let node = self.node(event, at, &Path::default())?;
                    tree = Some(node).filter(|node| node.value != Value::Null);
                }
            }
        }
        Ok(tree)
    }

    fn node(&mut self, event: Event<'a>, at: Position, path: &Path) -> Result<Node, Problem> {
        self.nodes += 1;
        if path.depth > DEPTH_MAX || self.nodes > NODES_MAX {
            let message = "the file is nested too deeply or has too many parts";
            return Err(
                Problem::error("too-large", Some(at), "", message).hint("is it the right file?")
            );
        }
        if event.tag().is_some() {
            self.problems.push(
                Problem::error("tag", Some(at), &path.text, "YAML tags (`!...`) are not used here")
                    .hint("write the plain value"),
            );
        }
        if event.anchor_id().is_some() || event.is_alias() {
            let message = "YAML anchors and aliases (`&...`, `*...`) are not used here";
            return Err(Problem::error("anchor", Some(at), &path.text, message)
                .hint("write the value out at each place"));
        }
        let value = match event {
            Event::Scalar(text, style, ..) => scalar(&text, style),
            Event::SequenceStart(..) => self.list(path)?,
            Event::MappingStart(..) => self.map(path)?,
            _ => return Err(Problem::error("syntax", Some(at), "", "a value is missing here")),
        };
        Ok(Node { at, value })
    }

    fn list(&mut self, path: &Path) -> Result<Value, Problem> {
        let mut items = Vec::new();
        while let Some((event, at)) = self.next()? {
            if event == Event::SequenceEnd {
                break;
            }
            let item = path.item(items.len());
            items.push(self.node(event, at, &item)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, path: &Path) -> Result<Value, Problem> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((event, at)) = self.next()? {
            if event == Event::MappingEnd {
                break;
            }
            let key = self.key(event, at, path)?;
            let inside = path.key(&key);
            let Some((event, value_at)) = self.next()? else { break };
            let value = self.node(event, value_at, &inside)?;
            match entries.iter().find(|entry| entry.key == key) {
                Some(first) => {
                    let message = format!("the key stands twice; first on line {}", first.at.line);
                    self.problems.push(
                        Problem::error("duplicate-key", Some(at), inside.text, message)
                            .hint("keep one of them"),
                    );
                }
                None => entries.push(Entry { key, at, value }),
            }
        }
        Ok(Value::Map(entries))
    }

    fn key(&mut self, event: Event<'a>, at: Position, path: &Path) -> Result<String, Problem> {
        if let Event::Scalar(text, ..) = &event
            && event.anchor_id().is_none()
            && event.tag().is_none()
        {
            return Ok(text.to_string());
        }
        self.node(event, at, &path.key("?"))?;
        Err(Problem::error("syntax", Some(at), "", "a key must be a plain word"))
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, radix) = if let Some(hex) = text.strip_prefix("0x") {
        (hex, 16)
    } else if let Some(octal) = text.strip_prefix("0o") {
        (octal, 8)
    } else {
        (unsigned, 10)
    };
    if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
        let sign = if text.starts_with('-') { -1 } else { 1 };
        return match i64::from_str_radix(digits, radix) {
            Ok(number) => Value::Integer(sign * number),
            Err(_) => Value::Float(f64::INFINITY),
        };
    }
    let is_float = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.contains(|c: char| c.is_ascii_digit())
        && unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    match text.parse() {
        Ok(number) if is_float => Value::Float(number),
        _ => Value::Text(text.to_owned()),
    }
}
