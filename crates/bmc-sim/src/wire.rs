//! Reading requests and writing answers.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

use serde_json::Value;

/// No fence agent sends more.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// A request, read whole.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without query and trailing slash.
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) keep_alive: bool,
}

/// Reads the next request; `None` when the client has closed the connection.
pub(crate) fn read_request(
    source: &mut impl Read,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    loop {
        if let Some((request, length)) = parse(buffer)? {
            buffer.drain(..length);
            return Ok(Some(request));
        }
        if buffer.len() > REQUEST_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too large"));
        }
        let mut chunk = [0; 4096];
        match source.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(count) => buffer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn parse(bytes: &[u8]) -> io::Result<Option<(Request, usize)>> {
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let mut lines = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut lines);
    let head = match parsed.parse(bytes).map_err(|error| invalid(&error.to_string()))? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let header = |name: &str| {
        let line = parsed.headers.iter().find(|line| line.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(line.value).into_owned())
    };
    let length = match header("Content-Length") {
        None => 0,
        Some(text) => text.trim().parse::<usize>().map_err(|_| invalid("bad Content-Length"))?,
    };
    if length > REQUEST_BYTES_MAX || header("Transfer-Encoding").is_some() {
        return Err(invalid("the body is too large, or has no length"));
    }
    let Some(body) = bytes.get(head..head + length) else {
        return Ok(None);
    };
    let target = parsed.path.unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().trim_end_matches('/');
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        authorization: header("Authorization"),
        token: header("X-Auth-Token"),
        body: body.to_vec(),
        keep_alive: parsed.version == Some(1)
            && !header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close")),
    };
    Ok(Some((request, head + length)))
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<Value>,
}

impl Answer {
    pub(crate) fn json(body: Value) -> Self {
        Self { status: 200, headers: Vec::new(), body: Some(body) }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: None }
    }

    /// An error in Redfish's form.
    pub(crate) fn error(status: u16, message: &str) -> Self {
        let body = serde_json::json!({
            "error": { "code": "Base.1.0.GeneralError", "message": message }
        });
        Self { status, headers: Vec::new(), body: Some(body) }
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Writes it in one piece; `cut` leaves out the end of the body, with a length that fits.
    pub(crate) fn write(
        &self,
        out: &mut impl Write,
        keep_alive: bool,
        cut: bool,
    ) -> io::Result<()> {
        let mut body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        if cut {
            body.truncate(body.len() * 2 / 3);
        }
        let mut text = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if self.status != 204 {
            let _ = write!(text, "Content-Length: {}\r\n", body.len());
        }
        if !body.is_empty() {
            text += "Content-Type: application/json\r\n";
        }
        text += "OData-Version: 4.0\r\n";
        text += if keep_alive { "\r\n" } else { "Connection: close\r\n\r\n" };
        text += &body;
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
