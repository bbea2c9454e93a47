//! `pair.yaml`: the one file that describes a pair.
//!
//! Reading it gives everything that is wrong at once, each with its place, its key and what to do: first the
//! shape, against the schema that editors use too, then the rules that tie keys together, then the timing
//! arithmetic of `core`.

mod convert;
mod cursor;
pub mod file;
pub mod install_config;
mod problem;
mod rules;
pub mod schema;
mod secret;
mod shape;
mod starter;
mod suggest;
mod timing;
mod yaml;

use dyad_cluster::pair::Pair;

pub use crate::convert::{WEBHOOK, bmc_ca_path, credentials_path, pki};
pub use crate::problem::{Position, Problem};
pub use crate::secret::Password;
pub use crate::starter::starter;
pub use crate::yaml::FILE_BYTES_MAX;

/// A file that was read: what it says, if it can be used, and what is wrong with it.
#[derive(Debug)]
pub struct Loaded {
    /// What it says; nothing if there are errors.
    pub file: Option<file::PairFile>,
    /// The same as everything is rendered from.
    pub pair: Option<Pair>,
    /// Everything that is wrong, in the order of the file.
    pub problems: Vec<Problem>,
}

impl Loaded {
    /// Whether it may be used.
    pub fn is_usable(&self) -> bool {
        self.pair.is_some()
    }
}

/// Reads a description of a pair.
pub fn load(bytes: &[u8]) -> Loaded {
    let (tree, mut problems) = yaml::parse(bytes);
    let Some(tree) = tree else {
        return Loaded { file: None, pair: None, problems };
    };
    let (sound, shape_problems) = shape::check(&tree, &schema::schema());
    problems.extend(shape_problems);
    problems.extend(rules::check(&tree));
    let parsed = serde_json::from_value::<file::PairFile>(sound);
    let mut pair = None;
    match &parsed {
        Ok(file) => {
            pair = convert::pair(file);
            problems.extend(pair.iter().flat_map(|pair| timing::check(&tree, pair)));
        }
        // Only what was reported already can be wrong here; never stay silent all the same.
        Err(error) if !problems.iter().any(Problem::is_error) => {
            problems.push(Problem::error("shape", None, "", error.to_string()));
        }
        Err(_) => {}
    }
    problems.sort_by_key(|problem| problem.at);
    let is_usable = pair.is_some() && !problems.iter().any(Problem::is_error);
    Loaded { file: parsed.ok().filter(|_| is_usable), pair: pair.filter(|_| is_usable), problems }
}
