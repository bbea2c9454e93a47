//! A bundle as Ignition 3.4.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use crate::bundle::{Bundle, Item};

/// The version that every supported release reads.
pub(super) const VERSION: &str = "3.4.0";

pub(super) fn render(bundle: &Bundle) -> String {
    let document = json!({
        "ignition": { "version": VERSION },
        "storage": { "files": files(bundle, Path::new("/")), "links": links(bundle) },
        "systemd": { "units": units(bundle) },
    });
    let mut text = serde_json::to_string_pretty(&document).expect("a value is JSON");
    text.push('\n');
    text
}

/// The unit that a path is the file of, if it is one; not its drop-ins.
fn unit_name(path: &Path) -> Option<&str> {
    let name = path.strip_prefix("/etc/systemd/system").ok()?.to_str()?;
    (!name.contains('/')).then_some(name)
}

fn is_unit(path: &Path) -> bool {
    unit_name(path).is_some()
}

/// Files, each below `root`; units apart.
fn files(bundle: &Bundle, root: &Path) -> Vec<Json> {
    let files = bundle.items.iter().filter(|(path, _)| !is_unit(path));
    files
        .filter_map(|(path, item)| match item {
            Item::File { mode, content } => Some(file(&root.join(path), *mode, content)),
            Item::Link(_) => None,
        })
        .collect()
}

/// One file.
pub(super) fn file(path: &Path, mode: u32, content: &[u8]) -> Json {
    json!({
        "path": path.display().to_string(),
        "mode": mode,
        "overwrite": true,
        "contents": { "source": format!("data:;base64,{}", STANDARD.encode(content)) },
    })
}

/// Links, but for those below /usr, which is read-only where Ignition runs: the agents come with the image.
fn links(bundle: &Bundle) -> Vec<Json> {
    let links = bundle
        .items
        .iter()
        .filter(|(path, _)| !path.starts_with("/usr") && !path.starts_with("/etc/systemd/system"));
    links
        .filter_map(|(path, item)| match item {
            Item::Link(target) => Some(json!({
                "path": path.display().to_string(),
                "target": target.display().to_string(),
                "overwrite": true,
            })),
            Item::File { .. } => None,
        })
        .collect()
}

fn units(bundle: &Bundle) -> Vec<Json> {
    let units = bundle.items.iter().filter_map(|(path, item)| match item {
        Item::File { content, .. } => Some((unit_name(path)?, String::from_utf8_lossy(content))),
        Item::Link(_) => None,
    });
    units
        .map(|(name, contents)| {
            if contents.contains("[Install]") {
                json!({ "name": name, "enabled": true, "contents": contents })
            } else {
                json!({ "name": name, "contents": contents })
            }
        })
        .collect()
}
