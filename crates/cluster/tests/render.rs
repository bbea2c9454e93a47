//! What is rendered from the description of a pair, as golden files that are read as a diff.

mod common;

use dyad_cluster::{cib, corosync};

/// Same pair, same corosync.conf: links, ports, names and time-outs stand where Corosync reads them.
#[test]
fn corosync_conf_is_as_recorded() {
    insta::assert_snapshot!("corosync-usual", corosync::render(&common::usual()));
    insta::assert_snapshot!("corosync-alike", corosync::render(&common::alike()));
    insta::assert_snapshot!("corosync-ipv6", corosync::render(&common::ipv6()));
}

/// Same pair, same CIB.
#[test]
fn cib_is_as_recorded() {
    insta::assert_snapshot!("cib-usual", cib::render(&common::usual()));
    insta::assert_snapshot!("cib-alike", cib::render(&common::alike()));
    insta::assert_snapshot!("cib-ipv6", cib::render(&common::ipv6()));
}

/// P5: the settings that are rendered pass the timing arithmetic, computed delay included.
#[test]
fn rendered_timings_are_sound() {
    for pair in [common::usual(), common::ipv6()] {
        let errors: Vec<_> = pair
            .timing()
            .findings()
            .into_iter()
            .filter(|finding| finding.severity == dyad_core::timing::Severity::Error)
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", pair.name);
    }
}

/// The delay sits on the preferred survivor only: whoever fences it waits, nobody else does.
#[test]
fn only_the_preferred_survivor_is_fenced_late() {
    for (pair, preferred) in [(common::usual(), 0), (common::ipv6(), 1)] {
        assert_eq!(pair.preferred(), preferred);
        assert!(pair.fence_delay_ms(preferred) > 0);
        assert_eq!(pair.fence_delay_ms(1 - preferred), 0);
        assert_eq!(cib::render(&pair).matches("split_delay_ms").count(), 2, "id and name, once");
    }
}
