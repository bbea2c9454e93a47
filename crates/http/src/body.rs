//! Reading the body of a response: by length, in chunks, or until the connection ends.

use std::io::{self, Read};

use crate::wire::Buffer;

/// The longest line before a chunk: its size and extensions that nobody uses.
const CHUNK_LINE_MAX: usize = 1024;
/// Lines after the last chunk.
const TRAILER_LINES_MAX: usize = 64;

/// How the end of a body is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After this many bytes.
    Length(u64),
    /// After an empty chunk.
    Chunked,
    /// When the connection ends.
    UntilClose,
}

/// What comes next in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// This many bytes of data, then the end.
    Data(u64),
    /// Data to the end of the connection.
    DataUntilClose,
    /// The line with the next chunk's size.
    ChunkSize,
    /// This many bytes of the present chunk.
    ChunkData(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// Lines after the last chunk; so many were seen.
    Trailers(usize),
    /// Nothing.
    End,
}

/// Decodes a body step by step. A read that failed for want of time can simply be repeated: no byte is lost.
#[derive(Debug)]
pub(crate) struct Decoder {
    next: Next,
}

impl Decoder {
    pub(crate) fn new(framing: Framing) -> Self {
        let next = match framing {
            Framing::Length(0) => Next::End,
            Framing::Length(length) => Next::Data(length),
            Framing::Chunked => Next::ChunkSize,
            Framing::UntilClose => Next::DataUntilClose,
        };
        Self { next }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.next == Next::End
    }

    /// Reads decoded bytes; 0 only at the end of the body (or for an empty `out`).
    pub(crate) fn read(
        &mut self,
        source: &mut impl Read,
        buffer: &mut Buffer,
        out: &mut [u8],
    ) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self.next {
                Next::End => return Ok(0),
                Next::Data(left) => {
                    let count = data(source, buffer, out, left)?;
                    self.next = after(left, count, Next::Data, Next::End);
                    return Ok(count);
                }
                Next::ChunkData(left) => {
                    let count = data(source, buffer, out, left)?;
                    self.next = after(left, count, Next::ChunkData, Next::ChunkEnd);
                    return Ok(count);
                }
                Next::DataUntilClose => return self.data_until_close(source, buffer, out),
                Next::ChunkSize => {
                    self.next = match chunk_size(&line(source, buffer)?)? {
                        0 => Next::Trailers(0),
                        size => Next::ChunkData(size),
                    };
                }
                Next::ChunkEnd => {
                    if !line(source, buffer)?.is_empty() {
                        return Err(malformed("a chunk is longer than its size says"));
                    }
                    self.next = Next::ChunkSize;
                }
                Next::Trailers(seen) => {
                    if line(source, buffer)?.is_empty() {
                        self.next = Next::End;
                    } else if seen == TRAILER_LINES_MAX {
                        return Err(malformed("too many trailers"));
                    } else {
                        self.next = Next::Trailers(seen + 1);
                    }
                }
            }
        }
    }

    fn data_until_close(
        &mut self,
        source: &mut impl Read,
        buffer: &mut Buffer,
        out: &mut [u8],
    ) -> io::Result<usize> {
        if buffer.unread().is_empty() && buffer.fill(source)? == 0 {
            self.next = Next::End;
            return Ok(0);
        }
        Ok(take(buffer, out, u64::MAX))
    }
}

fn after(left: u64, count: usize, same: fn(u64) -> Next, then: Next) -> Next {
    match left - count as u64 {
        0 => then,
        left => same(left),
    }
}

fn data(
    source: &mut impl Read,
    buffer: &mut Buffer,
    out: &mut [u8],
    left: u64,
) -> io::Result<usize> {
    if buffer.unread().is_empty() && buffer.fill(source)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(take(buffer, out, left))
}

