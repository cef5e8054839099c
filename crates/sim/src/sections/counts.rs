//! How the sections of a thread ran.

use std::cell::Cell;

/// Attempts that are told apart; sections with more count as the last.
pub const ATTEMPTS_MAX: usize = 20;

/// Counts of one thread, or of several.
#[derive(Debug, Clone)]
pub struct SectionCounts {
    sections: Cell<u64>,
    fall_backs: Cell<u64>,
    by_attempts: [Cell<u64>; ATTEMPTS_MAX],
}

impl Default for SectionCounts {
    fn default() -> Self {
        SectionCounts {
            sections: Cell::new(0),
            fall_backs: Cell::new(0),
            by_attempts: std::array::from_fn(|_| Cell::new(0)),
        }
    }
}

fn count(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get() + more);
}

impl SectionCounts {
    pub(super) fn note_section(&self) {
        count(&self.sections, 1);
    }

    pub(super) fn note_commit(&self, attempts: u32) {
        count(&self.by_attempts[(attempts as usize).clamp(1, ATTEMPTS_MAX) - 1], 1);
    }

    pub(super) fn note_fall_back(&self) {
        count(&self.fall_backs, 1);
    }

    /// Adds those of another thread.
    pub fn add(&self, other: &SectionCounts) {
        count(&self.sections, other.sections());
        count(&self.fall_backs, other.fall_backs());
        self.by_attempts.iter().zip(&other.by_attempts).for_each(|(sum, part)| count(sum, part.get()));
    }

    /// Sections that began.
    pub fn sections(&self) -> u64 {
        self.sections.get()
    }

    /// Sections that took the latch because their transactions had aborted.
    pub fn fall_backs(&self) -> u64 {
        self.fall_backs.get()
    }

    /// Sections that committed at attempt 1, 2, ...; attempts that found the latch held are not counted.
    pub fn by_attempts(&self) -> Vec<u64> {
        self.by_attempts.iter().map(Cell::get).collect()
    }
}
