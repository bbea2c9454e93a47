//! Writing a history while it happens.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{API_VERSION, Complete, FinalState, Header, Invoke, Line};
use crate::clock;
use crate::operation::{Action, Outcome};

/// The most that is held back, in bytes and in time, before it is handed to the kernel.
const HELD_BYTES_MAX: usize = 64 * 1024;
const HELD_MAX: Duration = Duration::from_millis(200);

/// The history that is being written, shared by all clients of a generator.
///
/// What is handed to the kernel survives the death of the generator, though not that of the machine: a
/// lab's machine is not what fails.
#[derive(Debug)]
pub struct Recorder {
    next_id: AtomicU64,
    sink: Mutex<Sink>,
}

#[derive(Debug)]
struct Sink {
    file: File,
    held: Vec<u8>,
    flushed: Instant,
}

impl Recorder {
    /// Starts a new history. A file that exists is refused: it may be the only record of a run.
    pub fn create(path: &Path, seed: u64, endpoints: &[String]) -> io::Result<Self> {
        let file = OpenOptions::new().create_new(true).append(true).open(path)?;
        let sink = Sink { file, held: Vec::new(), flushed: Instant::now() };
        let recorder = Self { next_id: AtomicU64::new(1), sink: Mutex::new(sink) };
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        recorder.write(
            &Line::Header(Header {
                api_version: API_VERSION.to_owned(),
                seed,
                started_ns: clock::now_ns(),
                started_unix_ms: wall.as_millis() as u64,
                endpoints: endpoints.to_vec(),
            }),
            true,
        )?;
        Ok(recorder)
    }

    /// Records that an operation is about to be sent, and returns its id. Once this has returned, the
    /// record of a change survives the death of this process; a lost read is no loss.
    pub fn invoke(
        &self,
        client: u32,
        endpoint: &Arc<str>,
        key: &Arc<str>,
        action: &Action,
    ) -> io::Result<u64> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = Line::Invoke(Invoke {
            id,
            client,
            endpoint: Arc::clone(endpoint),
            key: Arc::clone(key),
            action: action.clone(),
            time_ns: clock::now_ns(),
        });
        self.write(&line, action.mutates())?;
        Ok(id)
    }

    /// Records what came of an operation, as of `time_ns`: the moment its answer was read, which the
    /// caller takes before anything else. Too late a moment only makes the judge more lenient.
    pub fn complete(&self, id: u64, time_ns: u64, outcome: Outcome) -> io::Result<()> {
        self.write(&Line::Complete(Complete { id, time_ns, outcome }), false)
    }

    /// Records what a node held in the end.
    pub fn final_state(&self, state: FinalState) -> io::Result<()> {
        self.write(&Line::Final(state), true)
    }

    /// Records that the generator ended in good order.
    pub fn end(&self) -> io::Result<()> {
        self.write(&Line::End, true)
    }

    fn write(&self, line: &Line, now: bool) -> io::Result<()> {
        // Turned into text before the lock is taken: the clients wait for each other as little as can be.
        let mut text = serde_json::to_vec(line).map_err(io::Error::other)?;
        text.push(b'\n');
        // A client that panicked while it held the lock left whole lines behind.
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.held.extend_from_slice(&text);
        if now || sink.held.len() >= HELD_BYTES_MAX || sink.flushed.elapsed() >= HELD_MAX {
            sink.flush()?;
        }
        Ok(())
    }
}

impl Sink {
    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.flushed = Instant::now();
        self.file.write_all(&held)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Nobody is left to be told; what is missing are outcomes, which then count as unknown.
        let _ = self.flush();
    }
}
