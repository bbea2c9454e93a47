//! What a node remembers between two looks: durable marks beside the data, and what a reboot must lose.

use std::path::PathBuf;

use dyad_core::facts::{
    Confirmation, Eligibility, LogPosition, Marks, Memory as PeerMemory, PowerReading,
    TakeOverMark, YieldMark,
};
use dyad_core::ids::{BootId, ClusterId, MemberId, RunId};
use dyad_core::statement::Statement;
use serde::{Deserialize, Serialize};

use crate::place::{BesideData, Place};
use crate::record::{self, Error};

/// More than a mark and what a file system needs to hold it.
const BALLAST_BYTES: usize = 256 << 10;

/// The run of etcd that has answered.
const ANSWERED: &str = "answered.json";

/// The records of one node.
#[derive(Debug, Clone)]
pub struct Memory {
    runtime: PathBuf,
    beside: BesideData,
    began: PathBuf,
    boot: BootId,
    /// Nothing is written: whoever only looks must not change what the agent counts and remembers.
    only_looks: bool,
}

/// Which data a machine has held (R12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its member there.
    pub member: MemberId,
}

/// The start of something that lasts: since when, on this boot's own clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Since {
    boot: BootId,
    uptime_ms: u64,
    /// With another value of this it is not the same thing that lasts.
    #[serde(default)]
    of: u64,
}

impl Memory {
    /// The records of the node with these places, in its present boot.
    pub fn new(place: &Place, beside: BesideData, boot: BootId) -> Self {
        Self {
            runtime: place.runtime.clone(),
            beside,
            began: place.began(),
            boot,
            only_looks: false,
        }
    }

    /// The same records, for somebody who only looks: counting and forgetting is left to the agent.
    #[must_use]
    pub fn only_looking(&self) -> Self {
        Self { only_looks: true, ..self.clone() }
    }

    /// Where things are kept that a reboot loses.
    #[cfg(feature = "broken-variants")]
    pub(crate) fn runtime(&self) -> &std::path::Path {
        &self.runtime
    }

    fn volatile(&self, name: &str) -> PathBuf {
        self.runtime.join(name)
    }

    /// What lies beside the data.
    pub fn beside(&self) -> &BesideData {
        &self.beside
    }

    /// Where it is written down that this machine has held data.
    pub fn began_file(&self) -> &std::path::Path {
        &self.began
    }

    /// Writes down which data this machine holds: from now on it never begins a pair.
    pub fn set_began(&self, began: &Began) -> Result<(), Error> {
        match record::read::<Began>(&self.began) {
            Ok(Some(found)) if found == *began => Ok(()),
            _ => record::write_durable(&self.began, began),
        }
    }

    /// The durable marks. One that is there and cannot be read is an error: nothing may start then.
    pub fn marks(&self) -> Result<Marks, Error> {
        Ok(Marks {
            take_over: record::read(&self.beside.take_over_mark())?,
            yielded: record::read(&self.beside.yield_mark())?,
        })
    }

    /// Writes the take-over mark; it is on the disk when this returns (R2a).
    pub fn mark_take_over(&self, mark: &TakeOverMark) -> Result<(), Error> {
        record::write_durable(&self.beside.take_over_mark(), mark)
    }

    /// Removes the take-over mark: after the barrier, and only then.
    pub fn clear_take_over(&self) -> Result<(), Error> {
        record::remove_durable(&self.beside.take_over_mark())
    }

    /// Writes the yield mark; it is on the disk when this returns (R4, R8). A full disk is one reason to
    /// yield: then the ballast makes room.
    pub fn mark_yield(&self, mark: &YieldMark) -> Result<(), Error> {
        let path = self.beside.yield_mark();
        match record::write_durable(&path, mark) {
            Err(error) if error.is_full_disk() => {
                record::remove_durable(&self.beside.ballast())?;
                record::write_durable(&path, mark)
            }
            other => other,
        }
    }

    /// Lays the ballast in, if there is none.
    pub fn keep_ballast(&self) -> Result<(), Error> {
        let path = self.beside.ballast();
        if path.exists() {
            return Ok(());
        }
        record::write_durable(&path, &"ballast ".repeat(BALLAST_BYTES / 8))
    }

    /// Removes the yield mark.
    pub fn clear_yield(&self) -> Result<(), Error> {
        record::remove_durable(&self.beside.yield_mark())
    }

    /// The last member of this node that has passed a barrier. A damaged record is none: then more is kept.
    pub fn passed(&self) -> Option<MemberId> {
        record::read(&self.beside.passed_record()).ok().flatten()
    }

    /// Writes down, durably, that a member has passed a barrier; nothing if that stands already.
    pub fn set_passed(&self, member: MemberId) -> Result<(), Error> {
        if self.passed() == Some(member) {
            return Ok(());
        }
        record::write_durable(&self.beside.passed_record(), &member)
    }

    /// The record of eligibility. A damaged one is none: it can be earned again.
    pub fn eligibility(&self) -> Option<Eligibility> {
        record::read(&self.volatile("eligible.json")).ok().flatten()
    }

