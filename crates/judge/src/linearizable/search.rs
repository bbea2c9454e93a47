//! The search for an order: Wing and Gong's, with Lowe's memory of what was tried.
//!
//! A configuration is the set of steps already put in order, and what the register then holds. From it, any
//! step may come next that began before every step not yet in order was over. The search goes deep first,
//! and never looks at a configuration twice. Four rules keep it from branching where that cannot help; each
//! says why no order is missed.
//!
//! 1. *A read that fits comes at once.* If an order exists in which it comes later, then it may as well come
//!    now: nothing must precede it, and it changes nothing.
//! 2. *A value that will be seen again is not left for good.* While a step is still to come that saw the
//!    present value, and none is left that could write it again, no step may change the register.
//! 3. *Dead values are all the same.* If no step to come saw the present value, it does not matter which it
//!    is: such configurations are one.
//! 4. *A write that nobody saw comes at once on a dead value.* In any order that continues from here the
//!    next step is an unconditional write, or the end (a read or a swap would have to see the dead value).
//!    Just before it the unseen write can be put without anybody noticing.

use std::collections::HashSet;
use std::time::Instant;

use super::model::{Effect, NEVER, NOTHING, Register, Step, Value};

/// How much a search may cost before it gives up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Steps tried.
    pub(super) steps: u64,
    /// Configurations remembered.
    pub(super) remembered: usize,
    /// The moment to give up.
    pub(super) until: Instant,
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// An order exists.
    Linearizable,
    /// No order exists.
    Impossible,
    /// The budget ran out.
    Undecided,
}

/// Looks for an order. Returns also the number of steps tried.
pub(super) fn search(register: &Register, budget: Budget) -> (Decision, u64) {
    let mut search = Search::new(register);
    let decision = search.run(budget);
    (decision, search.tried)
}

/// How often the clock is looked at.
const STEPS_PER_GLANCE: u64 = 4096;

/// Present value in a remembered configuration if it is dead.
const DEAD: u64 = u64::MAX;

struct Search<'a> {
    steps: &'a [Step],
    timeline: Timeline,
    /// What the register holds.
    value: Value,
    /// Per value: steps to come that certainly saw it, that perhaps saw it, and that may write it.
    certain_observers: Vec<u32>,
    optional_observers: Vec<u32>,
    writers: Vec<u32>,
    /// Per step: for optional writes, which one of its value it is, in order of beginning.
    rank: Vec<u32>,
    /// Per value: how many of its optional writes are in order.
    ranks_used: Vec<u32>,
    /// Steps with an end that are not yet in order.
    left: usize,
    /// Steps in order, kept apart by whether they end: those without would hold the window open.
    ended: Window,
    endless: Window,
    /// Per step: its place in its window.
    place: Vec<u32>,
    trail: Vec<Move>,
    remembered: HashSet<Box<[u64]>>,
    scratch: Vec<u64>,
    tried: u64,
}

/// A step that was put in order, and what it takes to undo it.
#[derive(Clone, Copy)]
struct Move {
    step: u32,
    before: Value,
    /// Whether there was no other choice worth trying.
    forced: bool,
}

impl<'a> Search<'a> {
    fn new(register: &'a Register) -> Self {
        let steps = &register.steps[..];
        let mut search = Self {
            steps,
            timeline: Timeline::new(steps),
            value: NOTHING,
            certain_observers: vec![0; register.values],
            optional_observers: vec![0; register.values],
            writers: vec![0; register.values],
            rank: vec![0; steps.len()],
            ranks_used: vec![0; register.values],
            left: 0,
            ended: Window::default(),
            endless: Window::default(),
            place: vec![0; steps.len()],
            trail: Vec::new(),
            remembered: HashSet::new(),
            scratch: Vec::new(),
            tried: 0,
        };
        let mut optional_writes = vec![0; register.values];
        for (position, step) in steps.iter().enumerate() {
            search.count(step, 1);
            if let (Effect::Write(value), true) = (step.effect, step.optional) {
                search.rank[position] = optional_writes[value as usize];
                optional_writes[value as usize] += 1;
            }
            let window =
                if step.complete == NEVER { &mut search.endless } else { &mut search.ended };
            search.place[position] = window.grow();
            search.left += usize::from(step.complete != NEVER);
        }
        search
    }

    /// Adds to or takes from the counts of steps to come.
    fn count(&mut self, step: &Step, by: i32) {
        if let Some(value) = step.effect.observes() {
            let observers = if step.optional {
                &mut self.optional_observers
            } else {
                &mut self.certain_observers
            };
            let count = &mut observers[value as usize];
            *count = count.strict_add_signed(by);
        }
        if let Some(value) = step.effect.writes() {
            let count = &mut self.writers[value as usize];
            *count = count.strict_add_signed(by);
        }
    }

