//! Whether a tree has the shape that the schema describes: known keys, required keys, types, ranges.
//!
//! The schema is the published one, generated from the types, so an editor and `dyad check` agree. Every
//! mistake is collected; the parts that are sound are handed on.

use serde_json::{Map, Value as Json, json};

use crate::problem::{Position, Problem};
use crate::suggest::suggest;
use crate::yaml::{Entry, Node, Value, key_path};

/// Checks a tree. What is returned beside the problems has the sound parts only.
pub(crate) fn check(tree: &Node, schema: &Json) -> (Json, Vec<Problem>) {
    let mut checker = Checker { root: schema, problems: Vec::new() };
    let sound = checker.node(tree, schema, "").unwrap_or_else(|| json!({}));
    (sound, checker.problems)
}

struct Checker<'a> {
    root: &'a Json,
    problems: Vec<Problem>,
}

/// A schema without its indirections, and whether nothing is accepted in its place: follows references, and
/// takes `anyOf: [X, null]` for an optional X.
pub(crate) fn plain<'a>(root: &'a Json, schema: &'a Json) -> (&'a Json, bool) {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return plain(root, &root["$defs"][name]);
    }
    if let Some(choices) = schema["anyOf"].as_array()
        && let Some(choice) = choices.iter().find(|choice| choice["type"] != "null")
    {
        return (plain(root, choice).0, true);
    }
    let nullable = schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    (schema, nullable)
}

/// The words that a schema allows, if it is a choice of words.
pub(crate) fn words(schema: &Json) -> Option<Vec<&str>> {
    if let Some(word) = schema["const"].as_str() {
        return Some(vec![word]);
    }
    if let Some(list) = schema["enum"].as_array() {
        return list.iter().map(Json::as_str).collect();
    }
    let choices = schema["oneOf"].as_array()?;
    let lists: Option<Vec<_>> = choices.iter().map(words).collect();
    Some(lists?.concat())
}

/// The type that a schema asks for, apart from null.
pub(crate) fn type_of(schema: &Json) -> &str {
    match &schema["type"] {
        Json::String(name) => name,
        Json::Array(names) => {
            names.iter().filter_map(Json::as_str).find(|name| *name != "null").unwrap_or_default()
        }
        _ => "",
    }
}

fn in_words(wanted: &str) -> &str {
    match wanted {
        "object" => "a mapping",
        "array" => "a list",
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        other => other,
    }
}

