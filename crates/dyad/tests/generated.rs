//! Manual pages, completions and the command reference say what the command line is.

use std::path::Path;

/// A change of the command line without `make docs` fails here. `make docs` runs this test with
/// `DYAD_UPDATE=1`, which writes the files instead of comparing them.
#[test]
fn generated_files_have_not_drifted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let update = std::env::var_os("DYAD_UPDATE").is_some();
    for (path, wanted) in dyad::generate::files() {
        let file = root.join(&path);
        if update {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &wanted).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == wanted,
            "{} is not what the definition gives: `make docs`",
            path.display()
        );
    }
}
