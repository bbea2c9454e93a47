//! The JSON Schema of `pair.yaml` for editors, and its reference page, both from the types.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use crate::file::PairFile;
use crate::shape::{description, plain, type_of, words};

/// Where the packages put the schema; the modeline of a starter file leads an editor there.
pub const SCHEMA_PATH: &str = "/usr/share/dyad/pair.schema.json";

/// The schema.
pub fn schema() -> Json {
    let mut schema = schemars::schema_for!(PairFile).to_value();
    unwrap_lines(&mut schema);
    schema
}

/// The schema as a file.
pub fn schema_text() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).expect("a schema is JSON");
    text.push('\n');
    text
}

/// Doc comments are broken at the width of the source; descriptions are not.
fn unwrap_lines(schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            if let Some(Json::String(text)) = map.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            map.values_mut().for_each(unwrap_lines);
        }
        Json::Array(list) => list.iter_mut().for_each(unwrap_lines),
        _ => {}
    }
}

/// The reference page: every key, its type, its default and its meaning.
pub fn reference() -> String {
    let root = schema();
    let mut text = String::from(
        "# pair.yaml\n\nGenerated from the types by `make docs`; do not edit. How to write one: \
         [the guide](../guides/pair-file.md). For editors: [pair.schema.json](pair.schema.json).\n",
    );
    add_section(&root, &root, "", &mut text);
    text
}

fn add_section(root: &Json, schema: &Json, path: &str, text: &mut String) {
    let (object, _) = plain(root, schema);
    let title = if path.is_empty() { "The file".to_owned() } else { format!("`{path}`") };
    let _ = write!(text, "\n## {title}\n\n{}\n\n", description(root, object));
    text.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    let empty = Map::new();
    let keys = object["properties"].as_object().unwrap_or(&empty);
    for (key, inner) in keys {
        let is_required =
            object["required"].as_array().is_some_and(|list| list.contains(&json!(key)));
        add_row(root, key, inner, is_required, text);
    }
    for (key, inner) in keys {
        let (inner, _) = plain(root, inner);
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match type_of(inner) {
            "object" => add_section(root, inner, &path, text),
            "array" if type_of(plain(root, &inner["items"]).0) == "object" => {
                add_section(root, &inner["items"], &format!("{path}[]"), text);
            }
            _ => {}
        }
    }
}

fn add_row(root: &Json, key: &str, schema: &Json, is_required: bool, text: &mut String) {
    let (inner, _) = plain(root, schema);
    let mut meaning = description(root, schema).to_owned();
    for choice in inner["oneOf"].as_array().into_iter().flatten() {
        let (Some(word), Some(what)) = (choice["const"].as_str(), choice["description"].as_str())
        else {
            continue;
        };
        let _ = write!(meaning, "<br>`{word}`: {what}");
    }
    let default = match &schema["default"] {
        _ if is_required => "required".to_owned(),
        Json::Null | Json::Object(_) | Json::Array(_) => String::new(),
        Json::String(word) => format!("`{word}`"),
        other => format!("`{other}`"),
    };
    let _ = writeln!(text, "| `{key}` | {} | {default} | {meaning} |", type_name(root, inner));
}

fn type_name(root: &Json, schema: &Json) -> String {
    if let Some(words) = words(schema) {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    match type_of(schema) {
        "array" => format!("list of {}s", type_name(root, plain(root, &schema["items"]).0)),
        "object" => "mapping".to_owned(),
        "string" => "text".to_owned(),
        "integer" => match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
            (Some(least), Some(most)) => format!("number, {least} to {most}"),
            (None, Some(most)) => format!("number, 0 to {most}"),
            _ => "number".to_owned(),
        },
        "boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    }
}