    fn run(&mut self, budget: Budget) -> Decision {
        let mut cursor = self.arrive();
        while self.left > 0 {
            self.tried += 1;
            if self.tried > budget.steps
                || self.remembered.len() > budget.remembered
                || (self.tried.is_multiple_of(STEPS_PER_GLANCE) && Instant::now() > budget.until)
            {
                return Decision::Undecided;
            }
            let node = match cursor {
                Cursor::Forced(step) => {
                    self.put(step, true);
                    cursor = self.arrive();
                    continue;
                }
                Cursor::Choice(node) => node,
            };
            cursor = match self.timeline.what(node) {
                Event::Begin(step) if self.may_come(step) => {
                    self.put(step, false);
                    if self.remember() {
                        self.arrive()
                    } else {
                        self.back().expect("the move just made had another choice")
                    }
                }
                Event::Begin(_) => Cursor::Choice(self.timeline.next(node)),
                // Everything that may come before this end was tried; likewise at the end of all.
                Event::End | Event::Last => match self.back() {
                    Some(cursor) => cursor,
                    None => return Decision::Impossible,
                },
            };
        }
        Decision::Linearizable
    }

    /// Where to go on in a configuration that was just reached: rules 1 and 4, or the first choice.
    fn arrive(&self) -> Cursor {
        let dead = self.is_dead(self.value);
        let first = self.timeline.first();
        let mut node = first;
        while let Event::Begin(step) = self.timeline.what(node) {
            let it = &self.steps[step as usize];
            let forced = match it.effect {
                Effect::Read(value) => value == self.value,
                Effect::Write(value) => dead && !it.optional && self.is_dead(value),
                Effect::Swap(..) => false,
            };
            if forced {
                return Cursor::Forced(step);
            }
            node = self.timeline.next(node);
        }
        Cursor::Choice(first)
    }

    /// Whether no step to come saw this value.
    fn is_dead(&self, value: Value) -> bool {
        self.certain_observers[value as usize] == 0 && self.optional_observers[value as usize] == 0
    }

    /// Whether the step fits what the register holds, and rule 2 lets it.
    fn may_come(&self, step: u32) -> bool {
        let it = &self.steps[step as usize];
        let (fits, left, own) = match it.effect {
            // Rule 1 has taken every read that fits.
            Effect::Read(_) => return false,
            Effect::Write(value) => (true, value, 0),
            Effect::Swap(seen, left) => (seen == self.value, left, u32::from(!it.optional)),
        };
        if !fits {
            return false;
        }
        if let (Effect::Write(value), true) = (it.effect, it.optional) {
            // Endless writes of one value are interchangeable once begun: take them in their order. One
            // that changes nothing need not be taken at all.
            if value == self.value || self.rank[step as usize] != self.ranks_used[value as usize] {
                return false;
            }
        }
        left == self.value
            || self.writers[self.value as usize] > 0
            || self.certain_observers[self.value as usize] == own
    }

    fn put(&mut self, step: u32, forced: bool) {
        let it = &self.steps[step as usize];
        self.trail.push(Move { step, before: self.value, forced });
        self.count(it, -1);
        if let Some(value) = it.effect.writes() {
            self.value = value;
        }
        if let (Effect::Write(value), true) = (it.effect, it.optional) {
            self.ranks_used[value as usize] += 1;
        }
        let ends = it.complete != NEVER;
        self.left -= usize::from(ends);
        let window = if ends { &mut self.ended } else { &mut self.endless };
        window.set(self.place[step as usize]);
        self.timeline.lift(step);
    }

    /// Undoes moves back to the last one that had another choice, and says where that one is. None if
    /// there is no such move: everything was tried.
    fn back(&mut self) -> Option<Cursor> {
        while let Some(last) = self.trail.pop() {
            let it = &self.steps[last.step as usize];
            self.timeline.unlift(last.step);
            let ends = it.complete != NEVER;
            let window = if ends { &mut self.ended } else { &mut self.endless };
            window.clear(self.place[last.step as usize]);
            self.left += usize::from(ends);
            if let (Effect::Write(value), true) = (it.effect, it.optional) {
                self.ranks_used[value as usize] -= 1;
            }
            self.value = last.before;
            self.count(it, 1);
            if !last.forced {
                return Some(Cursor::Choice(self.timeline.next(Timeline::begin(last.step))));
            }
        }
        None
    }

