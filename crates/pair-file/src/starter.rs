//! The commented file that `dyad init` writes.

/// The starter, which passes every check but for what is still to be filled in.
pub fn starter() -> &'static str {
    include_str!("starter.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new user's first check lists exactly what is to be filled in, and nothing else.
    #[test]
    fn only_what_is_to_be_filled_in_is_wrong() {
        let loaded = crate::load(starter().as_bytes());
        let others: Vec<_> = loaded.problems.iter().filter(|p| p.id != "to-fill-in").collect();
        assert!(others.is_empty(), "{others:?}");
        assert_eq!(loaded.problems.len(), 11);
    }
}
