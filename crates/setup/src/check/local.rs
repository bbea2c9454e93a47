//! What this machine is.

use std::path::Path;

use super::Here;

/// The UUID that the firmware gives this machine.
pub(super) fn product_uuid(here: &Here) -> Result<String, String> {
    let path = here.path(Path::new("/sys/class/dmi/id/product_uuid"));
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    Ok(text.trim().to_ascii_lowercase())
}

/// Whether two UUIDs are the same, also if one side has the first three groups in the other byte order, as
/// some firmware does.
pub(super) fn same_uuid(one: &str, other: &str) -> bool {
    let (one, other) = (digits(one), digits(other));
    one == other || swapped(&one).is_some_and(|swapped| swapped == other)
}

fn digits(uuid: &str) -> String {
    uuid.chars().filter(char::is_ascii_hexdigit).map(|c| c.to_ascii_lowercase()).collect()
}

fn swapped(digits: &str) -> Option<String> {
    if digits.len() != 32 {
        return None;
    }
    let byte = |index: usize| &digits[index * 2..index * 2 + 2];
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    Some(order.into_iter().map(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same machine is known by either byte order and any spelling; another one is not.
    #[test]
    fn uuids_in_either_byte_order() {
        let uuid = "4c4c4544-0051-4210-8052-b4c04f573432";
        assert!(same_uuid(uuid, &uuid.to_uppercase()));
        assert!(same_uuid(uuid, "44454c4c-5100-1042-8052-b4c04f573432"));
        assert!(!same_uuid(uuid, "4c4c4544-0051-4210-8052-b4c04f573433"));
        assert!(!same_uuid("", uuid));
    }
}
