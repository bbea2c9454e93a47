//! "Did you mean ...?"

/// The known word that was probably meant, if any is close enough.
pub(crate) fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| -> Vec<char> {
        // data_dir, data-dir and DataDir are all dataDir.
        text.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(word);
    let limit = (wanted.len() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(&wanted, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be added, dropped, changed or swapped with their neighbour.
fn distance(from: &[char], to: &[char]) -> usize {
    let width = to.len() + 1;
    let mut rows: Vec<Vec<usize>> = vec![(0..width).collect()];
    for (row, letter) in from.iter().enumerate() {
        let mut next = vec![row + 1];
        for column in 1..width {
            let change = usize::from(*letter != to[column - 1]);
            let mut best = (rows[row][column] + 1)
                .min(next[column - 1] + 1)
                .min(rows[row][column - 1] + change);
            let swapped = row > 0
                && column > 1
                && *letter == to[column - 2]
                && from[row - 1] == to[column - 1];
            if swapped {
                best = best.min(rows[row - 1][column - 2] + 1);
            }
            next.push(best);
        }
        rows.push(next);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Usual typing errors find their word; other words find none.
    #[test]
    fn typing_errors_find_their_word() {
        let known = ["addresses", "bmc", "dataDir", "name", "preset"];
        for (word, meant) in [
            ("adresses", Some("addresses")),
            ("address", Some("addresses")),
            ("data_dir", Some("dataDir")),
            ("datadir", Some("dataDir")),
            ("nmae", Some("name")),
            ("BMC", Some("bmc")),
            ("ipmi", None),
            ("", None),
        ] {
            assert_eq!(suggest(word, known), meant, "{word}");
        }
    }
}
