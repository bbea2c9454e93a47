//! What is rendered from a pair file, in every form.

mod common;

use std::path::Path;

use base64::Engine as _;
use common::{PASSWORDS, Site, files_below, shown};
use dyad_setup::Error;
use dyad_setup::bundle::{Bundle, Item};
use dyad_setup::output::{Form, write};

const FORMS: [Form; 4] = [Form::Directory, Form::Tar, Form::Ignition, Form::MachineConfig];

/// One pair file, golden bundles: what each node gets, where, with which permissions.
#[test]
fn bundles_are_as_recorded() {
    for name in ["usual", "alike", "ipv6", "podman"] {
        let bundles = Site::new(name).render().unwrap();
        insta::assert_snapshot!(format!("bundle-{name}"), shown(&bundles[0]));
        let same = |path: &str| {
            let content = |bundle: &Bundle| format!("{:?}", bundle.items.get(Path::new(path)));
            content(&bundles[0]) == content(&bundles[1])
        };
        for path in ["/etc/corosync/corosync.conf", "/etc/corosync/authkey", "/etc/dyad/cib.xml"] {
            assert!(same(path), "{name}: {path} must be the same on both nodes");
        }
    }
}

/// The same input gives the same output, byte for byte, in every form, also when rendered over an old one.
#[test]
fn same_input_same_output() {
    let site = Site::new("usual");
    for form in FORMS {
        let mut seen = Vec::new();
        for out in ["first", "second", "first"] {
            let out = site.path(out);
            let bundles = site.render().unwrap();
            let written = write(&bundles.each_ref(), form, &out).unwrap();
            assert!(written.left_over.is_empty(), "{:?}", written.left_over);
            let files: Vec<_> = files_below(&out)
                .into_iter()
                .map(|(path, mode, content)| {
                    (path.strip_prefix(&out).unwrap().to_owned(), mode, content)
                })
                .collect();
            seen.push(files);
        }
        assert_eq!(seen[0], seen[1], "{form:?}");
        assert_eq!(seen[0], seen[2], "{form:?}");
        for out in ["first", "second"] {
            std::fs::remove_dir_all(site.path(out)).unwrap();
        }
    }
}

/// No password, private key or Corosync key is in anything that others may read, in any form.
#[test]
fn secrets_are_for_root_only() {
    for name in ["usual", "alike", "ipv6"] {
        let site = Site::new(name);
        let bundles = site.render().unwrap();
        let Item::File { content: authkey, .. } =
            &bundles[0].items[Path::new("/etc/corosync/authkey")]
        else {
            panic!("the authkey is a file");
        };
        for form in FORMS {
            let out = site.path("out");
            write(&bundles.each_ref(), form, &out).unwrap();
            let mut private = 0;
            for (path, mode, content) in files_below(&out) {
                let text = String::from_utf8_lossy(&content);
                let has_secret = PASSWORDS.iter().any(|password| text.contains(password))
                    || text.contains("PRIVATE KEY")
                    || content.windows(authkey.len()).any(|window| window == authkey.as_slice());
                let for_others = mode & 0o077;
                private += usize::from(for_others == 0);
                assert!(
                    !has_secret || for_others == 0,
                    "{form:?}: {} is {mode:04o}",
                    path.display()
                );
                // An archive's content is encoded: it is private whatever is found in it.
                assert!(form == Form::Directory || mode == 0o600, "{form:?}: {}", path.display());
            }
            assert!(private > 0, "{form:?}");
            std::fs::remove_dir_all(&out).unwrap();
        }
        for (path, mode, _) in files_below(&site.secrets_path()) {
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }
}

/// Keys and the authority are kept for ever; certificates are issued anew for new addresses, and only then.
#[test]
fn certificates_follow_the_addresses() {
    let mut site = Site::new("usual");
    let take = |bundles: &[Bundle; 2], path: &str| -> Vec<String> {
        let content = |bundle: &Bundle| match &bundle.items[Path::new(path)] {
            Item::File { content, .. } => String::from_utf8_lossy(content).into_owned(),
            Item::Link(_) => panic!("{path} is a link"),
        };
        bundles.iter().map(content).collect()
    };
    let before = site.render().unwrap();
    site.pair.nodes[1].addresses[1] = "10.2.0.22".parse().unwrap();
    let after = site.render().unwrap();
    for path in ["/etc/dyad/pki/ca.pem", "/etc/corosync/authkey"] {
        assert_eq!(take(&before, path), take(&after, path), "{path}");
    }
    for path in ["/etc/dyad/pki/peer.pem", "/etc/dyad/pki/server.key"] {
        let (before, after) = (take(&before, path), take(&after, path));
        assert_eq!(before[0], after[0], "{path} of the node that did not change");
        assert_ne!(before[1], after[1], "{path} of the node that did");
    }
    let client = "/etc/dyad/pki/client.pem";
    assert_eq!(
        take(&before, client),
        take(&after, client),
        "a client's certificate has no address"
    );
}

/// More names change what clients see, on both nodes, and nothing between the members.
#[test]
fn more_names_are_in_the_server_certificates() {
    let mut site = Site::new("usual");
    let take = |bundles: &[Bundle; 2], path: &str| -> Vec<String> {
        bundles.iter().map(|bundle| format!("{:?}", bundle.items[Path::new(path)])).collect()
    };
    let before = site.render().unwrap();
    site.file.etcd.tls.server_names = vec!["etcd.example.com".into(), "192.0.2.7".into()];
    let after = site.render().unwrap();
    let (old, new) =
        (take(&before, "/etc/dyad/pki/server.pem"), take(&after, "/etc/dyad/pki/server.pem"));
    assert!(old[0] != new[0] && old[1] != new[1]);
    for path in ["/etc/dyad/pki/peer.pem", "/etc/dyad/pki/client.pem", "/etc/dyad/pki/ca.pem"] {
        assert_eq!(take(&before, path), take(&after, path), "{path}");
    }
}

/// Two renderings at the same time agree on what is made once.
#[test]
fn renderings_at_the_same_time_agree() {
    let site = Site::new("usual");
    let keys: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let bundles = site.render().unwrap();
                    let item = &bundles[0].items[Path::new("/etc/corosync/authkey")];
                    format!("{item:?}")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.windows(2).all(|two| two[0] == two[1]));
}

