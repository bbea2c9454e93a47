//! The one table of parameters.

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// 1, yes, on, true; 0, no, off, false.
    Boolean,
    /// A whole number.
    Integer,
    /// One of these.
    Select(&'static [&'static str]),
}

/// One parameter, for Pacemaker (on stdin) and for people (as an option).
#[derive(Debug)]
pub struct Parameter {
    /// Its name on stdin; with `-` for `_` it is the long option.
    pub name: &'static str,
    /// The short option.
    pub short: Option<char>,
    /// A name that other agents use for the same, told as deprecated in the metadata.
    pub alias: Option<&'static str>,
    /// What its value must be.
    pub kind: Kind,
    /// Whether there must be a value.
    pub required: bool,
    /// The value if none is given.
    pub default: Option<&'static str>,
    /// One line.
    pub short_description: &'static str,
    /// The rest of the story.
    pub long_description: &'static str,
}

const fn parameter(name: &'static str, kind: Kind, short_description: &'static str) -> Parameter {
    Parameter {
        name,
        short: None,
        alias: None,
        kind,
        required: false,
        default: None,
        short_description,
        long_description: "",
    }
}

/// Every parameter of `fence_dyad_redfish`.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { short: Some('o'), required: true, ..parameter("action", Kind::Text, "What to do") },
    Parameter {
        short: Some('a'),
        alias: Some("ip"),
        required: true,
        long_description: "https://host[:port], or a host name or address without scheme. IPv6 addresses in a URL stand in brackets. http:// needs ssl=0 as well.",
        ..parameter("address", Kind::Text, "The BMC's address")
    },
    Parameter {
        short: Some('u'),
        long_description: "Only if the address has none. 443, or 80 with ssl=0.",
        ..parameter("ipport", Kind::Integer, "The BMC's port")
    },
    Parameter {
        short: Some('c'),
        required: true,
        long_description: "Two lines, username=… and password=…; # starts a comment. The file must be a regular one that belongs to root with mode 0600 or 0400. The password is taken from nowhere else.",
        ..parameter(
            "credentials_file",
            Kind::Text,
            "The root-only file with user name and password",
        )
    },
    Parameter {
        short: Some('s'),
        alias: Some("systems_uri"),
        long_description: "Its id, UUID or path. Needed if the BMC has several. For a BMC of several nodes set pcmk_host_argument=system and pcmk_host_map.",
        ..parameter("system", Kind::Text, "The System to switch")
    },
    Parameter {
        long_description: "SHA-256, 64 hexadecimal digits with or without colons. Names and dates of the certificate do not matter then.",
        ..parameter("pin", Kind::Text, "Accept exactly the certificate with this fingerprint")
    },
    Parameter {
        long_description: "A PEM file. The certificate must be valid for the BMC's address (or tls_name).",
        ..parameter("ca_file", Kind::Text, "Accept certificates of the authorities in this file")
    },
    Parameter {
        alias: Some("ssl_insecure"),
        default: Some("0"),
        long_description: "Whoever is on the way can then read the password and lie about the power.",
        ..parameter("insecure", Kind::Boolean, "Accept any certificate")
    },
    Parameter {
        ..parameter(
            "tls_name",
            Kind::Text,
            "The name the certificate must bear, if not the address",
        )
    },
    Parameter {
        default: Some("1"),
        long_description: "With 0 the password goes over the wire in clear.",
        ..parameter("ssl", Kind::Boolean, "Speak HTTPS")
    },
    Parameter {
        default: Some("basic"),
        long_description: "basic sends the password with each request; session opens and closes a session.",
        ..parameter("auth", Kind::Select(&["basic", "session"]), "How to log in")
    },
    Parameter {
        long_description: "If set, an action for another node is refused, and list prints this name, so that Pacemaker needs no pcmk_host_list.",
        ..parameter("node", Kind::Text, "The node that this device fences")
    },
    Parameter {
        default: Some("0"),
        long_description: "Set it on the device of one node only, the one that should survive a split, above the time its peer's fencing takes. Unlike pcmk_delay_base it ends as soon as the BMC says Off.",
        ..parameter("split_delay_ms", Kind::Integer, "Wait this long before off and reboot, in ms")
    },
    Parameter {
        default: Some("20000"),
        long_description: "From the end of the split delay to the state that was read back. Pacemaker's own limit (pcmk_off_timeout, pcmk_reboot_timeout) should be above this plus the delay.",
        ..parameter("timeout_ms", Kind::Integer, "The limit on the whole action, in ms")
    },
    Parameter {
        default: Some("5000"),
        ..parameter("request_timeout_ms", Kind::Integer, "The limit on each request, in ms")
    },
    Parameter {
        default: Some("60000"),
        ..parameter("on_timeout_ms", Kind::Integer, "The limit on powering on after reboot, in ms")
    },
    Parameter {
        default: Some("/run/dyad/fence"),
        long_description: "Here an action cancels the powering on of an earlier reboot.",
        ..parameter("run_directory", Kind::Text, "Where actions on the same BMC meet")
    },
    Parameter {
        short: Some('v'),
        default: Some("0"),
        ..parameter("verbose", Kind::Boolean, "Tell each step on stderr")
    },
];

/// What Pacemaker passes beside the device's parameters, and what this agent has no use for.
pub(super) const IGNORED: &[&str] = &["plug", "port", "nodeid", "nodename"];

/// What other agents know and this one refuses, with what to do instead.
pub(super) const REFUSED: &[(&[&str], &str)] = &[
    (
        &["password", "passwd", "password_script", "passwd_script", "username", "login"],
        "write them to a file with mode 0600 and name it with credentials_file",
    ),
    (&["delay"], "use split_delay_ms, which is skipped if the BMC already says Off"),
];

/// The parameter of this name; `-` and `_` are the same, and names of other agents are understood.
pub(super) fn find(name: &str) -> Option<&'static Parameter> {
    let name = name.replace('-', "_");
    PARAMETERS.iter().find(|parameter| {
        let ipaddr = parameter.name == "address" && name == "ipaddr";
        parameter.name == name || parameter.alias == Some(name.as_str()) || ipaddr
    })
}
