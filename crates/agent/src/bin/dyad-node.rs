//! What runs on a node: the resource agent `ocf:dyad:etcd` (under that name), and the small jobs around it.

use std::path::Path;
use std::process::ExitCode;

use dyad_node::gather::words;
use dyad_node::ocf::Environment;
use dyad_node::{Node, Place, agent, follow, lone};

const USAGE: &str = "\
usage: dyad-node ocf ACTION       one action of the resource agent ocf:dyad:etcd
       dyad-node lone-boot        prove the peer off while there is no quorum
       dyad-node follow           look often while a join goes on
       dyad-node deliver          post events that wait to the receiver that the pair names
";

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let words: Vec<String> = arguments.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Pacemaker runs the agents by their own names.
    let name = Path::new(&program).file_name().unwrap_or_default();
    if name == "etcd" {
        return ocf(words.first().copied().unwrap_or_default());
    }
    if name == "dyad-alert" {
        return dyad_agent::alert::main();
    }
    match words.as_slice() {
        ["ocf", action] => ocf(action),
        ["lone-boot"] => job(|node| Ok(lone::watch(node)?)),
        ["follow"] => job(|node| Ok(follow::watch(node)?)),
        ["deliver"] => match dyad_agent::alert::run_delivery() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("error: {why}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn ocf(action: &str) -> ExitCode {
    let answer = agent::run(action, &Environment::of_process(), Place::default());
    print!("{}", answer.stdout);
    if !answer.stderr.is_empty() {
        eprintln!("{}", answer.stderr.trim_end());
    }
    ExitCode::from(answer.code)
}

fn job(work: impl FnOnce(&Node) -> Result<(), dyad_node::act::Failure>) -> ExitCode {
    let opened = Node::open(Place::default(), &dyad_node::boot::host_name());
    let result = opened.map_err(Into::into).and_then(|node| work(&node));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", words(&*error));
            ExitCode::FAILURE
        }
    }
}
