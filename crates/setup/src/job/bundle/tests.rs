//! What is read and what is put in place.

use super::*;

/// A job that has read a bundle with these files.
pub(in super::super) fn work_with<'a>(
    here: &'a Here,
    place: &'a dyad_node::Place,
    files: &[(&str, &str)],
) -> Work<'a> {
    let mut work = Work::new(here, place, None, None);
    work.source = Some(source(files));
    work
}

fn here(root: &Path) -> Here {
    Here { host_name: "node-a".into(), root: root.to_owned() }
}

fn source(files: &[(&str, &str)]) -> Source {
    let text = include_str!("../../../../pair-file/tests/good/usual.yaml");
    let pair = dyad_pair_file::load(text.as_bytes()).pair.unwrap();
    let files = files.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()));
    Source { pair, root: None, cib: Vec::new(), files: files.collect(), fingerprint: 7 }
}

/// A file is written once, with the permissions that it must have; what others could read is closed.
#[test]
fn files_are_written_once_and_closed() {
    let root = tempfile::tempdir().unwrap();
    let here = here(root.path());
    for (path, mode) in [
        ("/etc/corosync/authkey", 0o600),
        ("/etc/dyad/bmc-node-a", 0o600),
        ("/etc/dyad/pki/peer.key", 0o600),
        ("/etc/dyad/bmc-node-a-ca.pem", 0o644),
        ("/etc/dyad/pair.json", 0o644),
    ] {
        let path = Path::new(path);
        let found = || fs::metadata(here.path(path)).unwrap().permissions().mode() & 0o777;
        assert!(put(&here, path, b"content").unwrap(), "{}", path.display());
        assert!(!put(&here, path, b"content").unwrap(), "{}", path.display());
        assert_eq!(found(), mode, "{}", path.display());
        fs::set_permissions(here.path(path), fs::Permissions::from_mode(0o666)).unwrap();
        protect_secrets(&here).unwrap();
        assert_eq!(found(), if mode == 0o600 { 0o600 } else { 0o666 }, "{}", path.display());
    }
}

/// What does not belong into a bundle is refused by name, and so is what is not there.
#[test]
fn only_a_bundle_is_read() {
    let root = tempfile::tempdir().unwrap();
    let missing = read_directory(&root.path().join("none")).unwrap_err();
    assert!(missing.why.contains("there is no directory"), "{}", missing.why);
    fs::create_dir_all(root.path().join("etc/dyad")).unwrap();
    fs::write(root.path().join("etc/dyad/pair.json"), "{}").unwrap();
    assert_eq!(read_directory(root.path()).unwrap().len(), 1);
    fs::create_dir_all(root.path().join("etc/dyadic")).unwrap();
    fs::write(root.path().join("etc/dyadic/x"), "").unwrap();
    let stray = read_directory(root.path()).unwrap_err();
    assert!(stray.why.contains("/etc/dyadic/x"), "{}", stray.why);
}

/// R10: node1 is not node10; the message names both nodes and this machine.
#[test]
fn another_nodes_bundle_is_refused() {
    let pair = serde_json::to_vec(&source(&[]).pair).unwrap();
    assert!(parse(&pair, "node-a").is_ok());
    for other in ["node-a1", "node", "NODE-A", ""] {
        let trouble = parse(&pair, other).unwrap_err();
        assert_eq!(trouble.kind, FailureKind::NotFit);
        assert!(trouble.why.contains("node-a and node-b"), "{}", trouble.why);
    }
    assert!(parse(b"{}", "node-a").is_err());
}

/// A pair that has begun keeps its description, whether the new one comes as a bundle or was unpacked over it.
#[test]
fn a_changed_description_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let here = here(root.path());
    put(&here, Path::new(PAIR), b"old").unwrap();
    assert!(refuse_changes(&here, &source(&[(PAIR, "old")]), None).is_ok());
    let unit = "/etc/systemd/system/dyad-etcd.service";
    assert!(refuse_changes(&here, &source(&[(PAIR, "old"), (unit, "new")]), None).is_ok());
    let account = "/etc/dyad/bmc-node-a";
    put(&here, Path::new(account), b"rotated").unwrap();
    assert!(refuse_changes(&here, &source(&[(account, "first")]), None).is_ok());
    let trouble = refuse_changes(&here, &source(&[(PAIR, "new")]), None).unwrap_err();
    assert_eq!(trouble.kind, FailureKind::Refused);
    assert!(trouble.hint.unwrap().contains("dyad apply"));
    assert!(refuse_changes(&here, &source(&[]), Some("0000000000000007")).is_ok());
    assert!(refuse_changes(&here, &source(&[]), Some("0000000000000008")).is_err());
}

/// A unit that the package brings is not covered by a copy that no update reaches.
#[test]
fn packaged_units_count() {
    let root = tempfile::tempdir().unwrap();
    let here = here(root.path());
    let unit = Path::new("/etc/systemd/system/dyad-etcd.service");
    assert!(!is_packaged(&here, unit));
    put(&here, Path::new("/usr/lib/systemd/system/dyad-etcd.service"), b"").unwrap();
    assert!(is_packaged(&here, unit));
    assert!(!is_packaged(&here, Path::new("/etc/dyad/dyad-etcd.service")));
}
