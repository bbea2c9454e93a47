//! A BMC to try things on by hand: its power is only remembered.

use std::io::{BufRead as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bmc_sim::{
    Bmc, Certificate, Config, Fault, MemorySwitch, PowerState, PowerSwitch as _, System,
};
use clap::Parser;
use dyad_http::Secret;

/// A BMC simulator: Redfish over HTTPS in front of a switch that only remembers
///
/// Prints its address and its certificate's fingerprint, then takes commands on stdin, one a line: `fault NAME`,
/// `power`, `events`. It ends with its stdin.
#[derive(Debug, Parser)]
#[command(name = "bmc-sim", version)]
struct Arguments {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// A file whose first line is the user name and whose second line is the password
    #[arg(long)]
    account_file: PathBuf,
    /// The System's id
    #[arg(long, default_value = "1")]
    system: String,
    /// The System's UUID
    #[arg(long, default_value = "00000000-0000-4000-8000-000000000001")]
    uuid: String,
    /// Start with the power off
    #[arg(long)]
    off: bool,
    /// Speak HTTP without TLS
    #[arg(long)]
    plain: bool,
    /// Write the certificate to this file
    #[arg(long)]
    certificate_file: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let account = std::fs::read_to_string(&arguments.account_file)
        .with_context(|| format!("cannot read {}", arguments.account_file.display()))?;
    let mut lines = account.lines();
    let (Some(user), Some(password)) = (lines.next(), lines.next()) else {
        anyhow::bail!(
            "{} needs two lines: user name and password",
            arguments.account_file.display()
        );
    };
    let state = if arguments.off { PowerState::Off } else { PowerState::On };
    let switch = Arc::new(MemorySwitch::new(state));
    let listener = TcpListener::bind(arguments.listen)
        .with_context(|| format!("cannot listen on {}", arguments.listen))?;
    let address = listener.local_addr()?.ip().to_string();
    let certificate = if arguments.plain {
        None
    } else {
        Some(Certificate::self_signed(&[&address, "localhost"])?)
    };
    if let (Some(file), Some(certificate)) = (&arguments.certificate_file, &certificate) {
        std::fs::write(file, certificate.pem())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let system = System {
        id: arguments.system,
        uuid: arguments.uuid,
        name: "node".to_owned(),
        switch: switch.clone(),
    };
    let config = Config {
        user: user.to_owned(),
        password: Secret::new(password),
        systems: vec![system],
        certificate,
    };
    let bmc = Bmc::start(config, listener)?;
    let pin = bmc.fingerprint().map(|pin| pin.to_string());
    print(&serde_json::json!({ "address": bmc.url(), "pin": pin }))?;
    for line in std::io::stdin().lock().lines() {
        obey(&bmc, &switch, line?.trim())?;
    }
    Ok(())
}

fn obey(bmc: &Bmc, switch: &MemorySwitch, line: &str) -> anyhow::Result<()> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("fault", name) => match name.trim().parse::<Fault>() {
            Ok(fault) => {
                bmc.set_fault(fault);
                print(&serde_json::json!({ "fault": fault.to_string() }))
            }
            Err(error) => {
                eprintln!("error: {error}");
                Ok(())
            }
        },
        ("power", _) => print(&serde_json::json!({ "power": switch.state()? })),
        ("events", _) => print(&serde_json::json!({ "events": bmc.events(0) })),
        _ => {
            eprintln!("error: {line:?} is not a command; there are: fault NAME, power, events");
            Ok(())
        }
    }
}

fn print(value: &serde_json::Value) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{value}")?;
    Ok(stdout.flush()?)
}
