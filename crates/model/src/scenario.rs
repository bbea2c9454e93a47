//! Transcripts: what happens, what each node then knows, and what it decides.
//!
//! A scenario is a text. Lines that begin with `>` are steps of the model (see [`crate::Step`]) or facts set by
//! hand; the indented lines below each are its answer and can be rewritten: facts that changed since the node
//! was last asked, then the decision, the rule and the reason. A counter-example is printed in the same form.
//!
//! ```text
//! # Title and explanation
//! > start redundant
//! > power-loss south
//! > lose-sight north
//! > agent north
//!   north  etcd: state noLeader
//!   north  peer present: nothing
//!   = wait what: fencing (R9)
//!     no leader and south is not there; missing: proof that south is down
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dyad_core::{Action, Decision, Facts};
use serde_json::Value;

use crate::check;
use crate::view::{Ask, NAMES, View};
use crate::{Model, Reductions, Scope, Step, Variant, World};

/// Everything that scenarios may use.
const SCOPE: Scope = Scope {
    writes: 3,
    one_way: true,
    ports: true,
    bmc: true,
    disks: true,
    call_off: true,
    count_fencings: true,
};

/// A scenario that is being played.
pub struct Player {
    model: Model,
    world: World,
    /// Facts that were set by hand, by node and path.
    set: [BTreeMap<String, Value>; 2],
    /// What each node knew when it was last asked.
    known: [Option<BTreeMap<&'static str, String>>; 2],
    /// The text so far.
    text: String,
    /// The promise that was broken, if one was.
    pub violated: Option<check::Property>,
}

impl Player {
    /// Begins with a pair in full redundancy.
    pub fn new(variant: Variant, world: World) -> Self {
        Self {
            model: Model { reductions: Reductions::NONE, ..Model::new(SCOPE, variant) },
            world,
            set: Default::default(),
            known: [None, None],
            text: String::new(),
            violated: None,
        }
    }

    /// Plays one line and writes its answer down.
    pub fn play(&mut self, line: &str) -> Result<(), String> {
        let _ = writeln!(self.text, "> {line}");
        let mut words = line.splitn(2, ' ');
        match (words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
            ("start", name) => self.start(name),
            ("set", assignment) => self.assign(assignment),
            ("unset", assignment) => self.forget(assignment),
            ("ask", question) => self.ask(question),
            _ => self.step(line.parse()?),
        }
    }

    fn start(&mut self, name: &str) -> Result<(), String> {
        let mut world = World::redundant(9, 9, 9);
        match name {
            "redundant" => {}
            "cold" => {
                for node in 0..2 {
                    world.switch_off(node);
                    world.nodes[node].eligible = 0;
                }
            }
            _ => return Err(format!("`{name}` is no start: redundant, cold")),
        }
        *self =
            Self { text: std::mem::take(&mut self.text), ..Self::new(self.model.variant, world) };
        Ok(())
    }

    fn node_of(name: &str) -> Result<usize, String> {
        NAMES.iter().position(|known| *known == name).ok_or_else(|| format!("`{name}` is no node"))
    }

    fn assign(&mut self, assignment: &str) -> Result<(), String> {
        let wrong = || format!("`{assignment}` is not `NODE PATH = JSON`");
        let (left, right) = assignment.split_once(" = ").ok_or_else(wrong)?;
        let (node, path) = left.split_once(' ').ok_or_else(wrong)?;
        let value = serde_json::from_str(right).map_err(|error| format!("{right}: {error}"))?;
        self.set[Self::node_of(node)?].insert(path.to_owned(), value);
        Ok(())
    }

    fn forget(&mut self, assignment: &str) -> Result<(), String> {
        let (node, path) = assignment.split_once(' ').ok_or("unset NODE PATH")?;
        self.set[Self::node_of(node)?].remove(path);
        Ok(())
    }

    /// Asks without doing: for facts that were set by hand, and for the acts of people.
    fn ask(&mut self, question: &str) -> Result<(), String> {
        let (what, node) = question.split_once(' ').ok_or("ask WHAT NODE")?;
        let node = Self::node_of(node)?;
        let ask = match what {
            "monitor" => Ask::Look,
            "promote" => Ask::Promote,
            "recover" => Ask::Recover,
            "planned-stop" => Ask::Plan(false),
            "planned-stop-of-both" => Ask::Plan(true),
            "boot-unit" => Ask::Boot,
            "confirm" => Ask::Confirm(false),
            "confirm-accepting-loss" => Ask::Confirm(true),
            "give-up" => Ask::GiveUp,
            _ => return Err(format!("`{what}` is no question")),
        };
        self.explain(node, ask)
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        let asked = match step {
            Step::Agent(node) => {
                let me = &self.world.nodes[node];
                let both = self.world.nodes[1 - node].leaving;
                Some((node, if me.leaving { Ask::Plan(both) } else { Ask::Look }))
            }
            Step::BootUnit(node, _) => Some((node, Ask::Boot)),
            Step::Confirm(node, accept) => Some((node, Ask::Confirm(accept))),
            Step::GiveUp(node) => Some((node, Ask::GiveUp)),
            _ => None,
        };
        if let Some((node, ask)) = asked {
            let offered = self.decide(node, ask)?.1.action == Action::Offer;
            self.explain(node, if offered { Ask::Promote } else { ask })?;
        }
        match self.model.step(&self.world, step) {
            Some(next) => self.world = next,
            // A decision that changes nothing is an answer too; any other step has to be possible.
            None if asked.is_some() => {}
            None => return Err(format!("`{step}` cannot happen here")),
        }
        if let Some(property) = check::broken(&self.world)
            && self.violated.is_none()
        {
            self.violated = Some(property);
            let _ = writeln!(self.text, "  broken: {property}");
        }
        Ok(())
    }