/// Secrets that others could have read are not used; the message says which and why, and nothing of them.
#[test]
fn open_secrets_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let refused = |site: &Site| {
        let error = site.render().unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let text = format!("{error}: {cause}");
        assert!(PASSWORDS.iter().all(|password| !text.contains(password)), "{text}");
        assert!(error.hint().is_some(), "{text}");
        text
    };

    let site = Site::new("usual");
    open(&site.secrets_path().join("bmc-node-a"), 0o644);
    assert!(refused(&site).contains("0644"));

    let site = Site::new("usual");
    site.render().unwrap();
    open(&site.secrets_path().join("ca.key"), 0o640);
    assert!(refused(&site).contains("ca.key"));

    let site = Site::new("usual");
    std::fs::write(site.secrets_path().join("corosync-authkey"), b"short").unwrap();
    open(&site.secrets_path().join("corosync-authkey"), 0o600);
    assert!(refused(&site).contains("128"));

    let site = Site::new("usual");
    let key = "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n";
    std::fs::write(site.path("bmc-ca.pem"), key).unwrap();
    assert!(refused(&site).contains("bmc-ca.pem"));

    let site = Site::new("usual");
    open(&site.secrets_path(), 0o755);
    assert!(matches!(SecretsDirResult::of(&site), Err(Error::Secret { .. })));
}

struct SecretsDirResult;

impl SecretsDirResult {
    fn of(site: &Site) -> Result<dyad_setup::SecretsDir, Error> {
        dyad_setup::SecretsDir::open(&site.secrets_path())
    }
}

/// Files that an earlier rendering left are named and left alone.
#[test]
fn left_over_files_are_named() {
    let site = Site::new("usual");
    let out = site.path("out");
    let bundles = site.render().unwrap();
    write(&bundles.each_ref(), Form::Directory, &out).unwrap();
    let stale = out.join("node-a/etc/dyad/bmc-old-name");
    std::fs::write(&stale, "x").unwrap();
    let written = write(&bundles.each_ref(), Form::Directory, &out).unwrap();
    assert_eq!(written.left_over, std::slice::from_ref(&stale));
    assert!(stale.exists());
}

/// A tar archive unpacks to the same files with the same permissions, owned by root, without times.
#[test]
fn an_archive_unpacks_to_the_same() {
    let site = Site::new("usual");
    let bundles = site.render().unwrap();
    let out = site.path("out");
    write(&[&bundles[1]], Form::Tar, &out).unwrap();
    let file = std::fs::File::open(out.join("node-b.tar")).unwrap();
    let mut archive = tar::Archive::new(file);
    let mut paths = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!(
            (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()),
            (0, 0, 0)
        );
        let path = Path::new("/").join(entry.path().unwrap());
        if let Some(Item::File { mode, content }) = bundles[1].items.get(&path) {
            assert_eq!(header.mode().unwrap(), *mode, "{}", path.display());
            assert_eq!(header.size().unwrap(), content.len() as u64);
        }
        paths.push(path);
    }
    assert!(bundles[1].items.keys().all(|path| paths.contains(path)));
}

/// Ignition carries every file but the links into the read-only /usr, and units as units.
#[test]
fn ignition_is_as_recorded() {
    for (form, file) in
        [(Form::Ignition, "node1.ign"), (Form::MachineConfig, "99-master-dyad.yaml")]
    {
        let site = Site::new("alike");
        let bundles = site.render().unwrap();
        let out = site.path("out");
        write(&bundles.each_ref(), form, &out).unwrap();
        let text = std::fs::read_to_string(out.join(file)).unwrap();
        // The key is random; everything else is golden.
        let Item::File { content, .. } = &bundles[0].items[Path::new("/etc/corosync/authkey")]
        else {
            panic!("the authkey is a file");
        };
        let key = base64::engine::general_purpose::STANDARD.encode(content);
        assert!(text.contains(&key));
        insta::assert_snapshot!(format!("{form:?}").to_lowercase(), text.replace(&key, "RANDOM"));
    }
}

/// The fence agent takes exactly the parameters that the CIB gives it.
#[test]
fn the_fence_agent_takes_what_the_cib_gives() {
    use dyad_power::fence::{Action, Input, Settings};
    for name in ["usual", "alike", "ipv6", "podman"] {
        let site = Site::new(name);
        let cib = dyad_cluster::cib::render(&site.pair);
        let tree = roxmltree::Document::parse(&cib).unwrap();
        let devices: Vec<_> = tree
            .descendants()
            .filter(|element| element.attribute("type") == Some("fence_dyad_redfish"))
            .collect();
        assert_eq!(devices.len(), 2);
        for device in devices {
            let given = device.descendants().filter(|element| element.has_tag_name("nvpair"));
            let lines: String = given
                .filter_map(|pair| Some((pair.attribute("name")?, pair.attribute("value")?)))
                .filter(|(name, _)| !name.starts_with("pcmk_"))
                .map(|(name, value)| format!("{name}={value}\n"))
                .collect();
            let input = Input::from_lines(&lines).unwrap();
            Settings::new(&input, Action::Off).unwrap_or_else(|error| panic!("{error:?}\n{lines}"));
        }
    }
}