impl Checker<'_> {
    fn report(&mut self, problem: Problem) -> Option<Json> {
        self.problems.push(problem);
        None
    }

    fn node(&mut self, node: &Node, schema: &Json, path: &str) -> Option<Json> {
        let (schema, nullable) = plain(self.root, schema);
        if node.value == Value::Null && nullable {
            return Some(Json::Null);
        }
        if let Some(words) = words(schema) {
            return self.word(node, &words, path);
        }
        match (type_of(schema), &node.value) {
            ("object", Value::Map(entries)) => Some(self.map(entries, node.at, schema, path)),
            ("array", Value::List(items)) => Some(self.list(items, node.at, schema, path)),
            ("string", Value::Text(text)) => self.text(text, node.at, schema, path),
            ("integer", Value::Integer(number)) => self.integer(*number, node.at, schema, path),
            ("boolean", Value::Bool(yes)) => Some(json!(yes)),
            (wanted, found) => {
                let hint = mismatch_hint(wanted, found, path);
                let message = format!("{} is wanted here, not {}", in_words(wanted), found.kind());
                let problem = Problem::error("wrong-type", Some(node.at), path, message);
                self.report(Problem { hint, ..problem })
            }
        }
    }

    fn word(&mut self, node: &Node, words: &[&str], path: &str) -> Option<Json> {
        let list = words.join(", ");
        let Value::Text(text) = &node.value else {
            let message = format!("one of {list} is wanted here, not {}", node.value.kind());
            return self.report(Problem::error("wrong-type", Some(node.at), path, message));
        };
        if words.contains(&text.as_str()) {
            return Some(json!(text));
        }
        let message = if words.len() == 1 {
            format!("`{text}` is not {list}")
        } else {
            format!("`{text}` is not one of {list}")
        };
        let hint = match suggest(text, words.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write {list}").replace(", ", " or "),
        };
        self.report(Problem::error("unknown-word", Some(node.at), path, message).hint(hint))
    }

    fn map(&mut self, found: &[Entry], at: Position, schema: &Json, path: &str) -> Json {
        let empty = Map::new();
        let known = schema["properties"].as_object().unwrap_or(&empty);
        let mut sound = Map::new();
        for Entry { key, at, value } in found {
            match known.get(key) {
                None => {
                    let hint = self.unknown_key_hint(key, known);
                    self.problems.push(
                        Problem::error(
                            "unknown-key",
                            Some(*at),
                            key_path(path, key),
                            "unknown key",
                        )
                        .hint(hint),
                    );
                }
                Some(inner) => {
                    if let Some(value) = self.node(value, inner, &key_path(path, key)) {
                        sound.insert(key.clone(), value);
                    }
                }
            }
        }
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            if !found.iter().any(|entry| entry.key == key) {
                let what = first_sentence(description(self.root, &known[key]));
                self.problems.push(
                    Problem::error(
                        "missing-key",
                        Some(at),
                        key_path(path, key),
                        "the key is missing",
                    )
                    .hint(format!("add it: {what}")),
                );
            }
        }
        Json::Object(sound)
    }

    fn unknown_key_hint(&self, key: &str, known: &Map<String, Json>) -> String {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        if let Some(meant) = suggest(key, names.iter().copied()) {
            return format!("did you mean `{meant}`?");
        }
        let mut homes = Vec::new();
        homes_of(self.root, self.root, key, "", &mut homes);
        match homes.first() {
            Some(home) if home.is_empty() => {
                "it belongs at the top of the file, without indentation".to_owned()
            }
            Some(home) => format!("it belongs under `{home}`"),
            None => format!("known here: {}", names.join(", ")),
        }
    }

    fn list(&mut self, items: &[Node], at: Position, schema: &Json, path: &str) -> Json {
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        let count = items.len() as u64;
        if count < least || count > most {
            let wanted = match (least, most) {
                (least, most) if least == most => format!("exactly {least}"),
                (least, u64::MAX) => format!("{least} or more"),
                (0, most) => format!("at most {most}"),
                (least, most) => format!("{least} to {most}"),
            };
            let message = format!("the list has {count} entries; it takes {wanted}");
            let hint = if path == "nodes" { "a pair has two nodes" } else { "add or remove some" };
            self.problems.push(Problem::error("wrong-count", Some(at), path, message).hint(hint));
        }
        let sound = items.iter().enumerate().filter_map(|(position, item)| {
            self.node(item, &schema["items"], &format!("{path}[{position}]"))
        });
        Json::Array(sound.collect())
    }

    fn text(&mut self, text: &str, at: Position, schema: &Json, path: &str) -> Option<Json> {
        let length = text.chars().count() as u64;
        if text.trim().is_empty() {
            return self.report(Problem::error("empty", Some(at), path, "the text is empty"));
        }
        match schema["maxLength"].as_u64() {
            Some(most) if length > most => {
                let message = format!("the text has {length} characters; it may have {most}");
                self.report(Problem::error("too-long", Some(at), path, message))
            }
            _ => Some(json!(text)),
        }
    }

    fn integer(&mut self, number: i64, at: Position, schema: &Json, path: &str) -> Option<Json> {
        let least = schema["minimum"].as_i64().unwrap_or(0);
        let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
        if (least..=most).contains(&number) {
            return Some(json!(number));
        }
        let unit = if path.ends_with("Ms") { " ms" } else { "" };
        let message =
            format!("{number} is out of range; it must lie between {least} and {most}{unit}");
        self.report(Problem::error("out-of-range", Some(at), path, message))
    }
}

/// The description of a key: its own, or that of its type.
pub(crate) fn description<'a>(root: &'a Json, schema: &'a Json) -> &'a str {
    schema["description"]
        .as_str()
        .or_else(|| plain(root, schema).0["description"].as_str())
        .unwrap_or_default()
}

/// The first sentence of a description, to go on in the middle of one.
fn first_sentence(text: &str) -> String {
    let sentence = text.find(". ").map_or(text, |end| &text[..end]).trim_end_matches('.');
    let mut letters = sentence.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}

/// Where else in the file a key of this name belongs.
fn homes_of(root: &Json, schema: &Json, key: &str, path: &str, homes: &mut Vec<String>) {
    let (schema, _) = plain(root, schema);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        if name == key {
            homes.push(path.to_owned());
        }
        homes_of(root, inner, key, &key_path(path, name), homes);
    }
    if schema["items"].is_object() {
        homes_of(root, &schema["items"], key, &format!("{path}[]"), homes);
    }
}

fn mismatch_hint(wanted: &str, found: &Value, path: &str) -> Option<String> {
    let hint = match (wanted, found) {
        ("string", Value::Integer(_) | Value::Float(_) | Value::Bool(_)) => {
            "put it in quotes".to_owned()
        }
        ("boolean", Value::Text(_)) => "write true or false".to_owned(),
        ("integer", Value::Text(_) | Value::Float(_)) if path.ends_with("Ms") => {
            "write the milliseconds as a plain number: 3000".to_owned()
        }
        ("integer", Value::Text(_)) => "write a plain number, without quotes".to_owned(),
        ("array", Value::Text(_)) => {
            "write a list: each entry on a line of its own after `- `".to_owned()
        }
        ("array", Value::Map(_)) => "put `- ` before each entry".to_owned(),
        (_, Value::Null) => "write a value after the colon, or remove the key".to_owned(),
        _ => return None,
    };
    Some(hint)
}
