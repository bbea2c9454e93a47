//! Reading a history back.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::{API_VERSION, Complete, Header, History, Invoke, Line};
use crate::operation::{Operation, Outcome};

/// The longest line that is read. A final state of 100,000 keys has about 15 MB.
const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Why a file is not a history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file cannot be read.
    #[error("cannot read history {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line makes no sense.
    #[error("history {}, line {line}: {why}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// Reads a whole history. A last line without its end, as a killed generator leaves it, is dropped;
/// operations without an outcome get an unknown one.
pub fn read(path: &Path) -> Result<History, HistoryError> {
    let failed = |source| HistoryError::Read { path: path.to_owned(), source };
    let mut input = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
    let mut reading = Reading::default();
    let mut text = Vec::new();
    loop {
        text.clear();
        let read = io::Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut text);
        if read.map_err(failed)? == 0 {
            break;
        }
        reading.line += 1;
        let torn = text.last() != Some(&b'\n');
        let taken = match serde_json::from_slice::<Line>(&text) {
            Ok(line) => reading.take(line),
            Err(_) if torn && reading.line > 1 => break,
            Err(error) => Err(format!("not a record of a history: {error}")),
        };
        taken.map_err(|why| HistoryError::Line {
            path: path.to_owned(),
            line: reading.line,
            why,
        })?;
    }
    reading.finish().map_err(|why| HistoryError::Line { path: path.to_owned(), line: 1, why })
}

#[derive(Default)]
struct Reading {
    line: usize,
    header: Option<Header>,
    history: History,
    /// Where each operation lies; nothing once it has come to its end.
    open: HashMap<u64, Option<usize>>,
}