    /// Writes the record of eligibility, where a reboot loses it.
    pub fn set_eligibility(&self, record: &Eligibility) -> Result<(), Error> {
        record::write_volatile(&self.volatile("eligible.json"), record)
    }

    /// Drops the record of eligibility.
    pub fn drop_eligibility(&self) -> Result<(), Error> {
        record::remove_durable(&self.volatile("eligible.json"))
    }

    /// Whether this run of etcd has ever answered.
    pub fn has_answered(&self, run: &RunId) -> bool {
        let answered: Option<RunId> = record::read(&self.volatile(ANSWERED)).ok().flatten();
        answered.as_ref() == Some(run)
    }

    /// Remembers that this run of etcd has answered.
    pub fn set_answered(&self, run: &RunId) {
        if !self.only_looks && !self.has_answered(run) {
            // Not to be able to write it down makes it look younger: the safe side.
            let _ = record::write_volatile(&self.volatile(ANSWERED), run);
        }
    }

    /// What was published last in this boot.
    pub fn published(&self) -> Option<Statement> {
        let statement: Statement = record::read(&self.volatile("published.json")).ok().flatten()?;
        (statement.boot == self.boot).then_some(statement)
    }

    /// Remembers what was published.
    pub fn set_published(&self, statement: &Statement) -> Result<(), Error> {
        record::write_volatile(&self.volatile("published.json"), statement)
    }

    /// Forgets what was published: it has to be said again.
    pub fn forget_published(&self) {
        if self.only_looks {
            return;
        }
        // One that stays is said once less often than it should be; the next look tries again.
        let _ = record::remove_durable(&self.volatile("published.json"));
    }

    /// The promotion score that was set last in this boot, so that it is not written again.
    pub fn promotion_score(&self) -> Option<u32> {
        record::read(&self.volatile("promotion-score.json")).ok().flatten()
    }

    /// Remembers the promotion score; `None` once it is withdrawn.
    pub fn set_promotion_score(&self, score: Option<u32>) -> Result<(), Error> {
        if self.only_looks {
            return Ok(());
        }
        let path = self.volatile("promotion-score.json");
        match score {
            Some(score) => record::write_volatile(&path, &score),
            None => record::remove_durable(&path),
        }
    }

    /// The newest log position that was seen of the peer.
    pub fn peer(&self) -> Option<PeerMemory> {
        record::read(&self.beside.peer_memory()).ok().flatten()
    }

    /// Remembers the peer's log position, if it is newer or of another member.
    pub fn remember_peer(&self, seen: PeerMemory) -> Result<(), Error> {
        match self.peer() {
            Some(old) if old.member == seen.member && old.last >= seen.last => Ok(()),
            _ => record::write_durable(&self.beside.peer_memory(), &seen),
        }
    }

    /// The own log position at the last orderly stop.
    pub fn stopped_at(&self) -> Option<LogPosition> {
        record::read(&self.beside.stop_record()).ok().flatten()
    }

    /// Writes down the own log position at an orderly stop.
    pub fn set_stopped_at(&self, last: LogPosition) -> Result<(), Error> {
        record::write_durable(&self.beside.stop_record(), &last)
    }

    /// What the peer's BMC said last.
    pub fn power(&self) -> Option<PowerReading> {
        record::read(&self.volatile("peer-power.json")).ok().flatten()
    }

    /// Remembers what the peer's BMC said.
    pub fn set_power(&self, reading: &PowerReading) -> Result<(), Error> {
        record::write_volatile(&self.volatile("peer-power.json"), reading)
    }

    /// A person's word.
    pub fn confirmation(&self) -> Option<Confirmation> {
        record::read(&self.volatile("confirmation.json")).ok().flatten()
    }

    /// Remembers a person's word.
    pub fn set_confirmation(&self, word: &Confirmation) -> Result<(), Error> {
        record::write_volatile(&self.volatile("confirmation.json"), word)
    }

    /// Whether these are the records of somebody who only looks.
    pub fn only_looks(&self) -> bool {
        self.only_looks
    }

    /// For how long something has lasted, in milliseconds, on this boot's clock. `lasts` says whether it
    /// does now; the first time starts the count, the end of it clears it, another value `of` it starts anew.
    pub fn duration(&self, what: &str, of: u64, lasts: bool, uptime_ms: u64) -> u64 {
        let path = self.volatile(&format!("since-{what}.json"));
        let since: Option<Since> = record::read(&path).ok().flatten();
        let since = since.filter(|since| since.boot == self.boot && since.uptime_ms <= uptime_ms);
        match (lasts, since) {
            (true, Some(since)) if since.of == of => uptime_ms - since.uptime_ms,
            _ if self.only_looks => 0,
            (true, _) => {
                // Not to be able to write it down makes the time look shorter: the safe side.
                let start = Since { boot: self.boot.clone(), uptime_ms, of };
                let _ = record::write_volatile(&path, &start);
                0
            }
            (false, Some(_)) => {
                let _ = record::remove_durable(&path);
                0
            }
            (false, None) => 0,
        }
    }
}
