//! The manual page, the reference and the help text, from the same tables as the parser.

use std::fmt::Write as _;

use super::AGENT;
use super::action::Action;
use super::metadata::{LONG_DESCRIPTION, SHORT_DESCRIPTION, option};
use super::parameters::{PARAMETERS, Parameter};
use super::reason::Reason;

const CREDENTIALS_EXAMPLE: &str =
    "# BMC of node2\nusername=fence\npassword=correct horse battery staple\n";

/// The text of `--help`.
pub fn usage() -> String {
    let mut text = format!(
        "{SHORT_DESCRIPTION}\n\nUsage: {AGENT} [OPTIONS]\n\nWithout options, parameters are read from stdin as key=value lines, as Pacemaker\n\
         passes them.\n\nOptions:\n"
    );
    for parameter in PARAMETERS {
        let _ = writeln!(text, "  {:<44} {}", option(parameter), parameter.short_description);
    }
    let _ = writeln!(
        text,
        "  {:<44} Print this\n  {:<44} Print the version",
        "-h, --help", "-V, --version"
    );
    text.push_str("\nActions:\n");
    for (_, name, what) in Action::ALL {
        let _ = writeln!(text, "  {name:<13} {what}");
    }
    text.push_str("\nExit codes: 0 done (status: On), 2 status: Off, and\n");
    for (reason, meaning) in Reason::TABLE {
        let _ = writeln!(text, "  {:>3}  {meaning}", *reason as u8);
    }
    text
}

/// The reference page.
pub fn reference() -> String {
    let mut text = format!(
        "# {AGENT}\n\nGenerated from the agent's own tables by `make docs`; do not edit.\n\n{LONG_DESCRIPTION}\n\n\
         ## Actions\n\n| action | what it does |\n|---|---|\n"
    );
    for (_, name, what) in Action::ALL {
        let _ = writeln!(text, "| `{name}` | {what} |");
    }
    text.push_str("\n## Parameters\n\nOn stdin `name=value`, one a line; as an option `--name=value` with `-` for `_`.\n\n| parameter | default | what it is |\n|---|---|---|\n");
    for parameter in PARAMETERS {
        let _ = writeln!(
            text,
            "| `{}`{} | {} | {} |",
            parameter.name,
            also(parameter),
            value(parameter),
            words(parameter)
        );
    }
    text.push_str(
        "\n`port`, `plug`, `nodeid` and `nodename` are taken from Pacemaker and mean nothing here, except that `nodename` must be\n\
         the one that `node` says. An unknown parameter is refused as an option and by `validate-all`, and told on stderr\n\
         otherwise: fencing must not fail over a name. `password`, `username` and their kin are refused everywhere.\n\n\
         ## The credentials file\n\n```text\n",
    );
    text.push_str(CREDENTIALS_EXAMPLE);
    text.push_str(
        "```\n\nA regular file (no symbolic link) that belongs to root, mode 0600 or 0400. The value is everything behind the first `=`.\n\
         Nothing of it is ever printed, passed on a command line or in the environment, or put into the CIB.\n\n\
         ## Exit codes\n\n| code | meaning |\n|---|---|\n| 0 | done; for `status`: the BMC said On |\n| 2 | only for `status`: the BMC said Off |\n",
    );
    for (reason, meaning) in Reason::TABLE {
        let _ = writeln!(text, "| {} | {meaning} |", *reason as u8);
    }
    text.push_str(REBOOT_AND_SPLIT);
    text
}

const REBOOT_AND_SPLIT: &str = "
## Reboot: the proof first

Pacemaker waits for `reboot` before it lets the survivor go on, and all that it needs to know is that the node is off.
So `reboot` ends with success as soon as the BMC has said Off, and a process of its own powers the node on: it has its
own limit (`on_timeout_ms`), tries again while the BMC is busy, and reports to syslog. A power-on that fails is an error
there, and a warning of every `monitor` until the node was powered on; it never takes the proof back.

