//! The JSON Schema of `dyad status -o json`, from the types.

use serde_json::{Value, json};

use crate::document::Status;

/// The schema, as a file.
pub fn schema_text() -> String {
    let mut schema = schemars::schema_for!(Status).to_value();
    // The document says what it is and in which version, as every document of the command line does.
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.insert("apiVersion".into(), json!({ "const": "dyad/v1" }));
        properties.insert("kind".into(), json!({ "const": "Status" }));
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.extend([json!("apiVersion"), json!("kind")]);
    }
    unwrap_lines(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

/// Doc comments are broken at the width of the source; descriptions are not.
fn unwrap_lines(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            map.values_mut().for_each(unwrap_lines);
        }
        Value::Array(list) => list.iter_mut().for_each(unwrap_lines),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use dyad_core::state::State;

    /// The schema lists every state by the word that is written, and no other.
    #[test]
    fn the_schema_knows_every_state() {
        let text = super::schema_text();
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        let words = &schema["$defs"]["StateWord"];
        let mut listed: Vec<String> = words["enum"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap().to_owned())
            .collect();
        let mut written: Vec<String> = State::ALL
            .iter()
            .map(|state| serde_json::to_value(state).unwrap().as_str().unwrap().to_owned())
            .collect();
        listed.sort();
        written.sort();
        assert_eq!(listed, written);
    }
}
