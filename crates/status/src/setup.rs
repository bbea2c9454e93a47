//! How far the set-up of a node has come, from the record that `dyad setup` keeps.

use std::path::Path;

use dyad_node::record;
use serde_json::Value;

use crate::document::Setup;

/// A set-up that was begun and is not done; nothing if it is done, or was never begun.
pub fn unfinished(state: &Path) -> Option<Setup> {
    let record: Value = record::read(&state.join("setup.json")).ok()??;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let steps = record["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    match record["result"].as_str()? {
        "ready" => None,
        "failed" => {
            let failure = &record["failure"];
            let hint = failure["hint"].as_str().map(str::to_owned);
            let (step, detail) = (word(&failure["step"]), word(&failure["why"]));
            Some(Setup { step, detail, failed: true, hint })
        }
        _ => {
            let current = steps.iter().find(|step| step["result"] != "done");
            let (step, detail) = current
                .map_or_else(Default::default, |step| (word(&step["name"]), word(&step["detail"])));
            Some(Setup { step, detail, failed: false, hint: None })
        }
    }
}

/// The same in one sentence.
pub fn words(setup: &Setup) -> String {
    let verb = if setup.failed { "failed at" } else { "is at" };
    match setup.detail.as_str() {
        "" => format!("the set-up of this node {verb} \"{}\"", setup.step),
        detail => format!("the set-up of this node {verb} \"{}\": {detail}", setup.step),
    }
}

/// Corosync's key.
pub const AUTHKEY: &str = "/etc/corosync/authkey";

/// A change that waits on this node to be ended, in words; with a new key of Corosync, which of the two is in force.
pub fn waiting(state: &Path, key: &Path, peer: &str) -> Option<String> {
    let next = state.join("next");
    if !next.is_dir() {
        return None;
    }
    let far = if state.join("next-agreed.json").exists() {
        format!("a change that {peer} has agreed to is not ended")
    } else {
        format!("a change waits for {peer} to have it too")
    };
    let read = |path: &Path| std::fs::read(path).ok();
    let new = read(&next.join(AUTHKEY.trim_start_matches('/')));
    let (before, now) = (read(&state.join("authkey-before")), read(key));
    let in_force = match (new, now) {
        (Some(new), Some(now)) if new != now => "; Corosync's old key is in force here",
        (Some(new), Some(now)) if new == now && before.is_some_and(|before| before != new) => {
            "; Corosync's new key is in force here"
        }
        _ => "",
    };
    Some(format!("{far}{in_force}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that was cut off is told with the key that is in force; none is no news.
    #[test]
    fn a_change_that_waits_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let (state, key) = (directory.path(), directory.path().join("authkey"));
        let told = || waiting(state, &key, "node-b");
        assert_eq!(told(), None);
        let next = state.join("next/etc/corosync");
        std::fs::create_dir_all(&next).unwrap();
        std::fs::write(next.join("authkey"), "old").unwrap();
        std::fs::write(&key, "old").unwrap();
        assert_eq!(told().unwrap(), "a change waits for node-b to have it too");
        std::fs::write(next.join("authkey"), "new").unwrap();
        assert!(told().unwrap().ends_with("old key is in force here"));
        std::fs::write(state.join("next-agreed.json"), "").unwrap();
        std::fs::write(state.join("authkey-before"), "old").unwrap();
        assert!(told().unwrap().starts_with("a change that node-b has agreed to is not ended"));
        std::fs::write(&key, "new").unwrap();
        assert!(told().unwrap().ends_with("new key is in force here"));
    }

    fn of(text: &str) -> Option<Setup> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("setup.json"), text).unwrap();
        unfinished(directory.path())
    }

    /// The step that runs is told, or the one that failed with what to do; a set-up that is done is no news.
    #[test]
    fn an_unfinished_set_up_is_told() {
        let steps = r#"[{"name":"packages","result":"done","detail":""},
            {"name":"join","result":"running","detail":"waiting for node-b"}]"#;
        let running = of(&format!(r#"{{"result":"running","steps":{steps}}}"#)).unwrap();
        assert_eq!(words(&running), "the set-up of this node is at \"join\": waiting for node-b");
        let failed = of(
            r#"{"result":"failed","steps":[],"failure":{"step":"bmc","why":"no answer","hint":"dyad check"}}"#,
        )
        .unwrap();
        assert!(failed.failed && failed.hint.as_deref() == Some("dyad check"));
        assert_eq!(of(r#"{"result":"ready","steps":[]}"#), None);
        assert_eq!(of("torn"), None);
        assert_eq!(unfinished(Path::new("/nonexistent")), None);
    }
}
