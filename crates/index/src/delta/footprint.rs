//! Which cache lines a lookup touches (tsx-index, section 5.1.1): what a hardware transaction has to keep track of.
//!
//! The descent tells each of its reads to a [`Visitor`]. That of ordinary lookups ignores them and costs nothing; the one
//! here keeps the line of each address, so that the count is exact for the structure as it lies in memory: lines that
//! two reads share count once, as they would in a read set. Not counted are the latch, the stack and the value sought.
use std::collections::HashSet;
use std::convert::Infallible;

use sync::latch::{Reading, Restart};

use super::lines::LINE_BYTES;

/// The contents of a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// Nodes of the tree, and its root pointer.
    Node,
    /// Entries of dictionaries, and the tables by which they are found.
    Dictionary,
    /// Values too long for their entry.
    Value,
}

/// Accompanies a search down the tree.
pub trait Visitor {
    /// Why a search may have to begin again.
    type Error;

    /// Called before a part of the index is read.
    fn touch<T: ?Sized>(&mut self, kind: LineKind, what: &T);

    /// Whether all that was read so far belongs together; to be asked before it is followed. A visitor that never says
    /// no is for a thread that holds the latch.
    fn check(&self) -> Result<(), Self::Error>;
}

/// A reader under a latch that may be optimistic.
pub(super) struct Reader<'a>(pub(super) &'a Reading<'a>);

impl Visitor for Reader<'_> {
    type Error = Restart;

    #[inline]
    fn touch<T: ?Sized>(&mut self, _: LineKind, _: &T) {}

    #[inline]
    fn check(&self) -> Result<(), Restart> {
        self.0.check()
    }
}

/// A holder of the latch.
pub(super) struct Holder;

impl Visitor for Holder {
    type Error = Infallible;

    #[inline]
    fn touch<T: ?Sized>(&mut self, _: LineKind, _: &T) {}

    #[inline]
    fn check(&self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// A holder of the latch that counts the cache lines it touches.
#[derive(Default)]
pub(super) struct Counting {
    lines: HashSet<(LineKind, usize)>,
}

impl Visitor for Counting {
    type Error = Infallible;

    fn touch<T: ?Sized>(&mut self, kind: LineKind, what: &T) {
        let start = std::ptr::from_ref(what).addr();
        let last = start + size_of_val(what).max(1) - 1;
        self.lines.extend((start / LINE_BYTES..=last / LINE_BYTES).map(|line| (kind, line)));
    }

    fn check(&self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Counting {
    pub(super) fn footprint(&self) -> Footprint {
        let count = |kind| self.lines.iter().filter(|line| line.0 == kind).count();
        Footprint {
            node_lines: count(LineKind::Node),
            dictionary_lines: count(LineKind::Dictionary),
            value_lines: count(LineKind::Value),
        }
    }
}

/// The different cache lines that one lookup has touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Lines of nodes, and the one of the root pointer.
    pub node_lines: usize,
    /// Lines of dictionaries: entries, and the tables by which they are found.
    pub dictionary_lines: usize,
    /// Lines of values that are too long for their entry.
    pub value_lines: usize,
}

impl Footprint {
    /// All lines.
    pub fn lines(&self) -> usize {
        self.node_lines + self.dictionary_lines + self.value_lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_once_for_each_kind_and_a_span_for_all_its_lines() {
        #[repr(align(64))]
        struct Lines([u8; 256]);
        let lines = Lines([0; 256]);
        let mut counting = Counting::default();
        counting.touch(LineKind::Node, &lines.0[0]);
        counting.touch(LineKind::Node, &lines.0[63]);
        counting.touch(LineKind::Dictionary, &lines.0[60..70]);
        counting.touch(LineKind::Value, &lines.0[64..192]);
        let expected = Footprint { node_lines: 1, dictionary_lines: 2, value_lines: 2 };
        assert_eq!((counting.footprint(), expected.lines()), (expected, 5));
    }
}
