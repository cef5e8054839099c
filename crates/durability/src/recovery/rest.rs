//! Where reading begins in a log that was closed, if the caller has the older commits from elsewhere: of a checkpoint.
//!
//! ```text
//!                               held = 95, closed at 142
//!   partition 0   | segment 7: .. 61 | segment 8: .. 93 | segment 9: .. 140 M
//!   partition 1   | segment 4: .. 88 | segment 5: .. 142 M
//!                                      ^ read from here: no commit before has an LSN above 95, as the headers say
//! ```
//!
//! So opening takes no longer for what the log keeps for the sake of the checkpoint before. The headers do not tell everything: a
//! commit may have data frames in a segment that was passed over, and an opening frame there may know of a hole. So what is left to read
//! is read once beforehand, without handing anything over. It is believed if the log was closed, no byte of it is amiss, and each LSN
//! after the held ones, up to the one at which the log was closed, stands there once with all its data. Otherwise the log is read from
//! its beginning, which knows what to make of it.
//!
//! What is passed over is needed by nothing but the checkpoint before. Damage to it is found when that is needed, and by a reading
//! that begins at the beginning.
use std::collections::BTreeSet;

use crate::Lsn;
use crate::error::{LogError, Result};
use crate::recovery::chain::{Chain, Stop};
use crate::recovery::recover::Found;

/// Passes over the segments without commits above `held`. Returns whether there are any.
pub(super) fn pass_over(chains: &mut [Chain], held: Lsn, closed_at: Lsn) -> bool {
    let passed = chains.iter_mut().map(|chain| chain.pass_over(held, closed_at));
    passed.fold(false, |any, has_passed| any | has_passed)
}

/// Whether reading may pass over the segments without commits above `held`. The chains are of no use afterwards.
pub(super) fn is_enough(found: Found, held: Lsn) -> Result<bool> {
    let Found { mut chains, stock, damage } = found;
    let closed_at = stock.trim.proven;
    let is_closed = damage.is_none() && !stock.trim.is_uneven && closed_at > 0 && stock.trim.below <= held + 1;
    if !is_closed || !pass_over(&mut chains, held, closed_at) {
        return Ok(false);
    }
    let mut left: BTreeSet<Lsn> = BTreeSet::new();
    for chain in &mut chains {
        match read_to_end(chain, held, &mut left) {
            Ok(true) => {}
            Ok(false) | Err(LogError::Corrupt { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    debug_assert!(
        left.first().is_none_or(|first| *first > held),
        "invariant 8: a commit that is held is counted as left"
    );
    // None is missing if there are as many as numbers.
    let is_whole =
        left.last().is_none_or(|last| *last <= closed_at) && left.len() as u64 == closed_at.saturating_sub(held);
    Ok(is_whole && chains.iter().all(|chain| chain.lsn_max <= closed_at))
}

/// Collects the LSNs above `held`. Returns false where one comes twice, there is a hole after it, or the end was not intended.
fn read_to_end(chain: &mut Chain, held: Lsn, left: &mut BTreeSet<Lsn>) -> Result<bool> {
    loop {
        match chain.advance(held + 1)? {
            Stop::Numbered(numbered) if numbered.lsn > held && !left.insert(numbered.lsn) => return Ok(false),
            Stop::Hole(hole) if !hole.is_empty() && hole.to > held + 1 => return Ok(false),
            Stop::Numbered(_) | Stop::Hole(_) => {}
            Stop::End => return Ok(chain.is_settled && chain.torn_bytes() == 0),
        }
    }
}
