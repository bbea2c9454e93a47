//! The CIB that Pacemaker runs with, beside the one that was rendered.

use std::path::Path;

use super::{TOOL_LIMIT, Trouble, tool};

/// Changes in the live CIB exactly what differs between the two renderings: what people and Pacemaker have added
/// stays.
pub(super) fn patch_cib(old: &Path, new: &Path) -> Result<(), Trouble> {
    let (old, new) = (old.display().to_string(), new.display().to_string());
    let arguments = ["--no-version", "--original", old.as_str(), "--new", new.as_str()];
    let mut diff = dyad_program::command("crm_diff", arguments);
    let found =
        dyad_program::run(&mut diff, "", TOOL_LIMIT).map_err(|error| Trouble::failed(&error))?;
    if found.stdout.trim().is_empty() {
        return Ok(());
    }
    tool("cibadmin", &["--patch", "--xml-pipe"], &found.stdout).map(drop)
}

/// The resources that Pacemaker has now.
pub(super) fn live_resources() -> Result<String, Trouble> {
    tool("cibadmin", &["--query", "--scope", "resources"], "")
}

/// The first resource parameter of the rendered CIB that the live one does not have with the same value.
pub(super) fn missing_value(wanted: &str, live: &str) -> Option<String> {
    let parse = |text| roxmltree::Document::parse(text).ok();
    let (Some(wanted), Some(live)) = (parse(wanted), parse(live)) else {
        return Some("CIB".to_owned());
    };
    let resources = wanted.descendants().find(|element| element.has_tag_name("resources"))?;
    let values = resources.descendants().filter(|element| element.has_tag_name("nvpair"));
    values
        .filter_map(|value| Some((value.attribute("id")?, value.attribute("value")?)))
        .find(|(id, value)| {
            let mut found =
                live.descendants().filter(|element| element.attribute("id") == Some(id));
            !found.any(|element| element.attribute("value") == Some(value))
        })
        .map(|(id, _)| id.to_owned())
}
