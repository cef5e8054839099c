//! The account of memory: every page is charged to its table and its kind while it lives.
//!
//! A [`Charge`] belongs to the page that it was made for and ends with it, so that what waits in the epoch queue is
//! still counted. Pages are kilobytes, so the two counters that a charge moves, of the table and of all tables
//! together, are touched seldom.
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What memory is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    /// insert pages
    Insert,
    /// base pages, and the Indirection words
    Base,
    /// tail pages
    Tail,
    /// history pages
    History,
}

/// Bytes by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// insert pages
    pub insert_bytes: u64,
    /// base pages, and the Indirection words
    pub base_bytes: u64,
    /// tail pages
    pub tail_bytes: u64,
    /// history pages
    pub history_bytes: u64,
}

impl MemoryUse {
    /// All kinds together.
    pub fn total_bytes(&self) -> u64 {
        self.insert_bytes + self.base_bytes + self.tail_bytes + self.history_bytes
    }
}

/// The bytes that all tables of a database use together, and how many they may.
#[derive(Debug)]
pub struct MemoryBudget {
    used: AtomicI64,
    limit: AtomicU64,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        MemoryBudget { used: AtomicI64::new(0), limit: AtomicU64::new(u64::MAX) }
    }
}

impl MemoryBudget {
    /// The bytes in use.
    #[inline]
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed).max(0) as u64
    }

    /// The bytes that may be in use.
    #[inline]
    pub fn limit_bytes(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit.
    pub fn set_limit_bytes(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Whether no more is in use than may be.
    #[inline]
    pub fn is_within_limit(&self) -> bool {
        self.used_bytes() <= self.limit_bytes()
    }

    /// Counts bytes that are used for something other than pages, such as an index; negative to give them back.
    pub fn add(&self, bytes: i64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The account of one table.
#[derive(Debug, Default)]
pub struct Meter {
    budget: Arc<MemoryBudget>,
    kinds: [AtomicI64; 4],
}

impl Meter {
    /// An account that draws on `budget`.
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Meter> {
        Arc::new(Meter { budget, kinds: Default::default() })
    }

    /// What the table uses now.
    pub fn used(&self) -> MemoryUse {
        let used = |kind: MemoryKind| self.kinds[kind as usize].load(Ordering::Relaxed).max(0) as u64;
        MemoryUse {
            insert_bytes: used(MemoryKind::Insert),
            base_bytes: used(MemoryKind::Base),
            tail_bytes: used(MemoryKind::Tail),
            history_bytes: used(MemoryKind::History),
        }
    }

    fn add(&self, kind: MemoryKind, bytes: i64) {
        self.kinds[kind as usize].fetch_add(bytes, Ordering::Relaxed);
        self.budget.add(bytes);
    }
}

/// Bytes charged to a table for as long as this lives.
#[derive(Debug)]
pub struct Charge {
    meter: Arc<Meter>,
    kind: MemoryKind,
    bytes: AtomicU64,
}

impl Charge {
    /// Charges `bytes`.
    pub fn new(meter: &Arc<Meter>, kind: MemoryKind, bytes: usize) -> Charge {
        meter.add(kind, bytes as i64);
        Charge { meter: meter.clone(), kind, bytes: AtomicU64::new(bytes as u64) }
    }

    /// Charges more.
    pub fn grow(&self, bytes: usize) {
        self.meter.add(self.kind, bytes as i64);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.add(self.kind, -(*self.bytes.get_mut() as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_charged_is_given_back() {
        let budget = Arc::new(MemoryBudget::default());
        budget.set_limit_bytes(1_000);
        let meter = Meter::new(budget.clone());
        let base = Charge::new(&meter, MemoryKind::Base, 600);
        let tail = Charge::new(&meter, MemoryKind::Tail, 300);
        tail.grow(50);
        assert_eq!((meter.used().base_bytes, meter.used().tail_bytes, budget.used_bytes()), (600, 350, 950));
        assert!(budget.is_within_limit());
        budget.set_limit_bytes(949);
        assert!(!budget.is_within_limit());
        drop(base);
        assert_eq!((meter.used().total_bytes(), budget.used_bytes()), (350, 350));
        drop(tail);
        assert_eq!((meter.used(), budget.used_bytes()), (MemoryUse::default(), 0));
    }
}
