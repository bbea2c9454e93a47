# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_dyad_global_optspecs
    string join \n o/output= h/help V/version
end

function __fish_dyad_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_dyad_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_dyad_using_subcommand
    set -l cmd (__fish_dyad_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c dyad -n "__fish_dyad_needs_command" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_needs_command" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "init" -d 'Write a first pair.yaml'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "check" -d 'Say what is wrong or weak before it matters'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "render" -d 'Write everything that the two nodes need'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "setup" -d 'Make this machine one node of a pair'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "lab" -d 'Two real nodes on this machine, with faults on demand'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "etcd" -d 'Look into etcd\'s data directories, or take over from a dead etcd member'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "status" -d 'Tell where the pair stands: can I lose a node now?'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "gate" -d 'Say whether an upgrade or a change of configuration may start'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "maintenance" -d 'Take a node out of service for planned work, and back'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "resolve" -d 'Choose between two datasets that both went on alone'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "archive" -d 'Datasets that were moved aside on this node'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "drill" -d 'Test whether the nodes can be switched off when it matters'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "rotate" -d 'Put new passwords, certificates and keys into use'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "replace" -d 'Prepare for another machine in the place of a node that is gone'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "gather" -d 'Put everything into one file that somebody needs who has to find out what happened'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "apply" -d 'Change a running pair: apply a new description, on both nodes at once'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "uninstall" -d 'Take this machine out of its pair'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "serve" -d 'Serve the status page, metrics and the status document'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "explain" -d 'Show the last decisions of this node, each with its rule and reason'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "confirm" -d 'State that the other node is down, so that this one goes on alone'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "decide" -d 'Decide on logged facts again: the decision, the rule and the reason'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "exit-codes" -d 'Print the exit codes and what they mean'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "completions" -d 'Print a shell completion script'
complete -c dyad -n "__fish_dyad_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand init" -l from -d 'Convert this OpenShift install-config.yaml' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand init" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand init" -l schema -d 'Print the JSON Schema of pair.yaml instead, for editors'
complete -c dyad -n "__fish_dyad_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand init" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand check" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand check" -l offline -d 'Do not speak to the BMCs or the name service'
complete -c dyad -n "__fish_dyad_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand check" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand render" -l out -d 'The directory to write to' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand render" -l format -d 'In which form' -r -f -a "dir\t'A directory per node, laid out like its root'
tar\t'A tar archive per node, to be unpacked at its root'
ignition\t'An Ignition 3.4 file per node'
machineconfig\t'One OpenShift MachineConfig for both nodes'"
complete -c dyad -n "__fish_dyad_using_subcommand render" -l node -d 'Only this node' -r
complete -c dyad -n "__fish_dyad_using_subcommand render" -l secrets -d 'Where keys and certificates are kept; beside the file if nothing is said' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand render" -l renew -d 'Make something anew first, for `dyad rotate` on the nodes' -r -f -a "certificates\t'etcd\'s certificates, by the same authority'
trust-new-authority\t'A new authority beside the old one: both are trusted, the old one signs'
use-new-authority\t'The new authority signs; both are trusted'
drop-old-authority\t'The old authority is trusted no more'
authkey\t'Corosync\'s key'"
complete -c dyad -n "__fish_dyad_using_subcommand render" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand render" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand render" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l bundle -d 'The bundle of this node, as `dyad render` wrote it' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l over-ssh -d 'Set up both nodes of this pair.yaml from here, with your own `ssh` as root' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l take-over-unit -d 'An etcd that runs here already, as this systemd unit: take it over with its data' -r
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l take-over-manifest -d 'The same for an etcd that kubelet runs as a static pod, by its manifest' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l take-over-openshift -d 'The same for the etcd of an OpenShift cluster of two nodes, by the URL of its API server' -r
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l openshift-token-file -d 'A file with a token that may read the cluster\'s infrastructure and change that `ConfigMap`' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l openshift-ca-file -d 'The authority of the API server\'s certificate' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l take-over-data -d 'Its data directory, the one with `member` in it' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand setup" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand setup" -l once -d 'Do nothing if this node was set up already, with the same description'
complete -c dyad -n "__fish_dyad_using_subcommand setup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand setup" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "up" -d 'Start two nodes and wait until the pair is complete'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "down" -d 'End a lab, whatever state it is in, and check that nothing is left of it'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "list" -d 'List all labs'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "status" -d 'Show the nodes, their power and what is broken'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "exec" -d 'Run a command in a node, or beside the pair with the name "client"'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "power" -d 'Switch a node\'s power, or tell it'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "cut" -d 'Cut cluster links; the nodes only hear silence'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "heal" -d 'End every fault of network, disks, BMCs and hung nodes; power stays as it is'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "freeze" -d 'Hang a node: every process stops, the power stays on'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "thaw" -d 'Let a hung node go on'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "kill-etcd" -d 'Crash a node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "block-port" -d 'Make a TCP port of a node unreachable for everybody'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "stall" -d 'Lose every packet of one established TCP connection, the busiest'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "slow-disk" -d 'Make the disk under a node\'s etcd stall again and again'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "slow-fsync" -d 'Make every fsync of a node\'s etcd slow'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "full-disk" -d 'Fill the disk under a node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "clock" -d 'Shift a node\'s monotonic clock and uptime from its next boot on'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "bmc" -d 'Make a node\'s BMC misbehave'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "logs" -d 'Print the journals of both nodes, merged'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "timeline" -d 'Show what happened after the last fault, on both nodes and their BMCs, in milliseconds'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "load" -d 'Put load on etcd nodes and record every operation'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "fill" -d 'Fill an etcd with keys that nobody reads'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "bench" -d 'Measure how long things take, on a pair of its own'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "campaign" -d 'Random faults on a pair of its own, drawn from a seed, with clients writing and audits after every step'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "judge" -d 'Judge what clients saw: is it linearizable, and is anything acknowledged lost?'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "supervise" -d 'The process behind a lab; started by `up`'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and not __fish_seen_subcommand_from up down list status exec power cut heal freeze thaw kill-etcd block-port stall slow-disk slow-fsync full-disk clock bmc logs timeline load fill bench campaign judge supervise help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l release -d 'The Debian release of the nodes' -r -f -a "trixie\t'Debian 13: Pacemaker 3.0, etcd 3.5'
bookworm\t'Debian 12: Pacemaker 2.1, etcd 3.4'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l node -d 'A node and its addresses on the two links; twice, or not at all' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l token-ms -d 'Corosync\'s token time-out in milliseconds' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l disk-mib -d 'The size of each node\'s disk for etcd' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l package -d 'Dyad\'s package, which is installed in the nodes [default: the one beside this program]' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l rival -d 'What Dyad is compared with, instead of a pair as Dyad makes it' -r -f -a "force-new-cluster\t'`fence_redfish`, and a plain agent that restarts etcd with `--force-new-cluster`'
podman-etcd\t'`fence_redfish`, and the agent `podman-etcd` of Debian\'s newest resource-agents'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l fence-delay -d 'Seconds by which the fencing of the first node is delayed: it wins a split' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l fence-agent -d 'Who switches the power: the distribution\'s `fence_redfish`, or `fence_dyad_redfish` from beside this program [default: dyad if it is there]' -r -f -a "dyad\t'`fence_dyad_redfish`'
distribution\t'`fence_redfish`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l ipv6 -d 'Use IPv6 addresses on the cluster links'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l tls -d 'Encrypt etcd\'s traffic, with certificates both ways'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l podman -d 'Run etcd in a container, of an image made from the nodes\' own etcd'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l by-hand -d 'Leave the nodes blank, each with its bundle in /root/bundles, for you to run `dyad setup --bundle`'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l minimal -d 'Only fencing, one small service and a plain etcd, instead of a pair as Dyad makes it'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -l no-etcd -d 'Do not run etcd'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from up" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from down" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from down" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from down" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from down" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from list" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from list" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from list" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from status" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from status" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from status" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from exec" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from exec" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from exec" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from exec" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from power" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from power" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from power" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from power" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from cut" -l one-way -d 'Lose only what this node sends' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from cut" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from cut" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from cut" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from cut" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from heal" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from heal" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from heal" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from heal" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from freeze" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from freeze" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from freeze" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from freeze" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from thaw" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from thaw" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from thaw" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from thaw" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from kill-etcd" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from kill-etcd" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from kill-etcd" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from kill-etcd" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from block-port" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from block-port" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from block-port" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from block-port" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from stall" -l port -d 'A port at either end of the connection' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from stall" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from stall" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from stall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from stall" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-disk" -l stall-ms -d 'How long each stall lasts' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-disk" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-disk" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-disk" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-disk" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-fsync" -l delay-ms -d 'How much longer each takes' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-fsync" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-fsync" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-fsync" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from slow-fsync" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from full-disk" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from full-disk" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from full-disk" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from full-disk" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from clock" -l ahead -d 'Seconds ahead' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from clock" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from clock" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from clock" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from clock" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bmc" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bmc" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bmc" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bmc" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from logs" -s u -l unit -d 'Only this unit, such as pacemaker' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from logs" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from logs" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from logs" -s f -l follow -d 'Go on printing what is added'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from logs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from logs" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from timeline" -l svg -d 'Write a picture to this file too' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from timeline" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from timeline" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from timeline" -l all -d 'Everything since the start of the lab'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from timeline" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from timeline" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l endpoint -d 'A node: etcd\'s client URL, with a name if you like; once per node' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l duration -d 'End after this time; else when interrupted' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l operations -d 'End after so many requests' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l clients -d 'How many clients, dealt out to the nodes in turn' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l rate -d 'Requests a second of all clients together, at most' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l registers -d 'How many keys are written and read by everybody' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l request-limit -d 'How long a client waits for an answer' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l final-limit -d 'How long to wait in the end for each node to be read' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l seed -d 'Seed of all choices; a new one each time if not given' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l prefix -d 'Where the keys lie; must be empty at the start' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l ca -d 'The authorities that etcd\'s certificate must lead to' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l cert -d 'The certificate shown to etcd' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l key -d 'The key of that certificate' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from load" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -l endpoint -d 'etcd\'s client URL' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -l keys -d 'How many keys' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -l value-bytes -d 'How long each value is' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -l prefix -d 'Where the keys lie' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -l ca -d 'The authorities that etcd\'s certificate must lead to' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -l cert -d 'The certificate shown to etcd' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -l key -d 'The key of that certificate' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from fill" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -l rounds -d 'How often everything is done' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -l token-ms -d 'Corosync\'s token time-out in milliseconds' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -l database-mb -d 'Fill the database with this much first; several sizes, one after the other, with pairs of their own' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -l against -d 'Measure these on the same nodes, too: `fence_redfish` with a plain agent that restarts etcd with `--force-new-cluster`; the agent `podman-etcd` of Debian\'s newest resource-agents' -r -f -a "force-new-cluster\t'`fence_redfish`, and a plain agent that restarts etcd with `--force-new-cluster`'
podman-etcd\t'`fence_redfish`, and the agent `podman-etcd` of Debian\'s newest resource-agents'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -l plot -d 'Draw what was found, as SVG' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -l from -d 'Measure nothing: print, and draw, what an earlier run printed with `-o json`' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from bench" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l seed -d 'What everything is drawn from [default: a new one, which is told]' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l faults -d 'How many faults' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l minutes -d 'No step begins after this time' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l release -d 'The Debian release of the nodes' -r -f -a "trixie\t'Debian 13: Pacemaker 3.0, etcd 3.5'
bookworm\t'Debian 12: Pacemaker 2.1, etcd 3.4'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l only -d 'Only these kinds of faults: power, both, cut, one-way, link, freeze, etcd, port, stall, slow-disk, full-disk, bmc, no-proof, stop, maintenance, rejoin, old-copy, sensible, careless' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l clients -d 'How many clients' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l rate -d 'Requests a second of all clients together, at most' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l keep -d 'Keep everything in this new directory, also if it passes [default: only if it fails]' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l replay -d 'Make the decisions in this directory again, and judge its histories: nothing else is done' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l package -d 'Dyad\'s package, which is installed in the nodes [default: the one beside this program]' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -l plan -d 'Print what would be done, and end'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from campaign" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from judge" -l time-limit -d 'How long the search for an order may take; what is not decided by then is undecided' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from judge" -l since -d 'Also tell the first write sent after this instant (nanoseconds of the monotonic clock)' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from judge" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from judge" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from judge" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from judge" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from supervise" -l name -d 'Which lab; labs with different names can run side by side' -r
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from supervise" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from supervise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from supervise" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "up" -d 'Start two nodes and wait until the pair is complete'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "down" -d 'End a lab, whatever state it is in, and check that nothing is left of it'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "list" -d 'List all labs'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show the nodes, their power and what is broken'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "exec" -d 'Run a command in a node, or beside the pair with the name "client"'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "power" -d 'Switch a node\'s power, or tell it'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "cut" -d 'Cut cluster links; the nodes only hear silence'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "heal" -d 'End every fault of network, disks, BMCs and hung nodes; power stays as it is'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "freeze" -d 'Hang a node: every process stops, the power stays on'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "thaw" -d 'Let a hung node go on'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "kill-etcd" -d 'Crash a node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "block-port" -d 'Make a TCP port of a node unreachable for everybody'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "stall" -d 'Lose every packet of one established TCP connection, the busiest'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "slow-disk" -d 'Make the disk under a node\'s etcd stall again and again'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "slow-fsync" -d 'Make every fsync of a node\'s etcd slow'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "full-disk" -d 'Fill the disk under a node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "clock" -d 'Shift a node\'s monotonic clock and uptime from its next boot on'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "bmc" -d 'Make a node\'s BMC misbehave'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "logs" -d 'Print the journals of both nodes, merged'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "timeline" -d 'Show what happened after the last fault, on both nodes and their BMCs, in milliseconds'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "load" -d 'Put load on etcd nodes and record every operation'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "fill" -d 'Fill an etcd with keys that nobody reads'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "bench" -d 'Measure how long things take, on a pair of its own'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "campaign" -d 'Random faults on a pair of its own, drawn from a seed, with clients writing and audits after every step'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "judge" -d 'Judge what clients saw: is it linearizable, and is anything acknowledged lost?'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "supervise" -d 'The process behind a lab; started by `up`'
complete -c dyad -n "__fish_dyad_using_subcommand lab; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and not __fish_seen_subcommand_from inspect seal take-over help" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and not __fish_seen_subcommand_from inspect seal take-over help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and not __fish_seen_subcommand_from inspect seal take-over help" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and not __fish_seen_subcommand_from inspect seal take-over help" -f -a "inspect" -d 'Tell what a data directory holds, without starting etcd'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and not __fish_seen_subcommand_from inspect seal take-over help" -f -a "seal" -d 'Raise the commit mark of a data directory to its last entry: the last resort only'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and not __fish_seen_subcommand_from inspect seal take-over help" -f -a "take-over" -d 'Let the survivor of two voters go on alone, without a restart'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and not __fish_seen_subcommand_from inspect seal take-over help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from inspect" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from inspect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from inspect" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from seal" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from seal" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from seal" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l endpoint -d 'The survivor\'s client URL' -r
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l cacert -d 'The authority of the survivor\'s client port' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l cert -d 'The certificate to show at the client port' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l key -d 'Its key' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l peer-endpoint -d 'The survivor\'s peer URL, if it is not the first that it advertises' -r
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l peer-cacert -d 'The authority of the survivor\'s peer port, if it is not that of the client port' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l peer-cert -d 'The survivor\'s own peer certificate, if it is not that of the client port' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l peer-key -d 'Its key' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l data-dir -d 'The survivor\'s data directory, read if its client port does not answer' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l dead -d 'The dead member, by its name or id' -r
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l proof -d 'How you know that it is down, and that it stays down' -r
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l limit -d 'How long it may take' -r
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -l lock -d 'The file that keeps two take-overs on one node apart [default: one in /run/lock]' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from take-over" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from help" -f -a "inspect" -d 'Tell what a data directory holds, without starting etcd'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from help" -f -a "seal" -d 'Raise the commit mark of a data directory to its last entry: the last resort only'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from help" -f -a "take-over" -d 'Let the survivor of two voters go on alone, without a restart'
complete -c dyad -n "__fish_dyad_using_subcommand etcd; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand status" -l limit-ms -d 'How long to wait for a source that does not answer [default: 260, more on a busy machine]' -r
complete -c dyad -n "__fish_dyad_using_subcommand status" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand status" -s w -l watch -d 'Look again and again, until interrupted'
complete -c dyad -n "__fish_dyad_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand status" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand gate" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand gate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand gate" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and not __fish_seen_subcommand_from start end help" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and not __fish_seen_subcommand_from start end help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and not __fish_seen_subcommand_from start end help" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and not __fish_seen_subcommand_from start end help" -f -a "start" -d 'Take a node out of service: it leaves in good order, the other serves alone'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and not __fish_seen_subcommand_from start end help" -f -a "end" -d 'Take a node back into service: it rejoins by itself'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and not __fish_seen_subcommand_from start end help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from start" -l reason -d 'Why, for the record' -r
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from start" -l wait -d 'How long to wait for the end of it' -r
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from start" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from start" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from end" -l reason -d 'Why, for the record' -r
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from end" -l wait -d 'How long to wait for the end of it' -r
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from end" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from end" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from end" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from help" -f -a "start" -d 'Take a node out of service: it leaves in good order, the other serves alone'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from help" -f -a "end" -d 'Take a node back into service: it rejoins by itself'
complete -c dyad -n "__fish_dyad_using_subcommand maintenance; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand resolve" -l keep -d 'The node whose data are kept: the other one, seen from here' -r
complete -c dyad -n "__fish_dyad_using_subcommand resolve" -l yes-give-up -d 'Do not ask: the data of this node, named here, are put aside' -r
complete -c dyad -n "__fish_dyad_using_subcommand resolve" -l reason -d 'Why, for the record' -r
complete -c dyad -n "__fish_dyad_using_subcommand resolve" -l wait -d 'How long to wait until this node has joined' -r
complete -c dyad -n "__fish_dyad_using_subcommand resolve" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand resolve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand resolve" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and not __fish_seen_subcommand_from list restore prune help" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand archive; and not __fish_seen_subcommand_from list restore prune help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and not __fish_seen_subcommand_from list restore prune help" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and not __fish_seen_subcommand_from list restore prune help" -f -a "list" -d 'List them, oldest first'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and not __fish_seen_subcommand_from list restore prune help" -f -a "restore" -d 'Put one back as this node\'s dataset'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and not __fish_seen_subcommand_from list restore prune help" -f -a "prune" -d 'Delete some, for good'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and not __fish_seen_subcommand_from list restore prune help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from list" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from list" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from restore" -l reason -d 'Why, for the record' -r
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from restore" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from restore" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from prune" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from prune" -l diverged-too -d 'Delete those with writes that exist nowhere else, too'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from prune" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "list" -d 'List them, oldest first'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "restore" -d 'Put one back as this node\'s dataset'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "prune" -d 'Delete some, for good'
complete -c dyad -n "__fish_dyad_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand drill" -l really -d 'Fence this node now: the other one, seen from here' -r
complete -c dyad -n "__fish_dyad_using_subcommand drill" -l wait -d 'How long to wait until the pair is protected again' -r
complete -c dyad -n "__fish_dyad_using_subcommand drill" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand drill" -l yes -d 'Do not ask for the name'
complete -c dyad -n "__fish_dyad_using_subcommand drill" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand drill" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and not __fish_seen_subcommand_from bmc etcd-certs authkey help" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and not __fish_seen_subcommand_from bmc etcd-certs authkey help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and not __fish_seen_subcommand_from bmc etcd-certs authkey help" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and not __fish_seen_subcommand_from bmc etcd-certs authkey help" -f -a "bmc" -d 'A new user name or password of a node\'s BMC'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and not __fish_seen_subcommand_from bmc etcd-certs authkey help" -f -a "etcd-certs" -d 'New certificates of this node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and not __fish_seen_subcommand_from bmc etcd-certs authkey help" -f -a "authkey" -d 'A new key of Corosync, which hides and signs what the two nodes tell each other'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and not __fish_seen_subcommand_from bmc etcd-certs authkey help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from bmc" -l from -d 'A root-only file with the lines username=... and password=...' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from bmc" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from bmc" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from bmc" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from etcd-certs" -l from -d 'A directory laid out like this node\'s root: its new bundle, or one with the files that the pair names' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from etcd-certs" -l reason -d 'Why, for the record' -r
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from etcd-certs" -l wait -d 'How long to wait until this node has left, and has come back' -r
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from etcd-certs" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from etcd-certs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from etcd-certs" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from authkey" -l from -d 'The new bundle of this node' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from authkey" -l wait -d 'How long to wait for the other node' -r
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from authkey" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from authkey" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from authkey" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from help" -f -a "bmc" -d 'A new user name or password of a node\'s BMC'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from help" -f -a "etcd-certs" -d 'New certificates of this node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from help" -f -a "authkey" -d 'A new key of Corosync, which hides and signs what the two nodes tell each other'
complete -c dyad -n "__fish_dyad_using_subcommand rotate; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand replace" -l bundle -d 'This node\'s bundle of a rendering in which the other one has its new name, addresses or BMC' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand replace" -l reason -d 'Why, for the record' -r
complete -c dyad -n "__fish_dyad_using_subcommand replace" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand replace" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand replace" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand gather" -l out -d 'The file to write [default: dyad-NODE-TIME.tar.zst here]' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand gather" -l minutes -d 'How far back the system log goes' -r
complete -c dyad -n "__fish_dyad_using_subcommand gather" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand gather" -l only-here -d 'Leave the other node out'
complete -c dyad -n "__fish_dyad_using_subcommand gather" -l stdout -d 'Write the bundle to standard output'
complete -c dyad -n "__fish_dyad_using_subcommand gather" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand gather" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand apply" -l bundle -d 'The new bundle of this node, as `dyad render` wrote it' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand apply" -l wait -d 'How long to wait for the other node' -r
complete -c dyad -n "__fish_dyad_using_subcommand apply" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand apply" -l dry-run -d 'Only show what differs'
complete -c dyad -n "__fish_dyad_using_subcommand apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand apply" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand uninstall" -l yes-uninstall -d 'Do not ask: this machine, named here, is to be no node any more' -r
complete -c dyad -n "__fish_dyad_using_subcommand uninstall" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand uninstall" -l although-nobody-serves -d 'The other node does not vote, and nobody is to serve any more'
complete -c dyad -n "__fish_dyad_using_subcommand uninstall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand uninstall" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand serve" -l listen -d 'Where to listen' -r
complete -c dyad -n "__fish_dyad_using_subcommand serve" -l tls-cert -d 'The certificate chain, PEM' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand serve" -l tls-key -d 'Its private key, PEM' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand serve" -l token-file -d 'A root-only file with the token that others have to show, as bearer token or as password' -r -F
complete -c dyad -n "__fish_dyad_using_subcommand serve" -l interval -d 'How often to look at the pair' -r
complete -c dyad -n "__fish_dyad_using_subcommand serve" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand serve" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand explain" -s n -l last -d 'How many' -r
complete -c dyad -n "__fish_dyad_using_subcommand explain" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand explain" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand confirm" -l yes-peer-is-down -d 'Do not ask: the other node, named here, is down' -r
complete -c dyad -n "__fish_dyad_using_subcommand confirm" -l reason -d 'Why you know, for the record' -r
complete -c dyad -n "__fish_dyad_using_subcommand confirm" -l wait -d 'How long to wait until this node serves' -r
complete -c dyad -n "__fish_dyad_using_subcommand confirm" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand confirm" -l accept-possible-loss -d 'Accept that what the other node alone has written is lost'
complete -c dyad -n "__fish_dyad_using_subcommand confirm" -l although-it-seems-up -d 'Go on although the other node answers on an address or its BMC says On'
complete -c dyad -n "__fish_dyad_using_subcommand confirm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand confirm" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand decide" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand decide" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand decide" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand exit-codes" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand exit-codes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand exit-codes" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand completions" -s o -l output -d 'How data is printed: for people, or as one versioned JSON document' -r -f -a "text\t'For people'
json\t'One JSON document with `apiVersion` and `kind`'"
complete -c dyad -n "__fish_dyad_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dyad -n "__fish_dyad_using_subcommand completions" -s V -l version -d 'Print version'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "init" -d 'Write a first pair.yaml'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "check" -d 'Say what is wrong or weak before it matters'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "render" -d 'Write everything that the two nodes need'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "setup" -d 'Make this machine one node of a pair'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "lab" -d 'Two real nodes on this machine, with faults on demand'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "etcd" -d 'Look into etcd\'s data directories, or take over from a dead etcd member'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "status" -d 'Tell where the pair stands: can I lose a node now?'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "gate" -d 'Say whether an upgrade or a change of configuration may start'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "maintenance" -d 'Take a node out of service for planned work, and back'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "resolve" -d 'Choose between two datasets that both went on alone'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "archive" -d 'Datasets that were moved aside on this node'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "drill" -d 'Test whether the nodes can be switched off when it matters'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "rotate" -d 'Put new passwords, certificates and keys into use'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "replace" -d 'Prepare for another machine in the place of a node that is gone'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "gather" -d 'Put everything into one file that somebody needs who has to find out what happened'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "apply" -d 'Change a running pair: apply a new description, on both nodes at once'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "uninstall" -d 'Take this machine out of its pair'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "serve" -d 'Serve the status page, metrics and the status document'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "explain" -d 'Show the last decisions of this node, each with its rule and reason'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "confirm" -d 'State that the other node is down, so that this one goes on alone'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "decide" -d 'Decide on logged facts again: the decision, the rule and the reason'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "exit-codes" -d 'Print the exit codes and what they mean'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "completions" -d 'Print a shell completion script'
complete -c dyad -n "__fish_dyad_using_subcommand help; and not __fish_seen_subcommand_from init check render setup lab etcd status gate maintenance resolve archive drill rotate replace gather apply uninstall serve explain confirm decide exit-codes completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "up" -d 'Start two nodes and wait until the pair is complete'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "down" -d 'End a lab, whatever state it is in, and check that nothing is left of it'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "list" -d 'List all labs'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "status" -d 'Show the nodes, their power and what is broken'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "exec" -d 'Run a command in a node, or beside the pair with the name "client"'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "power" -d 'Switch a node\'s power, or tell it'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "cut" -d 'Cut cluster links; the nodes only hear silence'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "heal" -d 'End every fault of network, disks, BMCs and hung nodes; power stays as it is'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "freeze" -d 'Hang a node: every process stops, the power stays on'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "thaw" -d 'Let a hung node go on'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "kill-etcd" -d 'Crash a node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "block-port" -d 'Make a TCP port of a node unreachable for everybody'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "stall" -d 'Lose every packet of one established TCP connection, the busiest'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "slow-disk" -d 'Make the disk under a node\'s etcd stall again and again'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "slow-fsync" -d 'Make every fsync of a node\'s etcd slow'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "full-disk" -d 'Fill the disk under a node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "clock" -d 'Shift a node\'s monotonic clock and uptime from its next boot on'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "bmc" -d 'Make a node\'s BMC misbehave'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "logs" -d 'Print the journals of both nodes, merged'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "timeline" -d 'Show what happened after the last fault, on both nodes and their BMCs, in milliseconds'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "load" -d 'Put load on etcd nodes and record every operation'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "fill" -d 'Fill an etcd with keys that nobody reads'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "bench" -d 'Measure how long things take, on a pair of its own'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "campaign" -d 'Random faults on a pair of its own, drawn from a seed, with clients writing and audits after every step'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "judge" -d 'Judge what clients saw: is it linearizable, and is anything acknowledged lost?'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from lab" -f -a "supervise" -d 'The process behind a lab; started by `up`'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from etcd" -f -a "inspect" -d 'Tell what a data directory holds, without starting etcd'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from etcd" -f -a "seal" -d 'Raise the commit mark of a data directory to its last entry: the last resort only'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from etcd" -f -a "take-over" -d 'Let the survivor of two voters go on alone, without a restart'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from maintenance" -f -a "start" -d 'Take a node out of service: it leaves in good order, the other serves alone'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from maintenance" -f -a "end" -d 'Take a node back into service: it rejoins by itself'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "list" -d 'List them, oldest first'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "restore" -d 'Put one back as this node\'s dataset'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "prune" -d 'Delete some, for good'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from rotate" -f -a "bmc" -d 'A new user name or password of a node\'s BMC'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from rotate" -f -a "etcd-certs" -d 'New certificates of this node\'s etcd'
complete -c dyad -n "__fish_dyad_using_subcommand help; and __fish_seen_subcommand_from rotate" -f -a "authkey" -d 'A new key of Corosync, which hides and signs what the two nodes tell each other'
