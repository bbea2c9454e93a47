//! What a node holds after the run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use etcd_peer::client::{self, Consistency, Deadline, KeyValue, Range};

use super::store::{Etcd, chain};
use super::{Config, Endpoint};
use crate::history::{FinalItem, FinalState};

/// Keys per request: a few megabytes at most.
const PAGE: u64 = 5_000;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads everything under the run's prefix from this very node, as soon as it answers a linearizable
/// request, which shows that it has caught up with all that was acknowledged.
pub(super) fn read(
    store: &Etcd,
    endpoint: &Endpoint,
    config: &Config,
    until: Instant,
) -> Result<FinalState, String> {
    loop {
        match try_read(store, endpoint, config) {
            Ok(state) => return Ok(state),
            Err(error) if Instant::now() + PAUSE >= until => return Err(chain(&error)),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn try_read(
    store: &Etcd,
    endpoint: &Endpoint,
    config: &Config,
) -> Result<FinalState, client::Error> {
    let deadline = || Deadline::after(config.request_limit);
    let prefix = config.prefix.as_bytes();
    let barrier = Range { count_only: true, ..Range::prefix(prefix) };
    store.client().range(&barrier, deadline())?;
    let status = store.client().status(deadline())?;
    // From here on its own state, as of one revision.
    let mut range =
        Range { limit: PAGE, consistency: Consistency::Serializable, ..Range::prefix(prefix) };
    let mut items = BTreeMap::new();
    let revision = loop {
        let page = store.client().range(&range, deadline())?;
        let revision = *range.revision.get_or_insert(page.revision);
        if let Some(last) = page.kvs.last() {
            // The first key after the last one that was read.
            range.key = [&last.key[..], &[0]].concat();
        }
        items.extend(page.kvs.into_iter().map(item));
        if !page.more {
            break revision.0;
        }
    };
    Ok(FinalState {
        endpoint: endpoint.name.clone(),
        prefix: config.prefix.clone(),
        revision,
        cluster_id: Some(status.cluster.to_string()),
        items,
    })
}

fn item(found: KeyValue) -> (String, FinalItem) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let item = FinalItem {
        value: text(&found.value),
        create_revision: found.create_revision.0,
        mod_revision: found.mod_revision.0,
        version: found.version,
    };
    (text(&found.key), item)
}
