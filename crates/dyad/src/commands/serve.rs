//! `dyad serve`: the status page and the metrics of this node.

use std::sync::Arc;
use std::time::Duration;

use dyad_serve::watch::Watch;
use dyad_serve::{Access, Server};

use super::this_node;
use crate::cli::ServeArguments;
use crate::exit::{Exit, Failure};

/// Serves until it is ended.
pub(super) fn run(arguments: &ServeArguments) -> anyhow::Result<Exit> {
    let tls = arguments.tls_cert.as_deref().zip(arguments.tls_key.as_deref());
    let token = arguments.token_file.as_deref();
    let access = Access::new(arguments.listen, token, tls.is_some()).map_err(|error| {
        Failure::new(Exit::Usage, error.to_string())
            .hint("--tls-cert FILE --tls-key FILE --token-file FILE, or --listen 127.0.0.1:9470")
    })?;
    let node = Arc::new(this_node::open()?);
    let watch = Watch::start(node, Duration::from_secs(arguments.interval));
    let server = Server::new(arguments.listen, tls, access, watch)?;
    anstream::eprintln!("listening on {}", server.address()?);
    server.run();
    Ok(Exit::Failed)
}
