//! The description that Pacemaker and pcs read.

use std::fmt::Write as _;

use super::AGENT;
use super::action::Action;
use super::manual::words;
use super::parameters::{Kind, PARAMETERS, Parameter};

/// What the agent is, in one line.
pub(super) const SHORT_DESCRIPTION: &str = "Fence agent for BMCs that speak Redfish";

/// What the agent is, in a few.
pub(super) const LONG_DESCRIPTION: &str = "Switches a node's power through its BMC, over Redfish. An action \
succeeds only after the BMC has said the state itself: exactly Off, exactly On. The System is pinned; the \
BMC's certificate is verified or pinned; the password comes from a root-only file and from nowhere else; every \
request has a time limit.";

/// The agent's description as XML.
pub fn metadata() -> String {
    let mut xml = format!(
        "<?xml version=\"1.0\" ?>\n<resource-agent name=\"{AGENT}\" shortdesc=\"{}\">\n<longdesc>{}</longdesc>\n\
         <vendor-url>https://www.dmtf.org/standards/redfish</vendor-url>\n<parameters>\n",
        escape(SHORT_DESCRIPTION),
        escape(LONG_DESCRIPTION)
    );
    for parameter in PARAMETERS {
        add(&mut xml, parameter, parameter.name);
        if let Some(alias) = parameter.alias {
            add(&mut xml, parameter, alias);
        }
    }
    xml.push_str("</parameters>\n<actions>\n");
    for (action, name, _) in Action::ALL {
        // A node is switched on by people or after a reboot, never by itself when it joins.
        let automatic = if action == Action::On { " automatic=\"0\"" } else { "" };
        let _ = writeln!(xml, "\t<action name=\"{name}\"{automatic}/>");
    }
    xml.push_str("</actions>\n</resource-agent>\n");
    xml
}

fn add(xml: &mut String, parameter: &Parameter, name: &str) {
    let is_alias = name != parameter.name;
    // An alias is never required: the parameter itself may be there.
    let required = u8::from(parameter.required && !is_alias);
    let relation = match parameter.alias {
        Some(_) if is_alias => " deprecated=\"1\"".to_owned(),
        Some(alias) => format!(" obsoletes=\"{alias}\""),
        None => String::new(),
    };
    let default = parameter.default.map(|text| format!(" default=\"{}\"", escape(text)));
    let default = default.unwrap_or_default();
    let _ = writeln!(
        xml,
        "\t<parameter name=\"{name}\" unique=\"0\" required=\"{required}\"{relation}>"
    );
    let _ = writeln!(xml, "\t\t<getopt mixed=\"{}\"/>", escape(&option(parameter)));
    let _ = match parameter.kind {
        Kind::Text => writeln!(xml, "\t\t<content type=\"string\"{default}/>"),
        Kind::Boolean => writeln!(xml, "\t\t<content type=\"boolean\"{default}/>"),
        Kind::Integer => writeln!(xml, "\t\t<content type=\"integer\"{default}/>"),
        Kind::Select(choices) => {
            let options: String =
                choices.iter().map(|choice| format!("<option value=\"{choice}\"/>")).collect();
            writeln!(xml, "\t\t<content type=\"select\"{default}>{options}</content>")
        }
    };
    let _ = writeln!(
        xml,
        "\t\t<shortdesc lang=\"en\">{}</shortdesc>",
        escape(parameter.short_description)
    );
    let _ = writeln!(xml, "\t\t<longdesc lang=\"en\">{}</longdesc>", escape(&words(parameter)));
    xml.push_str("\t</parameter>\n");
}

/// The parameter as an option: `-o, --action=[action]`.
pub(super) fn option(parameter: &Parameter) -> String {
    let short = parameter.short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
    let long = parameter.name.replace('_', "-");
    match parameter.kind {
        Kind::Boolean => format!("{short}--{long}"),
        _ => format!("{short}--{long}=[{}]", parameter.name),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
