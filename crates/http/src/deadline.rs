//! The end of a request.

use std::time::{Duration, Instant};

use crate::error::{Error, Step};

/// The moment at which a request must have ended, whatever the other side does.
///
/// One deadline can be handed to several requests: together they end by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline that lies this far ahead.
    pub fn after(limit: Duration) -> Self {
        let now = Instant::now();
        // A limit beyond what the clock can hold means "practically never": a year is that.
        Self(now.checked_add(limit).unwrap_or_else(|| now + Duration::from_hours(24 * 365)))
    }

    /// The deadline at this moment.
    pub fn at(moment: Instant) -> Self {
        Self(moment)
    }

    /// The moment itself.
    pub fn moment(self) -> Instant {
        self.0
    }

    /// How much time is left; zero once it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        self.remaining().is_zero()
    }

    /// The earlier of this deadline and one that lies `limit` ahead.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        self.min(Self::after(limit))
    }

    /// The time left, or the error that names the step that had none.
    pub(crate) fn left(self, step: Step) -> Result<Duration, Error> {
        match self.remaining() {
            Duration::ZERO => Err(Error::Deadline { step }),
            left => Ok(left),
        }
    }
}