    /// Remembers the present configuration. False if it was known: nothing is to be found there.
    fn remember(&mut self) -> bool {
        self.scratch.clear();
        // Rule 3.
        let value = if self.is_dead(self.value) { DEAD } else { u64::from(self.value) };
        self.scratch.push(value);
        self.ended.describe(&mut self.scratch);
        self.endless.describe(&mut self.scratch);
        if self.remembered.contains(&self.scratch[..]) {
            return false;
        }
        self.remembered.insert(self.scratch.clone().into_boxed_slice())
    }
}

/// Where a search goes on.
#[derive(Clone, Copy)]
enum Cursor {
    /// With this step, and no other.
    Forced(u32),
    /// With the choices from this node of the timeline on.
    Choice(u32),
}

/// What happens at a node of the timeline.
enum Event {
    Begin(u32),
    End,
    Last,
}

/// Beginnings and ends of the steps not yet in order, by time, as a doubly linked list: a step is taken out
/// and put back in constant time, if in reverse order.
struct Timeline {
    /// Node 0 is the head, 2n+1 the tail; step `s` begins at node 2s+1 and ends at node 2s+2.
    next: Vec<u32>,
    previous: Vec<u32>,
    endless: Vec<bool>,
}

impl Timeline {
    fn new(steps: &[Step]) -> Self {
        let mut events: Vec<(u64, bool, u32)> = Vec::with_capacity(steps.len() * 2);
        for (position, step) in steps.iter().enumerate() {
            let begin = Self::begin(position as u32);
            events.push((step.invoke, false, begin));
            if step.complete != NEVER {
                // At the same instant beginnings come first: such steps overlap.
                events.push((step.complete, true, begin + 1));
            }
        }
        events.sort_unstable();
        let last = steps.len() as u32 * 2 + 1;
        let mut next = vec![last; last as usize + 1];
        let mut previous = vec![0; last as usize + 1];
        let mut at = 0;
        for (_, _, node) in events {
            next[at as usize] = node;
            previous[node as usize] = at;
            at = node;
        }
        next[at as usize] = last;
        previous[last as usize] = at;
        let endless = steps.iter().map(|step| step.complete == NEVER).collect();
        Self { next, previous, endless }
    }

    fn begin(step: u32) -> u32 {
        step * 2 + 1
    }

    fn first(&self) -> u32 {
        self.next[0]
    }

    fn next(&self, node: u32) -> u32 {
        self.next[node as usize]
    }

    fn what(&self, node: u32) -> Event {
        if node as usize == self.next.len() - 1 {
            Event::Last
        } else if node.is_multiple_of(2) {
            Event::End
        } else {
            Event::Begin((node - 1) / 2)
        }
    }

    fn lift(&mut self, step: u32) {
        self.unlink(Self::begin(step));
        if !self.endless[step as usize] {
            self.unlink(Self::begin(step) + 1);
        }
    }

    fn unlift(&mut self, step: u32) {
        if !self.endless[step as usize] {
            self.relink(Self::begin(step) + 1);
        }
        self.relink(Self::begin(step));
    }

    fn unlink(&mut self, node: u32) {
        let (previous, next) = (self.previous[node as usize], self.next[node as usize]);
        self.next[previous as usize] = next;
        self.previous[next as usize] = previous;
    }

    fn relink(&mut self, node: u32) {
        let (previous, next) = (self.previous[node as usize], self.next[node as usize]);
        self.next[previous as usize] = node;
        self.previous[next as usize] = node;
    }
}

/// A set of places that fills up roughly in order: described by where it is full up to, and the words from
/// there to the last one in use. So a configuration costs a few words, however long the history is.
#[derive(Default)]
struct Window {
    words: Vec<u64>,
    places: u32,
    /// All words before this one are full.
    low: usize,
    /// All words from this one on are empty.
    high: usize,
}

impl Window {
    /// Adds a place.
    fn grow(&mut self) -> u32 {
        if self.places.is_multiple_of(64) {
            self.words.push(0);
        }
        self.places += 1;
        self.places - 1
    }

    fn set(&mut self, place: u32) {
        let word = place as usize / 64;
        self.words[word] |= 1 << (place % 64);
        self.high = self.high.max(word + 1);
        while self.low < self.words.len() && self.words[self.low] == u64::MAX {
            self.low += 1;
        }
    }

    fn clear(&mut self, place: u32) {
        let word = place as usize / 64;
        self.words[word] &= !(1 << (place % 64));
        self.low = self.low.min(word);
        while self.high > 0 && self.words[self.high - 1] == 0 {
            self.high -= 1;
        }
    }

    fn describe(&self, into: &mut Vec<u64>) {
        let words = &self.words[self.low.min(self.high)..self.high];
        into.push(((self.low as u64) << 32) | words.len() as u64);
        into.extend_from_slice(words);
    }
}
