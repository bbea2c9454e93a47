//! Random sequences of faults on a pair, with clients writing throughout and audits after every step.
//!
//! A plan is drawn from a seed and nothing else. `run` does it: hands break and repair, people decide, the
//! pair has to be whole again within a limit, and is audited; what clients saw is judged. A run that fails keeps
//! everything that tells why, and its decisions replay in `core`. `docs/internals/campaign.md` says what is checked.

mod act;
mod audit;
mod evidence;
mod hands;
mod person;
mod plan;
mod replay;
mod report;
mod run;
mod segment;
mod settle;

pub use act::{Act, Side};
pub use plan::{Kind, Plan, Step, Timed};
pub use replay::{Difference, Replayed, replay};
pub use report::{Recovery, Report, Violation};
pub use run::{Settings, run};