- An `off`, `reboot` or `on` that comes later cancels it: after `off` the node stays off. The two meet in
  `run_directory`; an `off` does not believe an Off that it reads before the cancelled process is known to be silent.
- If the process cannot be started, the agent asks for On itself, once, and reports how that went.
- If this node dies in between, the other stays off until someone powers it on. That is so with every fence agent:
  nobody else knows that it should be on. A BMC whose power restore policy is `AlwaysOn` does not help here.
- `pcmk_reboot_action=off` leaves a fenced node off.

## The delay that decides a split

After a cut both nodes fence each other, and the one whose device has the longer delay survives. `pcmk_delay_base` would
be paid on every failure; `split_delay_ms` ends as soon as the BMC says Off: before the delay, and looking all the while.
";

fn also(parameter: &Parameter) -> String {
    parameter.alias.map(|alias| format!(" (also `{alias}`)")).unwrap_or_default()
}

fn value(parameter: &Parameter) -> String {
    match (parameter.default, parameter.required) {
        (Some(default), _) => format!("`{default}`"),
        (None, true) => "required".to_owned(),
        (None, false) => String::new(),
    }
}

/// All there is to say about a parameter. The metadata has it too: pcs shows either text, not both.
pub(super) fn words(parameter: &Parameter) -> String {
    match parameter.long_description {
        "" => format!("{}.", parameter.short_description),
        more => format!("{}. {more}", parameter.short_description),
    }
}

/// The manual page.
pub fn manual_page() -> String {
    let roff = |text: &str| {
        text.replace('\\', "\\e").replace('-', "\\-").replace('…', "...").replace("\n.", "\n\\&.")
    };
    let mut text = format!(
        ".TH {} 8 \"\" \"\" Dyad\n.SH NAME\n{AGENT} \\- {SHORT_DESCRIPTION}\n.SH SYNOPSIS\n.B {AGENT}\n[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}\n.PP\n\
         Without options, parameters are read from standard input as key=value lines, as Pacemaker passes them.\n.SH ACTIONS\n",
        AGENT.to_uppercase(),
        roff(LONG_DESCRIPTION)
    );
    for (_, name, what) in Action::ALL {
        let _ = writeln!(text, ".TP\n.B {}\n{}", roff(name), roff(what));
    }
    text.push_str(".SH PARAMETERS\n");
    for parameter in PARAMETERS {
        let default =
            parameter.default.map(|text| format!(" (default {text})")).unwrap_or_default();
        let required = if parameter.required { " (required)" } else { "" };
        let head = format!("{}{default}{required}", parameter.name);
        let _ = writeln!(
            text,
            ".TP\n.B {}\n{}\n.br\nOption: {}",
            roff(&head),
            roff(&words(parameter)),
            roff(&option(parameter))
        );
    }
    text.push_str(".SH CREDENTIALS FILE\nA regular file that belongs to root, with mode 0600 or 0400:\n.PP\n.nf\n");
    text.push_str(&roff(CREDENTIALS_EXAMPLE));
    text.push_str(".fi\n.SH EXIT STATUS\n.TP\n.B 0\nDone; for status: the BMC said On.\n.TP\n.B 2\nOnly for status: the BMC said Off.\n");
    for (reason, meaning) in Reason::TABLE {
        let _ = writeln!(text, ".TP\n.B {}\n{}", *reason as u8, roff(meaning));
    }
    text.push_str(".SH SEE ALSO\nstonith_admin(8), pcs(8), dyad(1)\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever reads any of the three texts finds every parameter, action and exit code.
    #[test]
    fn nothing_is_left_out() {
        for text in [usage(), reference(), manual_page().replace("\\-", "-")] {
            for parameter in PARAMETERS {
                assert!(
                    text.contains(&parameter.name.replace('_', "-"))
                        || text.contains(parameter.name)
                );
            }
            assert!(Action::ALL.iter().all(|(_, name, _)| text.contains(name)));
            assert!(Reason::TABLE.iter().all(|(_, meaning)| text.contains(meaning)));
        }
    }
}
