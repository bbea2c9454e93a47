//! A JSON value as block YAML. Every text is quoted, so nothing in it can be read as anything else.

use std::fmt::Write as _;

use serde_json::Value as Json;

pub(super) fn render(value: &Json) -> String {
    let mut text = String::new();
    write_block(value, 0, &mut text);
    text
}

/// A mapping or list, each entry on lines of its own.
fn write_block(value: &Json, indent: usize, text: &mut String) {
    match value {
        Json::Object(map) => {
            for (key, inner) in map {
                let _ = write!(text, "{:indent$}{key}:", "");
                write_value(inner, indent + 2, text);
            }
        }
        Json::Array(list) => {
            for inner in list {
                // The first key of a mapping stands behind the dash.
                let mut entry = String::new();
                write_block(inner, indent + 2, &mut entry);
                let _ = write!(text, "{:indent$}- {}", "", entry.trim_start());
            }
        }
        scalar => {
            let _ = writeln!(text, "{:indent$}{scalar}", "");
        }
    }
}

fn write_value(value: &Json, indent: usize, text: &mut String) {
    match value {
        Json::Object(map) if !map.is_empty() => {
            text.push('\n');
            write_block(value, indent, text);
        }
        Json::Array(list) if !list.is_empty() => {
            text.push('\n');
            write_block(value, indent, text);
        }
        Json::String(lines) if lines.contains('\n') && is_plain(lines) => {
            text.push_str(" |\n");
            for line in lines.lines() {
                let line = format!("{:indent$}{line}", "");
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        // JSON's scalars are YAML's.
        scalar => {
            let _ = writeln!(text, " {scalar}");
        }
    }
}

/// Whether a text survives as a block: plain lines, exactly one line break at the end.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || (' '..='~').contains(&c))
        && text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n'])
        && text.lines().all(|line| line.trim_end() == line)
}
