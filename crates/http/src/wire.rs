//! Reading the head of a response.

use std::io::{self, Read};

use crate::body::Framing;
use crate::error::{Error, Step};
use crate::message::{Headers, Method};

/// No server has a reason to send more header lines than this.
const HEADER_LINES_MAX: usize = 128;
/// Interim answers (1xx) that may precede the real one.
const INTERIM_MAX: usize = 8;

/// Bytes that were read from a connection and not yet used.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    used: usize,
}

impl Buffer {
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.used += count;
        debug_assert!(self.used <= self.bytes.len());
        if self.used == self.bytes.len() {
            self.bytes.clear();
            self.used = 0;
        }
    }

    /// Reads once more from the connection; 0 means that it has ended. An error leaves what is there.
    pub(crate) fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        let mut chunk = [0; 8 * 1024];
        let count = retry_interrupted(|| source.read(&mut chunk))?;
        if self.used > 0 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        self.bytes.extend_from_slice(&chunk[..count]);
        Ok(count)
    }
}

/// Repeats a call that a signal interrupted.
pub(crate) fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The head of a response, and how its body is framed.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) framing: Framing,
    /// Whether the server will answer another request on this connection.
    pub(crate) keep_alive: bool,
}

/// Reads the head of the answer to a request with this method; what follows it stays in the buffer.
pub(crate) fn read_head(
    source: &mut impl Read,
    buffer: &mut Buffer,
    method: Method,
    limit: usize,
    server: &str,
) -> Result<Head, Error> {
    for _ in 0..=INTERIM_MAX {
        let head = read_one_head(source, buffer, method, limit, server)?;
        // 101 would end HTTP on this connection, and nobody asked for that.
        match head.status {
            101 => return Err(Error::Malformed { why: "it switches protocols unasked" }),
            100..200 => {}
            _ => return Ok(head),
        }
    }
    Err(Error::Malformed { why: "it has too many interim answers" })
}

fn read_one_head(
    source: &mut impl Read,
    buffer: &mut Buffer,
    method: Method,
    limit: usize,
    server: &str,
) -> Result<Head, Error> {
    loop {
        if let Some((head, length)) = parse_head(buffer.unread(), method)? {
            if length > limit {
                return Err(Error::TooLarge { part: "head", limit });
            }
            buffer.consume(length);
            return Ok(head);
        }
        if buffer.unread().len() > limit {
            return Err(Error::TooLarge { part: "head", limit });
        }
        match buffer.fill(source) {
            Ok(0) => return Err(Error::Closed { step: Step::Head, source: None }),
            Ok(_) => {}
            Err(error) => return Err(Error::from_io(error, Step::Head, server)),
        }
    }
}

fn parse_head(bytes: &[u8], method: Method) -> Result<Option<(Head, usize)>, Error> {
    let mut lines = [httparse::EMPTY_HEADER; HEADER_LINES_MAX];
    let mut parsed = httparse::Response::new(&mut lines);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(Error::Malformed { why: head_fault(error) }),
    };
    let status = parsed.code.unwrap_or_default();
    if !(100..600).contains(&status) {
        return Err(Error::Malformed { why: "its status code is not one" });
    }
    let mut headers = Headers::default();
    for line in parsed.headers.iter() {
        headers.push(line.name, line.value);
    }
    let framing = framing(method, status, &headers)?;
    let is_1_1 = parsed.version == Some(1);
    let asked_to_stay = is_1_1 || headers.has_word("Connection", "keep-alive");
    let keep_alive = asked_to_stay
        && !headers.has_word("Connection", "close")
        && framing != Framing::UntilClose
        // Both lengths at once is how requests are smuggled: such a connection is not used again.
        && !(headers.get("Transfer-Encoding").is_some() && headers.get("Content-Length").is_some());
    Ok(Some((Head { status, headers, framing, keep_alive }, length)))
}

fn head_fault(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::Version => "it is of another version",
        httparse::Error::Status => "its status line is broken",
        httparse::Error::TooManyHeaders => "it has too many headers",
        httparse::Error::HeaderName | httparse::Error::HeaderValue => {
            "one of its headers is broken"
        }
        _ => "its head is broken",
    }
}

fn framing(method: Method, status: u16, headers: &Headers) -> Result<Framing, Error> {
    if method == Method::Head || status < 200 || status == 204 || status == 304 {
        return Ok(Framing::Length(0));
    }
    let mut encodings =
        headers.all("Transfer-Encoding").flat_map(|v| v.split(',')).map(str::trim).peekable();
    if encodings.peek().is_some() {
        return match (encodings.next(), encodings.next()) {
            (Some(only), None) if only.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
            _ => Err(Error::Malformed { why: "its transfer encoding is not supported" }),
        };
    }
    let mut lengths = headers.all("Content-Length").flat_map(|v| v.split(',')).map(str::trim);
    let Some(first) = lengths.next() else {
        return Ok(Framing::UntilClose);
    };
    if lengths.any(|other| other != first) {
        return Err(Error::Malformed { why: "it has two different lengths" });
    }
    if first.is_empty() || !first.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::Malformed { why: "its length is not a number" });
    }
    first
        .parse()
        .map(Framing::Length)
        .map_err(|_| Error::Malformed { why: "its length is not a number" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Head, Error> {
        head_for(Method::Get, text)
    }

    fn head_for(method: Method, text: &str) -> Result<Head, Error> {
        read_head(&mut text.as_bytes(), &mut Buffer::default(), method, 4096, "test")
    }

    /// The body's framing follows RFC 9112, section 6.3.
    #[test]
    fn framing_of_the_body() {
        for (headers, framing, keep_alive) in [
            ("Content-Length: 7\r\n", Framing::Length(7), true),
            ("Content-Length: 7, 7\r\n", Framing::Length(7), true),
            ("Transfer-Encoding: Chunked\r\n", Framing::Chunked, true),
            ("Transfer-Encoding: chunked\r\nContent-Length: 7\r\n", Framing::Chunked, false),
            ("Content-Length: 7\r\nConnection: foo, Close\r\n", Framing::Length(7), false),
            ("", Framing::UntilClose, false),
        ] {
            let head = head(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).unwrap();
            assert_eq!((head.framing, head.keep_alive), (framing, keep_alive), "{headers}");
        }
        let no_body =
            head_for(Method::Head, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").unwrap();
        assert_eq!(no_body.framing, Framing::Length(0));
        let no_content = head("HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        assert_eq!(no_content.framing, Framing::Length(0));
        let old = head("HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n").unwrap();
        assert!(!old.keep_alive);
    }

    /// Interim answers are passed over, the real one counts.
    #[test]
    fn interim_answers_are_skipped() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 201 X\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(head(text).unwrap().status, 201);
        let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
        assert!(matches!(head(&endless), Err(Error::Malformed { .. })));
    }

    /// Whatever is not HTTP/1.x is refused with a reason, and nothing is guessed about its length.
    #[test]
    fn malformed_heads() {
        for text in [
            "SSH-2.0-OpenSSH_9.2\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 abc OK\r\n\r\n",
            "HTTP/1.1 700 OK\r\n\r\n",
            "HTTP/1.1 101 Switching\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        ] {
            assert!(matches!(head(text), Err(Error::Malformed { .. })), "{text}");
        }
        assert!(matches!(head("HTTP/1.1 200"), Err(Error::Closed { .. })));
        let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(5000));
        assert!(matches!(head(&long), Err(Error::TooLarge { part: "head", .. })));
    }
}
