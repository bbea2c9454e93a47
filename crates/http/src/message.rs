//! Requests and responses.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::secret::Secret;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Read.
    Get,
    /// Read the headers only.
    Head,
    /// Do, or create.
    Post,
    /// Replace.
    Put,
    /// Change a part.
    Patch,
    /// Remove.
    Delete,
}

impl Method {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post | Self::Patch)
    }
}

/// One request to a server. Its `Debug` shows neither the body nor secret headers.
#[derive(Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) target: String,
    headers: Vec<(String, Zeroizing<String>)>,
    body: Zeroizing<Vec<u8>>,
    retry_safe: bool,
}

impl Request {
    /// A request for this path (with its query, if any).
    pub fn new(method: Method, target: impl Into<String>) -> Self {
        Self {
            method,
            target: target.into(),
            headers: Vec::new(),
            body: Zeroizing::default(),
            retry_safe: method.is_idempotent(),
        }
    }

    /// Reads this path.
    pub fn get(target: impl Into<String>) -> Self {
        Self::new(Method::Get, target)
    }

    /// Posts this body to this path.
    pub fn post(target: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self::new(Method::Post, target).body(body)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), Zeroizing::new(value.into())));
        self
    }

    /// Adds a header whose value is secret.
    #[must_use]
    pub fn secret_header(self, name: impl Into<String>, value: &Secret) -> Self {
        self.header(name, value.expose())
    }

    /// Adds basic authentication.
    #[must_use]
    pub fn basic_auth(self, user: &str, password: &Secret) -> Self {
        let pair = Zeroizing::new(format!("{user}:{}", password.expose()));
        let token = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
        self.header("Authorization", format!("Basic {}", token.as_str()))
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Zeroizing::new(body.into());
        self
    }

    /// Says that sending this twice does no harm, though its method alone would not tell: it may be sent
    /// once more when a kept connection turns out to be dead.
    #[must_use]
    pub fn retry_safe(mut self) -> Self {
        self.retry_safe = true;
        self
    }

    pub(crate) fn is_retry_safe(&self) -> bool {
        self.retry_safe
    }

    /// The bytes on the wire, in one piece so that they leave in one packet.
    pub(crate) fn encode(&self, authority: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
        self.check()?;
        let mut text = Zeroizing::new(Vec::with_capacity(512 + self.body.len()));
        let mut put = |parts: &[&str]| {
            for part in parts {
                text.extend_from_slice(part.as_bytes());
            }
        };
        put(&[self.method.as_str(), " ", &self.target, " HTTP/1.1\r\nHost: ", authority, "\r\n"]);
        for (name, value) in &self.headers {
            put(&[name, ": ", value, "\r\n"]);
        }
        if !self.body.is_empty() || !matches!(self.method, Method::Get | Method::Head) {
            put(&["Content-Length: ", &self.body.len().to_string(), "\r\n"]);
        }
        put(&["\r\n"]);
        text.extend_from_slice(&self.body);
        Ok(text)
    }

    /// Refuses what would let a value end its line and start another header.
    fn check(&self) -> Result<(), Error> {
        let fault = |why| Err(Error::Request { why });
        if !self.target.starts_with('/') {
            return fault("the path does not start with /");
        }
        if !self.target.bytes().all(|b| b.is_ascii_graphic()) {
            return fault("the path has a space, a control or a non-ASCII character");
        }
        for (name, value) in &self.headers {
            if name.is_empty() || !name.bytes().all(is_token) {
                return fault("a header's name is not valid");
            }
            if value.bytes().any(|b| b != b'\t' && (b < b' ' || b == 0x7f)) {
                return fault("a header's value has a control character");
            }
            let owned_here = ["host", "content-length", "transfer-encoding", "connection"];
            if owned_here.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                return fault("it sets a header that the client sets itself");
            }
        }
        Ok(())
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_secret(name: &str) -> bool {
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-auth-token"]
        .iter()
        .any(|secret| name.eq_ignore_ascii_case(secret))
}

/// Header names are shown, values only if they cannot be secrets.
fn shown<'a>(name: &'a str, value: &'a str) -> (&'a str, &'a str) {
    (name, if is_secret(name) { "(redacted)" } else { value })
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Header names that the caller chose may carry secrets too: names only.
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("header_names", &names)
            .field("body_bytes", &self.body.len())
            .field("retry_safe", &self.retry_safe)
            .finish()
    }
}

/// The headers of a response, in the order in which they came.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        self.0.push((name.to_owned(), String::from_utf8_lossy(value).into_owned()));
    }

    /// The first value of this header; names are compared without regard to case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Every value of this header.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    }

    /// Every header.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether a comma-separated header holds this word.
    pub(crate) fn has_word(&self, name: &str, word: &str) -> bool {
        self.all(name).flat_map(|v| v.split(',')).any(|v| v.trim().eq_ignore_ascii_case(word))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(name, value)| shown(name, value))).finish()
    }
}

/// A whole response. Its `Debug` shows the size of the body, not the body.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Headers,
    /// The body, decoded from its transfer encoding.
    pub body: Vec<u8>,
}

impl Response {
    /// Whether the status is one of success (2xx).
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value cannot smuggle in another header or request, and the framing headers stay ours.
    #[test]
    fn requests_that_would_break_the_framing_are_refused() {
        for request in [
            Request::get("redfish"),
            Request::get("/a b"),
            Request::get("/a\r\nX: y"),
            Request::get("/").header("X", "a\r\nY: b"),
            Request::get("/").header("X Y", "a"),
            Request::get("/").header("", "a"),
            Request::get("/").header("content-length", "7"),
            Request::get("/").header("Transfer-Encoding", "chunked"),
        ] {
            assert!(matches!(request.encode("h"), Err(Error::Request { .. })), "{request:?}");
        }
    }

    /// Neither the request nor the response shows a secret when it is printed for debugging.
    #[test]
    fn debug_hides_secrets() {
        let secret = Secret::new("hunter2");
        let request = Request::post("/login", "{\"Password\":\"hunter2\"}")
            .basic_auth("root", &secret)
            .secret_header("X-Auth-Token", &secret);
        let mut headers = Headers::default();
        headers.push("x-auth-token", b"hunter2");
        headers.push("Set-Cookie", b"hunter2");
        let response = Response { status: 201, headers, body: b"hunter2".to_vec() };
        let printed = format!("{request:?} {response:?} {secret:?} {secret}");
        assert!(!printed.contains("hunter2"), "{printed}");
        assert!(!printed.contains(&STANDARD.encode("root:hunter2")), "{printed}");
    }

    /// The request is exactly what RFC 9112 asks for: one Host, a length wherever a body may be.
    #[test]
    fn the_wire_form() {
        let text = |request: Request| {
            String::from_utf8(request.encode("[::1]:81").unwrap().to_vec()).unwrap()
        };
        assert_eq!(text(Request::get("/a?b=c")), "GET /a?b=c HTTP/1.1\r\nHost: [::1]:81\r\n\r\n");
        assert_eq!(
            text(Request::post("/", "hi").header("A", "b")),
            "POST / HTTP/1.1\r\nHost: [::1]:81\r\nA: b\r\nContent-Length: 2\r\n\r\nhi"
        );
        assert!(text(Request::post("/", "")).contains("Content-Length: 0\r\n"));
    }
}
