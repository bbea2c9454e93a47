//! The fence agent's manual page and reference say what its tables are.

use std::path::Path;
use std::process::Command;

use dyad_power::fence::{manual_page, reference};

/// A change of the tables without `make docs` fails here. `make docs` runs this test with `DYAD_UPDATE=1`,
/// which writes the files instead of comparing them.
#[test]
fn generated_files_have_not_drifted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, wanted) in [
        ("docs/man/fence_dyad_redfish.8", manual_page()),
        ("docs/reference/fence_dyad_redfish.md", reference()),
    ] {
        let file = root.join(path);
        if std::env::var_os("DYAD_UPDATE").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &wanted).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == wanted, "{path} is not what the tables give: `make docs`");
    }
}

/// The manual page is one that `man` can show without complaint.
#[test]
fn the_manual_page_is_well_formed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("docs/man/fence_dyad_redfish.8");
    let output = Command::new("groff").args(["-man", "-ww", "-Tutf8", "-z"]).arg(page).output();
    let output = output.expect("groff is installed by scripts/setup");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
