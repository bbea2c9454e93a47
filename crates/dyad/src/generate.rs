//! Manual pages, completions and the command reference, from the definition in [`crate::cli`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;

/// The shells that completions are shipped for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// The completion script of one shell.
pub fn completion(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dyad", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Every generated file of the tree, by its path from the root.
pub fn files() -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for shell in SHELLS {
        let name = match shell {
            Shell::Bash => "dyad.bash".to_owned(),
            Shell::Zsh => "_dyad".to_owned(),
            other => format!("dyad.{other}"),
        };
        files.insert(PathBuf::from("packaging/completions").join(name), completion(shell));
    }
    for (name, text) in dyad_setup::units::packaged() {
        files.insert(PathBuf::from("packaging/units").join(name), text.to_owned());
    }
    add_manual_pages(&command(), "dyad", &mut files);
    files.insert("docs/reference/commands.md".into(), reference());
    files.insert("docs/reference/metrics.md".into(), metrics());
    files.insert("docs/reference/status.schema.json".into(), dyad_status::schema::schema_text());
    files.insert("docs/reference/pair.md".into(), dyad_pair_file::schema::reference());
    files.insert("docs/reference/pair.schema.json".into(), dyad_pair_file::schema::schema_text());
    files
}

fn add_manual_pages(command: &Command, name: &str, files: &mut BTreeMap<PathBuf, String>) {
    let page = clap_mangen::Man::new(command.clone().name(name.to_owned()))
        .title(name.to_uppercase())
        .date("")
        .manual("Dyad");
    let mut text = Vec::new();
    page.render(&mut text).expect("writing to memory does not fail");
    let path = PathBuf::from("docs/man").join(format!("{name}.1"));
    files.insert(path, String::from_utf8_lossy(&text).into_owned());
    for child in visible_children(command) {
        add_manual_pages(child, &format!("{name}-{}", child.get_name()), files);
    }
}

fn visible_children(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|child| !child.is_hide_set() && child.get_name() != "help")
}

fn metrics() -> String {
    let mut text = String::from(
        "# Metrics\n\nGenerated from the definitions by `make docs`; do not edit. `dyad serve` exports them at \
         `/metrics`; what is not known has no value. Rules: \
         [alerts](../guides/alerts.md).\n\n| name | type | meaning |\n|---|---|---|\n",
    );
    for (name, kind, help) in dyad_serve::metrics::TABLE {
        let _ = writeln!(text, "| `{name}` | {kind} | {help} |");
    }
    text
}

fn reference() -> String {
    let mut text = String::from(
        "# Commands\n\nGenerated from the command line's definition by `make docs`; do not edit.\n",
    );
    add_reference(&command(), "dyad", &mut text);
    text.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (exit, meaning) in Exit::TABLE {
        let _ = writeln!(text, "| {} | {meaning} |", *exit as u8);
    }
    text
}

fn add_reference(command: &Command, name: &str, text: &mut String) {
    let help = command.clone().bin_name(name).term_width(80).render_long_help().to_string();
    let _ = write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", help.trim_end());
    for child in visible_children(command) {
        add_reference(child, &format!("{name} {}", child.get_name()), text);
    }
}