    /// The facts of a node, with what was set by hand, and what follows from them.
    fn decide(&self, node: usize, ask: Ask) -> Result<(Facts, Decision), String> {
        let facts = View::of(&self.world, node, ask).facts(self.model.variant);
        let mut json = serde_json::to_value(&facts).map_err(|error| error.to_string())?;
        for (path, value) in &self.set[node] {
            let pointer = format!("/{}", path.replace('.', "/"));
            let Some(slot) = json.pointer_mut(&pointer) else {
                let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
                let parent = json.pointer_mut(parent).and_then(Value::as_object_mut);
                parent.ok_or_else(|| format!("no `{path}`"))?.insert(key.to_owned(), value.clone());
                continue;
            };
            *slot = value.clone();
        }
        let mut changed: Facts = serde_json::from_value(json).map_err(|error| error.to_string())?;
        crate::variant::carry(&facts, &mut changed);
        let decision = dyad_core::decide(&changed);
        Ok((changed, decision))
    }

    fn explain(&mut self, node: usize, ask: Ask) -> Result<(), String> {
        let (facts, decision) = self.decide(node, ask)?;
        let json = serde_json::to_value(&facts).map_err(|error| error.to_string())?;
        let now = known(&json);
        let none = BTreeMap::new();
        let before = self.known[node].as_ref().unwrap_or(&none);
        for (what, value) in &now {
            if before.get(what) != Some(value) && (!value.is_empty() || before.contains_key(what)) {
                let value = if value.is_empty() { "nothing" } else { value };
                let _ = writeln!(self.text, "  {}  {what}: {value}", NAMES[node]);
            }
        }
        let _ = writeln!(self.text, "  = {} ({})", action_words(&decision.action), decision.rule);
        let _ = writeln!(self.text, "    {}", decision.because);
        self.known[node] = Some(now);
        Ok(())
    }

    /// The transcript so far.
    pub fn transcript(&self) -> &str {
        &self.text
    }
}

/// What a node knows, one line for each subject; what is false, empty or always the same is left out.
fn known(json: &Value) -> BTreeMap<&'static str, String> {
    const SUBJECTS: &[(&str, &str)] = &[
        ("/request/operation", "asked"),
        ("/dataset", "dataset"),
        ("/marks", "marks"),
        ("/eligibility", "eligible"),
        ("/etcd", "etcd"),
        ("/peer/statement", "heard"),
        ("/peer/present", "peer present"),
        ("/peer/memory", "memory"),
        ("/peer/power", "peer power"),
        ("/peer/confirmation", "confirmation"),
        ("/pacemaker", "pacemaker"),
    ];
    let line = |pointer: &str| json.pointer(pointer).map_or_else(String::new, compact);
    SUBJECTS.iter().map(|(pointer, name)| (*name, line(pointer))).collect()
}

fn compact(value: &Value) -> String {
    const USUAL: &[&str] = &[
        "reason",
        "clusterId",
        "cluster",
        "vote",
        "started",
        "diskWritable",
        "boot",
        "term",
        "nodes",
        "startupFencing",
        "managed",
        "by",
        "index",
    ];
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.as_u64() == Some(0) => String::new(),
        Value::Array(list) => {
            let items: Vec<_> = list.iter().map(compact).filter(|item| !item.is_empty()).collect();
            if items.is_empty() { String::new() } else { format!("[{}]", items.join(", ")) }
        }
        Value::Object(map) => {
            let mut items = Vec::new();
            for (key, value) in map.iter().filter(|(key, _)| !USUAL.contains(&key.as_str())) {
                match (value, compact(value)) {
                    (Value::Bool(true), _) => items.push(key.clone()),
                    (_, text) if !text.is_empty() => items.push(format!("{key} {text}")),
                    _ => {}
                }
            }
            if let (Some(term), Some(index)) = (map.get("term"), map.get("index")) {
                items.push(format!("term {term} index {index}"));
            }
            if let Some(Value::Array(nodes)) = map.get("nodes") {
                items.extend(nodes.last().map(|peer| format!("peer {{{}}}", compact(peer))));
            }
            items.join(", ").replace("operation ", "")
        }
        other => other.to_string(),
    }
}

/// An action in words: its name, then its fields.
pub fn action_words(action: &Action) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(action) else {
        return format!("{action:?}");
    };
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut text = fields.remove("action").as_ref().map(word).unwrap_or_default();
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let _ = write!(text, " {key}: {}", word(value));
    }
    text
}

/// Plays a whole scenario and gives the text as it should read. Comments and empty lines stay.
pub fn replay(text: &str, variant: Variant) -> Result<Player, String> {
    let mut player = Player::new(variant, World::redundant(9, 9, 9));
    for (at, line) in text.lines().enumerate() {
        if let Some(command) = line.strip_prefix("> ") {
            player.play(command).map_err(|error| format!("line {}: {error}", at + 1))?;
        } else if line.starts_with('#') || line.trim().is_empty() {
            player.text.push_str(line);
            player.text.push('\n');
        }
    }
    Ok(player)
}

/// A violation as a scenario: it replays with [`replay`].
pub fn counter_example(violation: &crate::search::Violation, variant: Variant) -> String {
    let mut player = Player::new(variant, violation.start);
    let _ = writeln!(player.text, "# Counter-example to: {}", violation.property);
    let _ = writeln!(player.text, "> start redundant");
    for step in &violation.steps {
        if let Err(error) = player.play(&step.to_string()) {
            let _ = writeln!(player.text, "# {error}");
        }
    }
    player.text
}
