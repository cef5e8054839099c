//! What scans keep of a range's columns brought forward, for `scan::forward`.
use std::sync::Arc;

use sync::atomic::AtomicU64;
use sync::blocking::Mutex;
use types::Timestamp;

use crate::encoding::EncodedColumn;
use crate::memory::budget::Charge;
use crate::page::base::Lineage;

/// A column is followed until so many scans in succession ask for others.
const UNUSED_MAX: u32 = 64;

/// The columns of a range as of some tail records of each update range.
pub(crate) struct Forward {
    /// of each update range, the last tail record that they have
    pub(crate) through: Box<[u64]>,
    /// the newest commit that they may have
    pub(crate) newest: Timestamp,
    pub(crate) columns: Box<[Followed]>,
}

/// What there is of one column.
#[derive(Clone, Default)]
pub(crate) struct Followed {
    /// the lineage of its page when a scan last saw it, while there is no copy; `None` if none has asked for it
    pub(crate) since: Option<Lineage>,
    /// its values, where tail records that were passed have some
    pub(crate) copy: Option<Arc<ForwardColumn>>,
    /// how many scans in succession did not ask for it
    unused: u32,
}

impl From<Lineage> for Followed {
    /// Beginning with the page of this lineage.
    fn from(since: Lineage) -> Followed {
        Followed { since: Some(since), ..Followed::default() }
    }
}

impl Followed {
    /// Goes on from a page of this lineage, if there is no copy and it is a later one.
    pub(crate) fn see(&mut self, lineage: &Lineage) {
        if self.copy.is_none() && self.goes_on_from(lineage) {
            self.since = Some(lineage.clone());
        }
    }

    /// Whether neither the copy nor the page had this tail record from the start.
    pub(crate) fn is_without(&self, part: usize, sequence: u64) -> bool {
        let lineage = self.copy.as_ref().map(|copy| &copy.lineage).or(self.since.as_ref());
        lineage.is_none_or(|lineage| lineage[part] < sequence)
    }

    /// Whether a page of this lineage will do: there is a copy, or it is the page that was seen, or a later one.
    pub(crate) fn goes_on_from(&self, lineage: &[u64]) -> bool {
        let is_as_new = |since: &Lineage| lineage.iter().zip(since.iter()).all(|(lineage, since)| lineage >= since);
        self.copy.is_some() || self.since.as_ref().is_some_and(is_as_new)
    }
}

/// A copy of a column, with newer values in their places.
pub(crate) struct ForwardColumn {
    pub(crate) values: EncodedColumn,
    /// of the page that was copied: what it had taken in is not put in its place again, so that nothing becomes older
    pub(crate) lineage: Lineage,
    pub(crate) _charge: Charge,
}

/// Those of a range, as far as scans have brought some forward.
#[derive(Default)]
pub(crate) struct ForwardColumns {
    pub(crate) kept: Mutex<Option<Forward>>,
    /// How far merges had come when a scan last met many pending records and had nothing kept: one more than the sum of the floors.
    pub(crate) met: AtomicU64,
}

impl Forward {
    /// Of columns that are as far as their pages.
    pub(crate) fn at(floor: &[u64], newest: Timestamp, columns: usize) -> Forward {
        Forward { through: floor.into(), newest, columns: vec![Followed::default(); columns].into() }
    }

    /// Follows columns no more that scans have not asked for in a while; these are asked for now.
    pub(crate) fn leave_unused(&mut self, asked: &[usize]) {
        for (column, followed) in self.columns.iter_mut().enumerate().filter(|(_, followed)| followed.since.is_some()) {
            followed.unused = if asked.contains(&column) { 0 } else { followed.unused + 1 };
            if followed.unused > UNUSED_MAX {
                *followed = Followed::default();
            }
        }
    }

    /// Whether merges have passed it.
    pub(crate) fn is_passed(&self, floor: &[u64]) -> bool {
        self.through.iter().zip(floor).any(|(through, floor)| through < floor)
    }

    /// Whether merges have come as far.
    pub(crate) fn is_reached(&self, floor: &[u64]) -> bool {
        self.through.iter().zip(floor).all(|(through, floor)| through <= floor)
    }
}

impl ForwardColumns {
    /// Lets go what merges have reached.
    pub(crate) fn merged(&self, floor: &[u64]) {
        let Ok(mut kept) = self.kept.lock() else { return };
        if kept.as_ref().is_some_and(|forward| forward.is_passed(floor) || forward.is_reached(floor)) {
            *kept = None;
        }
    }
}
