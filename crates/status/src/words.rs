//! Times and durations as people read them.

/// A moment, in UTC, to the second.
pub fn moment(ms: u64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000);
    let format = time::macros::format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    time.ok().and_then(|time| time.format(&format).ok()).unwrap_or_else(|| "?".to_owned())
}

/// A duration in the largest unit that says enough.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A size in the unit that says enough.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each unit begins where the smaller one stops to be read easily.
    #[test]
    fn units_change_where_people_expect_it() {
        let told = [900, 1_000, 119_000, 120_000, 7_200_000, 90_000_000, 172_800_000];
        let told: Vec<_> = told.into_iter().map(duration).collect();
        let wanted = ["900 ms", "1 s", "119 s", "2 min", "2 h 0 min", "25 h 0 min", "2 days"];
        assert_eq!(told, wanted);
        assert_eq!(moment(0), "1970-01-01 00:00:00");
        assert_eq!(
            (bytes(9_999), bytes(20_480), bytes(83_000_000)),
            ("9999 B".into(), "20 kB".into(), "83 MB".into())
        );
    }
}
