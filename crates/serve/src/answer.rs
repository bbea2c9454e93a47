//! One request and its answer.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use dyad_core::state::Urgency;

use crate::access::Access;
use crate::watch::{View, Watch};

/// A look that is older than this says nothing of now: whoever checks our health is told.
const FRESH: Duration = Duration::from_mins(1);

/// What was asked for.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    /// The bytes of the head.
    pub(crate) length: usize,
    /// The client may ask again on this connection.
    pub(crate) stays: bool,
}

/// What is answered: a whole body, or a stream of events.
pub(crate) enum Answer {
    Whole { status: u16, kind: &'static str, body: Arc<[u8]>, more: &'static str },
    Events,
}

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Reads the head of a request; nothing while it is not whole.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Asked>, httparse::Error> {
    let mut lines = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut lines);
    let httparse::Status::Complete(length) = parsed.parse(bytes)? else { return Ok(None) };
    let find = |name: &str| parsed.headers.iter().find(|line| line.name.eq_ignore_ascii_case(name));
    let header = find("authorization");
    let closes = find("connection").is_some_and(|line| {
        String::from_utf8_lossy(line.value).to_ascii_lowercase().contains("close")
    });
    // A body is not read: what follows it could not be told from it.
    let has_body = find("content-length").or_else(|| find("transfer-encoding")).is_some();
    let path = parsed.path.unwrap_or_default().split('?').next().unwrap_or_default();
    Ok(Some(Asked {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        authorization: header.map(|line| String::from_utf8_lossy(line.value).into_owned()),
        length,
        stays: parsed.version == Some(1) && !closes && !has_body,
    }))
}

/// The answer to a request.
pub(crate) fn answer(asked: &Asked, access: &Access, watch: &Watch) -> Answer {
    if !access.allows(asked.authorization.as_deref()) {
        let more = "WWW-Authenticate: Basic realm=\"dyad\", Bearer\r\n";
        return whole_with(401, TEXT, b"a token is needed\n".as_slice().into(), more);
    }
    // Nothing can be changed from here.
    if !["GET", "HEAD"].contains(&asked.method.as_str()) {
        return whole_with(405, TEXT, b"look only\n".as_slice().into(), "Allow: GET, HEAD\r\n");
    }
    let Some(view) = watch.latest() else { return whole(503, TEXT, b"nothing seen yet\n") };
    match asked.path.as_str() {
        "/" => whole_with(200, HTML, view.html, ""),
        "/status.json" => whole_with(200, "application/json", view.json, ""),
        "/metrics" => whole_with(200, METRICS, view.metrics, ""),
        "/healthz" => health(&view),
        "/events" => Answer::Events,
        _ => whole(404, TEXT, b"there is /, /status.json, /metrics, /healthz and /events\n"),
    }
}

/// Whether this process sees anything: not whether the pair is well. A probe that restarts us for the pair's
/// sake would help nobody.
fn health(view: &View) -> Answer {
    if view.seen.elapsed() > FRESH {
        return whole(503, TEXT, b"the last look is too old\n");
    }
    let urgent = if view.state.urgency() == Urgency::Act { "; somebody is needed" } else { "" };
    let text = format!("ok; the pair is {}{urgent}\n", view.state);
    whole(200, TEXT, text.as_bytes())
}

fn whole(status: u16, kind: &'static str, body: &[u8]) -> Answer {
    whole_with(status, kind, body.into(), "")
}

fn whole_with(status: u16, kind: &'static str, body: Arc<[u8]>, more: &'static str) -> Answer {
    Answer::Whole { status, kind, body, more }
}

/// The head of an answer. The page runs nothing but its own few lines, and loads nothing from anywhere.
pub(crate) fn head(
    status: u16,
    kind: &str,
    length: Option<usize>,
    more: &str,
    stays: bool,
) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        _ => "Service Unavailable",
    };
    let mut text = format!("HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\n{more}");
    if let Some(length) = length {
        let _ = write!(text, "Content-Length: {length}\r\n");
    }
    text.push_str(
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src \
         'unsafe-inline'; connect-src 'self'; img-src 'self' data:\r\n",
    );
    text.push_str(if stays {
        "Connection: keep-alive\r\n\r\n"
    } else {
        "Connection: close\r\n\r\n"
    });
    text
}
