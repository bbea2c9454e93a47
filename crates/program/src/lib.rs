//! Running other programs, never without a limit on time and output (P6).
//!
//! A program that outlives its limit is killed with everything in its process group. Nothing here waits for
//! a pipe that a stray grandchild holds open.

use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long the output of a program that has ended may still take.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// More output than this is cut off: no tool that is asked here has more to say.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// The longest step between two looks at a running program.
const STEP_MAX: Duration = Duration::from_millis(10);

/// Why a program gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started at all.
    #[error("{program} could not be started")]
    NotStarted {
        /// The command line.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// It did not end in time and was killed.
    #[error("{program} did not end within {limit:?}")]
    TimedOut {
        /// The command line.
        program: String,
        /// Its limit.
        limit: Duration,
    },
    /// It ended with an error.
    #[error("{program} failed (exit code {code}): {stderr}")]
    Failed {
        /// The command line.
        program: String,
        /// Its exit code; 128 plus the signal number if a signal ended it.
        code: i32,
        /// The last lines it wrote to stderr.
        stderr: String,
    },
}

/// How a program ended and what it said.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The exit code; 128 plus the signal number if a signal ended it.
    pub code: i32,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Finished {
    /// Whether it ended with 0.
    pub fn success(&self) -> bool {
        self.code == 0
    }
}

/// A command with its arguments.
pub fn command<I, S>(program: &str, arguments: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// A command line as a person would type it.
pub fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command to its end, at most for `limit`; then it and its children are killed.
pub fn run(command: &mut Command, input: &str, limit: Duration) -> Result<Finished, Error> {
    let program = line(command);
    // A process group of its own, so that the limit reaches what it started too.
    let spawned = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(source) => return Err(Error::NotStarted { program, source }),
    };
    feed(&mut child, input);
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let Some(status) = wait(&mut child, limit) else {
        let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
        // A process that the kernel cannot end yet (stuck on a disk) must not hold us too.
        let _ = wait(&mut child, LAST_WORDS);
        return Err(Error::TimedOut { program, limit });
    };
    // A child that it left running may hold the pipes open: what was said so far is enough then.
    let stdout = stdout.recv_timeout(LAST_WORDS).unwrap_or_default();
    let stderr = stderr.recv_timeout(LAST_WORDS).unwrap_or_default();
    Ok(Finished { code: code_of(status), stdout, stderr })
}

/// The same for programs that must succeed: gives what was written to stdout.
pub fn output(command: &mut Command, input: &str, limit: Duration) -> Result<String, Error> {
    let finished = run(command, input, limit)?;
    if finished.success() {
        return Ok(finished.stdout);
    }
    Err(Error::Failed {
        program: line(command),
        code: finished.code,
        stderr: last_lines(&finished.stderr, 5),
    })
}

/// The last lines of a text, as one line.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join(" | ")
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Writes the input from a thread: a program that does not read it must not block its caller.
fn feed(child: &mut Child, input: &str) {
    let Some(mut stdin) = child.stdin.take() else { return };
    if input.is_empty() {
        return;
    }
    let input = input.to_owned();
    std::thread::spawn(move || {
        // A program is free not to read its input.
        let _ = stdin.write_all(input.as_bytes());
    });
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            // Reads on, so that a talkative program can end.
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// Waits for a child, at first in short steps: most programs here end within milliseconds.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    let mut step = Duration::from_micros(250);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if start.elapsed() >= limit {
            return None;
        }
        std::thread::sleep(step);
        step = (step * 2).min(STEP_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Command {
        command("sh", ["-c", script])
    }

    /// P6: a program that outlives its limit is killed with its children, and the error says so.
    #[test]
    fn the_limit_ends_a_program_and_its_children() {
        let marker = std::env::temp_dir().join(format!("dyad-program-{}", std::process::id()));
        let script = format!("(sleep 1; touch {}) & sleep 30", marker.display());
        let error = output(&mut shell(&script), "", Duration::from_millis(100)).unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        // Long enough for the grandchild to have left its trace, had it lived.
        let _ = run(&mut shell("sleep 1.5"), "", LONG).unwrap();
        assert!(!marker.exists(), "a grandchild outlived the limit");
    }

    /// A failure carries the command line, the exit code and what was said.
    #[test]
    fn a_failure_says_what_failed_and_why() {
        let error = output(&mut shell("echo no >&2; exit 3"), "", LONG).unwrap_err();
        assert_eq!(error.to_string(), "sh -c echo no >&2; exit 3 failed (exit code 3): no");
    }

    /// A program that is not there is told apart from one that failed.
    #[test]
    fn a_missing_program_is_not_started() {
        let error = output(&mut command("/nonexistent", [""; 0]), "", LONG).unwrap_err();
        assert!(matches!(error, Error::NotStarted { .. }), "{error}");
    }

    /// P6: neither unread input nor a grandchild that holds the pipes makes the caller wait.
    #[test]
    fn pipes_do_not_hold_the_caller() {
        let input = "x".repeat(1 << 20);
        assert!(run(&mut shell("exit 0"), &input, LONG).unwrap().success());
        let finished = run(&mut shell("sleep 3 & echo done"), "", LONG).unwrap();
        assert!(finished.success());
    }

    /// Input is delivered whole, output is taken whole up to its limit and the rest is thrown away.
    #[test]
    fn input_and_output_are_bounded() {
        let input = "x".repeat(1 << 20);
        assert_eq!(output(&mut command("cat", [""; 0]), &input, LONG).unwrap().len(), 1 << 20);
        let flood = format!("head -c {} /dev/zero", OUTPUT_BYTES_MAX + 1000);
        let taken = run(&mut shell(&flood), "", LONG).unwrap();
        assert!(taken.success());
        assert_eq!(taken.stdout.len() as u64, OUTPUT_BYTES_MAX);
    }
}
