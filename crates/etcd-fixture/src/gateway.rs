//! A client of etcd's JSON gateway, just large enough to write fast over one kept connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

/// How long one request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);
/// How large an answer may be.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// One connection to a member's JSON gateway.
#[derive(Debug)]
pub struct Gateway {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Gateway {
    /// Connects to `host:port`.
    pub fn connect(host: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).with_context(|| format!("connecting to {host}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REQUEST_LIMIT))?;
        stream.set_write_timeout(Some(REQUEST_LIMIT))?;
        Ok(Self { stream: BufReader::new(stream), host: host.to_owned() })
    }

    /// Writes one key. `Ok` means that etcd acknowledged it.
    pub fn put(&mut self, key: &str, value: &[u8]) -> anyhow::Result<()> {
        let body = json!({ "key": base64(key.as_bytes()), "value": base64(value) });
        self.post("/v3/kv/put", &body).map(drop)
    }

    /// Writes many keys as one transaction: one entry of the log, one revision.
    pub fn put_all<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> anyhow::Result<()> {
        let operations: Vec<_> = pairs
            .into_iter()
            .map(|(key, value)| {
                json!({ "requestPut": { "key": base64(key.as_bytes()), "value": base64(value) } })
            })
            .collect();
        self.post("/v3/kv/txn", &json!({ "success": operations })).map(drop)
    }

    /// How many keys begin with this (not empty) prefix, by a linearizable read.
    pub fn count(&mut self, prefix: &str) -> anyhow::Result<u64> {
        let mut end = prefix.as_bytes().to_vec();
        *end.last_mut().context("an empty prefix")? += 1;
        let body = json!({
            "key": base64(prefix.as_bytes()),
            "range_end": base64(&end),
            "count_only": true,
        });
        // The gateway writes numbers of 64 bits as text, and leaves out zeros.
        let answer = self.post("/v3/kv/range", &body)?;
        Ok(answer["count"].as_str().unwrap_or("0").parse()?)
    }

    /// One request; the answer's JSON.
    pub fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).context("sending a request")?;
        let status = self.line()?;
        let mut length = None;
        loop {
            let header = self.line()?.to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<u64>()?);
            }
        }
        let body = match length {
            Some(length) => self.exactly(length)?,
            None => self.chunks()?,
        };
        if !status.contains(" 200 ") {
            bail!("{path}: {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let read = self.stream.by_ref().take(8192).read_line(&mut line)?;
        ensure!(read > 0, "the connection ended");
        Ok(line.trim_end().to_owned())
    }

    fn exactly(&mut self, length: u64) -> anyhow::Result<Vec<u8>> {
        ensure!(length <= ANSWER_BYTES_MAX, "an answer of {length} bytes");
        let mut body = vec![0; usize::try_from(length)?];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn chunks(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = u64::from_str_radix(&self.line()?, 16).context("a chunk's length")?;
            ensure!(body.len() as u64 <= ANSWER_BYTES_MAX, "an answer without end");
            body.extend(self.exactly(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for position in 0..4 {
            if position <= chunk.len() {
                text.push(char::from(LETTERS[(word >> (18 - 6 * position)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    /// The test vectors of RFC 4648.
    #[test]
    fn base64_is_the_standard_one() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