impl Reading {
    fn take(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Header(header) => self.take_header(header),
            _ if self.header.is_none() => Err("the first line must be the header".to_owned()),
            Line::Invoke(invoke) => self.take_invoke(invoke),
            Line::Complete(complete) => self.take_complete(complete),
            Line::Final(state) => {
                self.history.finals.push(state);
                Ok(())
            }
            Line::End => {
                self.history.ended = true;
                Ok(())
            }
        }
    }

    fn take_header(&mut self, header: Header) -> Result<(), String> {
        if self.header.is_some() {
            return Err("a second header".to_owned());
        }
        if header.api_version != API_VERSION {
            return Err(format!("version `{}`; this reads {API_VERSION}", header.api_version));
        }
        self.header = Some(header);
        Ok(())
    }

    fn take_invoke(&mut self, invoke: Invoke) -> Result<(), String> {
        if self.open.insert(invoke.id, Some(self.history.operations.len())).is_some() {
            return Err(format!("operation {} is invoked twice", invoke.id));
        }
        self.history.operations.push(Operation {
            id: invoke.id,
            client: invoke.client,
            endpoint: invoke.endpoint,
            key: invoke.key,
            action: invoke.action,
            invoke_ns: invoke.time_ns,
            complete_ns: None,
            gave_up_ns: None,
            outcome: Outcome::Unknown {
                reason: "the generator ended before the answer".to_owned(),
            },
        });
        Ok(())
    }

    fn take_complete(&mut self, complete: Complete) -> Result<(), String> {
        let Some(position) = self.open.get_mut(&complete.id).and_then(Option::take) else {
            return Err(format!("operation {} comes to an end but is not open", complete.id));
        };
        let operation = &mut self.history.operations[position];
        if complete.time_ns < operation.invoke_ns {
            return Err(format!("operation {} ends before it begins", complete.id));
        }
        // An unknown outcome has no end: whatever the client gave up on may still take effect.
        if matches!(complete.outcome, Outcome::Unknown { .. }) {
            operation.gave_up_ns = Some(complete.time_ns);
        } else {
            operation.complete_ns = Some(complete.time_ns);
        }
        operation.outcome = complete.outcome;
        Ok(())
    }

    fn finish(mut self) -> Result<History, String> {
        self.history.header = self.header.ok_or("the file is empty: no header")?;
        // Clients take their time before they take the lock: lines may be out of order by a little.
        self.history.operations.sort_by_key(|operation| operation.invoke_ns);
        Ok(self.history)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::clock;
    use crate::history::{FinalState, Recorder};
    use crate::operation::{Action, Answer};

    fn recorder(path: &Path) -> Recorder {
        Recorder::create(path, 7, &["a".to_owned()]).unwrap()
    }

    fn put(recorder: &Recorder, value: &str) -> u64 {
        let action = Action::Put { value: value.to_owned() };
        recorder.invoke(3, &Arc::from("a"), &Arc::from("k"), &action).unwrap()
    }

    fn ok(revision: u64) -> Outcome {
        Outcome::Ok(Answer { revision, applied: true, observed: None })
    }

    /// What is written is read back: header, operations, final states, and that it ended.
    #[test]
    fn a_history_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.jsonl");
        let recorder = recorder(&path);
        let first = put(&recorder, "x");
        recorder.complete(first, clock::now_ns(), ok(9)).unwrap();
        let second = put(&recorder, "y");
        let late = Outcome::Unknown { reason: "timed out".to_owned() };
        recorder.complete(second, clock::now_ns(), late.clone()).unwrap();
        let state = FinalState {
            endpoint: "a".to_owned(),
            prefix: "k".to_owned(),
            revision: 9,
            cluster_id: None,
            items: [].into(),
        };
        recorder.final_state(state.clone()).unwrap();
        recorder.end().unwrap();

        let history = read(&path).unwrap();
        assert_eq!(history.header.seed, 7);
        assert_eq!(history.finals, [state]);
        assert!(history.ended);
        let [one, two] = &history.operations[..] else { panic!("two operations") };
        assert_eq!((one.outcome.clone(), one.complete_ns.is_some()), (ok(9), true));
        assert_eq!((two.outcome.clone(), two.complete_ns), (late, None));
    }

    /// A killed generator leaves every change that it may have sent, though nothing was closed or
    /// flushed by hand, and perhaps half a line.
    #[test]
    fn a_killed_generator_leaves_its_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.jsonl");
        let recorder = recorder(&path);
        put(&recorder, "x");
        // What the file holds at this moment is what a kill would leave.
        let mut left = fs::read(&path).unwrap();
        left.extend_from_slice(b"{\"line\":\"comp");
        fs::write(&path, left).unwrap();

        let history = read(&path).unwrap();
        assert_eq!(history.operations.len(), 1);
        assert!(history.operations[0].is_unknown());
        assert!(!history.ended);
    }

    /// A file that exists is never overwritten.
    #[test]
    fn an_old_history_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.jsonl");
        fs::write(&path, "precious").unwrap();
        assert!(Recorder::create(&path, 0, &[]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    /// Bad input gets a message with file and line.
    #[test]
    fn errors_name_file_and_line() {
        let header = r#"{"line":"header","apiVersion":"dyad/v1","startedNs":1,"startedUnixMs":1,"endpoints":[]}"#;
        let invoke = r#"{"line":"invoke","id":1,"client":1,"endpoint":"a","key":"k","action":{"type":"get"},"timeNs":5}"#;
        let early =
            r#"{"line":"complete","id":1,"timeNs":4,"outcome":{"failed":{"reason":"refused"}}}"#;
        let stray = early.replace("\"id\":1", "\"id\":2");
        let old = header.replace("dyad/v1", "dyad/v0");
        let cases = [
            (String::new(), "line 1: the file is empty"),
            (format!("{invoke}\n"), "line 1: the first line must be the header"),
            (format!("{old}\n"), "line 1: version `dyad/v0`"),
            (format!("{header}\n{header}\n"), "line 2: a second header"),
            (format!("{header}\nnonsense\n{invoke}\n"), "line 2: not a record"),
            (format!("{header}\n{invoke}\n{invoke}\n"), "line 3: operation 1 is invoked twice"),
            (format!("{header}\n{invoke}\n{early}\n"), "line 3: operation 1 ends before it begins"),
            (format!("{header}\n{invoke}\n{stray}\n"), "line 3: operation 2 comes to an end"),
        ];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.jsonl");
        for (text, wanted) in cases {
            fs::write(&path, &text).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains(wanted), "{message:?} instead of {wanted:?}");
            assert!(message.contains("h.jsonl"), "{message:?} does not name the file");
        }
        let missing = read(&directory.path().join("missing")).unwrap_err().to_string();
        assert!(missing.contains("cannot read history"), "{missing}");
    }
}
