//! Protocol buffers, as far as etcd's records need them: a bounded walk over the fields of one message.

/// The value of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A varint.
    Number(u64),
    /// A string, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
    /// Eight or four fixed bytes: in none of the messages read here.
    Fixed,
}

impl<'a> Value<'a> {
    pub(crate) fn number(self) -> Option<u64> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// The fields of a message, in the order in which they stand. `None` ends it; `Some(None)` says that the
/// bytes are no message.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// The fields of a message.
pub(crate) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = varint(&mut self.rest)?;
        let number = key >> 3;
        if number == 0 {
            return None;
        }
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.rest)?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        Some((number, value))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

/// Takes one varint of at most ten bytes off the front.
pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for position in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        // The tenth byte holds the 64th bit alone.
        if position == 9 && *byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends a varint field: what the one record that is ever written consists of.
pub(crate) fn put_number(message: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(message, field << 3);
    put_varint(message, number);
}

/// Appends a field of bytes.
pub(crate) fn put_bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(message, field << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

fn put_varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written is what is read.
    #[test]
    fn fields_come_back() {
        let mut message = Vec::new();
        for number in [0, 1, 127, 128, 1 << 53, u64::MAX] {
            put_number(&mut message, 3, number);
        }
        put_bytes(&mut message, 4, b"text");
        let read: Option<Vec<_>> = fields(&message).collect();
        let read = read.unwrap();
        assert_eq!(read[5], (3, Value::Number(u64::MAX)));
        assert_eq!(read[6], (4, Value::Bytes(b"text")));
    }

    /// Lengths beyond the message, endless numbers, field 0 and groups are refused, and end the walk.
    #[test]
    fn what_is_no_message_is_refused() {
        for bad in [
            &[0x0a, 0xff][..],
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            &[0x00],
            &[0x0b],
            &[0x09, 1, 2],
        ] {
            assert_eq!(fields(bad).collect::<Option<Vec<_>>>(), None, "{bad:?}");
            assert!(fields(bad).count() <= 2);
        }
    }
}
