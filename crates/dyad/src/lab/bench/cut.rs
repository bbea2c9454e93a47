//! The links between the nodes are cut, both ways or one way, while clients reach both.

use std::time::Duration;

use anyhow::Context as _;
use dyad_judge::clock::now_ns;
use dyad_lab::config::Link;
use dyad_lab::progress::{Progress as _, ToStderr};
use dyad_lab::protocol::Request;

use super::pair::{Pair, accepted_since, wait};
use super::results::{CUT_LOST, CUT_TO_WRITE, ONE_WAY_LOST, ONE_WAY_TO_WRITE, Samples, What};
use crate::lab::run::failure;

impl Pair<'_> {
    /// Both ways, and what the leader sends; each node leads once. The first node is the one that survives a split.
    pub(super) fn cuts(
        &mut self,
        samples: &mut Samples,
        progress: &ToStderr,
    ) -> anyhow::Result<()> {
        for leader in [0, 1] {
            progress.step("the links are cut both ways");
            self.cut(None, leader, (CUT_TO_WRITE, CUT_LOST), samples)?;
            progress.step("the links are cut one way");
            self.cut(Some(leader), leader, (ONE_WAY_TO_WRITE, ONE_WAY_LOST), samples)?;
        }
        Ok(())
    }

    /// Cuts the links until one node goes on alone: the best case for who does not like a peer that is back at once.
    fn cut(
        &mut self,
        from: Option<usize>,
        leader: usize,
        (to_write, lost): (What, What),
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        self.wait_whole()?;
        self.lead(leader)?;
        let (clients, path) = self.clients()?;
        let fault_ns = now_ns();
        let from = from.map(|position| self.name(position).to_owned());
        let request = Request::Cut { links: Link::ALL.to_vec(), from };
        self.lab.request(&request).map_err(failure)?;
        // With two voters nothing that is sent now is accepted before one of them goes on alone.
        let cut_ns = now_ns();
        let mut survivor = None;
        let accepted = || {
            survivor = accepted_since(&path, cut_ns);
            survivor.is_none().then(|| "neither node takes a write".to_owned())
        };
        let waited = wait("a node to go on alone", accepted);
        self.lab.heal().map_err(failure)?;
        waited?;
        self.wait_whole()?;
        let seen = self.judge(clients, cut_ns)?;
        let survivor = survivor.context("no survivor")?;
        let first = seen.report.first_write_after.get(&survivor).map(|write| write.after_ms);
        let cutting = Duration::from_nanos(cut_ns - fault_ns).as_secs_f64() * 1e3;
        samples.add(to_write, first.map(|first| first + cutting));
        samples.add(lost, Some(seen.lost));
        Ok(())
    }
}
