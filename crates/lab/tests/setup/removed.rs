//! A node that is taken out, and one that comes back.

use crate::common::{COMMAND, Nodes, SETUP, config};

/// The other node goes on by itself; nothing of the pair is left but the data and the record of them; set up
/// again, it joins what is there and begins nothing.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_node_is_taken_out_and_set_up_again() {
    let nodes = Nodes::start(&config("removed", false, false));
    nodes.assert_pair();
    let [stays, goes] = nodes.names();
    nodes.shell(goes, "cp -a /etc/dyad/nodes /root/kept");
    let wrong =
        nodes.exec(goes, &["dyad", "uninstall", "--yes-uninstall", stays], COMMAND).unwrap();
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let done = nodes.exec(goes, &["dyad", "uninstall", "--yes-uninstall", goes], SETUP).unwrap();
    assert!(done.success(), "{done:?}");
    assert!(done.stdout.contains("kept /var/lib/etcd"), "{done:?}");
    nodes.shell(
        goes,
        "! systemctl is-active corosync pacemaker; ! systemctl is-enabled pacemaker; test ! -e /etc/dyad; \
         test ! -e /etc/corosync/authkey; test -d /var/lib/etcd/member; test -e /var/lib/dyad/began.json; \
         test ! -e /var/lib/pacemaker/cib/cib.xml",
    );
    let url = format!("http://{}:2379", nodes.config().nodes[0].link1);
    let etcdctl = format!("ETCDCTL_API=3 etcdctl --endpoints={url} --command-timeout=5s");
    nodes.shell(stays, &format!("{etcdctl} put after removal"));
    assert_eq!(nodes.shell(stays, &format!("{etcdctl} member list")).lines().count(), 1);
    let last =
        nodes.exec(stays, &["dyad", "uninstall", "--yes-uninstall", stays], COMMAND).unwrap();
    assert_eq!(last.code, 4, "the last voter went: {last:?}");

    let bundle = format!("/root/kept/{goes}");
    let again = nodes.exec(goes, &["dyad", "setup", "--bundle", &bundle], SETUP).unwrap();
    assert!(again.success(), "{again:?}");
    nodes.assert_pair();
    let read = nodes.shell(
        goes,
        &format!(
            "ETCDCTL_API=3 etcdctl --endpoints=http://{}:2379 get after",
            nodes.config().nodes[1].link1
        ),
    );
    assert!(read.contains("removal"), "{read}");
}