fn take(buffer: &mut Buffer, out: &mut [u8], left: u64) -> usize {
    let unread = buffer.unread();
    let count = unread.len().min(out.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
    out[..count].copy_from_slice(&unread[..count]);
    buffer.consume(count);
    count
}

/// One line without its end. Nothing is consumed before the whole line is there.
fn line(source: &mut impl Read, buffer: &mut Buffer) -> io::Result<Vec<u8>> {
    loop {
        let unread = buffer.unread();
        if let Some(end) = unread.iter().take(CHUNK_LINE_MAX).position(|b| *b == b'\n') {
            let text = unread[..end].strip_suffix(b"\r").unwrap_or(&unread[..end]).to_vec();
            buffer.consume(end + 1);
            return Ok(text);
        }
        if unread.len() >= CHUNK_LINE_MAX {
            return Err(malformed("a chunk's size line is too long"));
        }
        if buffer.fill(source)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(malformed("a chunk's size is not a number"));
    }
    let text = str::from_utf8(digits).unwrap_or_default();
    u64::from_str_radix(text, 16).map_err(|_| malformed("a chunk's size is not a number"))
}

/// The mark by which a caller can tell broken framing from a broken connection.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadFraming(pub(crate) &'static str);

fn malformed(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, BadFraming(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields a text in pieces of one byte, each preceded by a time-out.
    struct Trickle<'a> {
        text: &'a [u8],
        ready: bool,
    }

    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.ready = !self.ready;
            if self.ready {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let count = self.text.len().min(1);
            out[..count].copy_from_slice(&self.text[..count]);
            self.text = &self.text[count..];
            Ok(count)
        }
    }

    fn decode(framing: Framing, mut source: impl Read) -> io::Result<Vec<u8>> {
        let (mut decoder, mut buffer, mut all) = (Decoder::new(framing), Buffer::default(), vec![]);
        loop {
            let mut out = [0; 3];
            match decoder.read(&mut source, &mut buffer, &mut out) {
                Ok(0) => return Ok(all),
                Ok(count) => all.extend_from_slice(&out[..count]),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                Err(error) => return Err(error),
            }
        }
    }

    const CHUNKED: &[u8] =
        b"5;x=y\r\nhello\r\n1\n \r\n006\r\nworld!\r\n0\r\nTrailer: x\r\n\r\nnext";

    /// Each framing yields exactly its body, and stops at its end.
    #[test]
    fn bodies_are_decoded() {
        assert_eq!(decode(Framing::Chunked, CHUNKED).unwrap(), b"hello world!");
        assert_eq!(decode(Framing::Length(5), &b"helloworld"[..]).unwrap(), b"hello");
        assert_eq!(decode(Framing::UntilClose, &b"hello"[..]).unwrap(), b"hello");
        assert_eq!(decode(Framing::Length(0), &b"hello"[..]).unwrap(), b"");
    }

    /// A time-out in any place loses no byte: the next read goes on where the last one stopped.
    #[test]
    fn time_outs_lose_nothing() {
        let trickle = Trickle { text: CHUNKED, ready: false };
        assert_eq!(decode(Framing::Chunked, trickle).unwrap(), b"hello world!");
        let trickle = Trickle { text: b"hello", ready: false };
        assert_eq!(decode(Framing::Length(5), trickle).unwrap(), b"hello");
    }

    /// A body that ends early is an error, never a shorter body.
    #[test]
    fn truncated_bodies_are_errors() {
        assert!(decode(Framing::Length(9), &b"hello"[..]).is_err());
        for end in 0..CHUNKED.len() - 4 {
            assert!(decode(Framing::Chunked, &CHUNKED[..end]).is_err(), "cut at {end}");
        }
    }

    /// Broken chunk sizes are refused, however large or odd.
    #[test]
    fn broken_chunks() {
        let long_line = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(2000));
        let trailers = format!("0\r\n{}\r\n", "A: b\r\n".repeat(100));
        for text in [
            "x\r\n",
            "\r\n",
            "-1\r\n",
            "+5\r\nhello\r\n",
            "ffffffffffffffffff\r\n",
            "3\r\nhello\r\n0\r\n\r\n",
            &long_line,
            &trailers,
        ] {
            let error = decode(Framing::Chunked, text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }
}
