//! `dyad render`: everything that the two nodes need.

use std::path::PathBuf;

use dyad_setup::bundle::Bundle;
use dyad_setup::output::{Form, write};
use dyad_setup::render::{AuthorityStep, Renewal};
use dyad_setup::{SecretsDir, secrets_path};
use serde::Serialize;

use super::pair_file;
use crate::cli::{RenderArguments, RenderFormat, Renew};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

#[derive(Serialize)]
struct Report {
    written: Vec<PathBuf>,
    secrets: PathBuf,
}

/// Renders, or says what prevents it.
pub(super) fn run(arguments: RenderArguments, format: Format) -> anyhow::Result<Exit> {
    let (file, pair) = pair_file::load_usable(&arguments.file)?;
    let base = pair_file::base(&arguments.file)?;
    let secrets_path = arguments.secrets.unwrap_or_else(|| secrets_path(&arguments.file));
    let failed = |error: dyad_setup::Error| {
        let hint = error.hint();
        let message = format!("{:#}", anyhow::Error::new(error));
        Failure { exit: Exit::Failed, message, hint }
    };
    let secrets = SecretsDir::open(&secrets_path).map_err(failed)?;
    if let Some(renew) = arguments.renew {
        dyad_setup::render::renew(&pair, &secrets, renewal(renew)).map_err(failed)?;
    }
    let bundles = dyad_setup::render::render(&file, &pair, &base, &secrets).map_err(failed)?;
    let wanted = wanted(&bundles, arguments.node.as_deref())?;
    let form = match arguments.format {
        RenderFormat::Dir => Form::Directory,
        RenderFormat::Tar => Form::Tar,
        RenderFormat::Ignition => Form::Ignition,
        RenderFormat::Machineconfig => Form::MachineConfig,
    };
    let written = write(&wanted, form, &arguments.out).map_err(failed)?;
    for path in &written.left_over {
        output::print_warning(&format!("{} is not part of this rendering", path.display()));
    }
    match format {
        Format::Json => {
            let body = Report { written: written.paths, secrets: secrets_path };
            output::print_json("RenderReport", body)?;
        }
        Format::Text => {
            let lines: String =
                written.paths.iter().map(|path| format!("wrote {}\n", path.display())).collect();
            output::print_data(&lines)?;
            anstream::eprintln!(
                "Keys and certificates are kept in {}: back it up, and keep it from others.",
                secrets_path.display()
            );
        }
    }
    Ok(Exit::Ok)
}

fn renewal(renew: Renew) -> Renewal {
    match renew {
        Renew::Certificates => Renewal::Certificates,
        Renew::TrustNewAuthority => Renewal::Authority(AuthorityStep::TrustNew),
        Renew::UseNewAuthority => Renewal::Authority(AuthorityStep::UseNew),
        Renew::DropOldAuthority => Renewal::Authority(AuthorityStep::DropOld),
        Renew::Authkey => Renewal::Authkey,
    }
}

fn wanted<'a>(bundles: &'a [Bundle; 2], node: Option<&str>) -> anyhow::Result<Vec<&'a Bundle>> {
    let Some(node) = node else { return Ok(bundles.iter().collect()) };
    if let Some(bundle) = bundles.iter().find(|bundle| bundle.node == node) {
        return Ok(vec![bundle]);
    }
    let message = format!("`{node}` is none of the two nodes");
    let hint = format!("name {} or {}", bundles[0].node, bundles[1].node);
    Err(Failure::new(Exit::Usage, message).hint(hint).into())
}
