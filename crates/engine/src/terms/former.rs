//! The former meanings of names: for snapshots in use, and for as long as tables keep their past.
//!
//! ```text
//! t    [1: from 3 to 9) [2: from 9 to 12) ........ [4: from 20 on, the newest: `catalog.rs`]
//! u                     [1: from 9 to 15)          1 was renamed by commit 9, and dropped by 15
//! ```
//!
//! A meaning ends when its table is dropped, emptied (an empty one takes its place) or renamed. It is kept while a
//! snapshot in use sees it, and as long as the retention of its table reaches back to its end, as a deleted row is.
//! So a table that is gone can be read as of a commit before. Storage that no name leads to goes with its last
//! meaning. Setting the retention of a table also sets that of the tables that are gone and had its name: so there
//! is always a way to give up their past.
//!
//! Meanings that were given up are not forgotten: of a name it is known up to which commit it had meanings that are
//! not kept, so that a question about them is refused, and not answered as if there never was anything. Names are
//! noted one by one up to [`NAMES_MAX`]; of more the older ones are put together, and then every name may have
//! meant anything before the newest of these commits.
use std::collections::{BTreeMap, BTreeSet};

use types::Timestamp;

/// Of so many names it is known up to when their past was given up.
const NAMES_MAX: usize = 4096;

/// The meaning of a name: a table, told from all others by a number.
pub(crate) trait NumberedTable: Clone {
    fn number(&self) -> u32;
}

/// The meaning of a name from one commit to another.
#[derive(Clone)]
pub(crate) struct NameMeaning<T> {
    pub(crate) table: T,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

/// See the module.
pub(crate) struct Former<T> {
    /// ascending
    by_name: BTreeMap<String, Vec<NameMeaning<T>>>,
    given_up: GivenUp,
}

/// Up to when the past of names is not kept.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct GivenUp {
    pub(crate) names: BTreeMap<String, Timestamp>,
    /// of every name
    pub(crate) before: Timestamp,
}

impl GivenUp {
    /// Notes that what a name meant before a commit is not kept.
    pub(crate) fn note(&mut self, name: &str, to: Timestamp) {
        match self.names.get_mut(name) {
            Some(known) => *known = to.max(*known),
            None => drop(self.names.insert(name.into(), to)),
        }
        if self.names.len() > NAMES_MAX {
            let mut times: Vec<Timestamp> = self.names.values().copied().collect();
            times.sort_unstable();
            self.before = self.before.max(times[NAMES_MAX / 2]);
            self.names.retain(|_, to| *to > self.before);
        }
        debug_assert!(self.names.len() <= NAMES_MAX, "{} names are noted", self.names.len());
        debug_assert!(self.known_from(name) >= to, "invariant 3: the past of \"{name}\" would seem to be known");
    }

    /// The commit from which on it is known what a name meant.
    fn known_from(&self, name: &str) -> Timestamp {
        self.names.get(name).map_or(self.before, |to| self.before.max(*to))
    }
}

impl<T: NumberedTable> Former<T> {
    pub(crate) fn new(meanings: impl IntoIterator<Item = (String, NameMeaning<T>)>, given_up: GivenUp) -> Former<T> {
        let mut former = Former { by_name: BTreeMap::new(), given_up };
        meanings.into_iter().for_each(|(name, meaning)| former.add(&name, meaning));
        former
    }

    /// Adds a meaning. A meaning that one commit made and ended was never visible.
    pub(crate) fn add(&mut self, name: &str, meaning: NameMeaning<T>) {
        if meaning.from < meaning.to {
            let meanings = match self.by_name.get_mut(name) {
                Some(meanings) => meanings,
                None => self.by_name.entry(name.into()).or_default(),
            };
            let at = meanings.partition_point(|known| known.from < meaning.from);
            meanings.insert(at, meaning);
            debug_assert!(
                meanings.windows(2).all(|pair| pair[0].to <= pair[1].from),
                "invariant 4: \"{name}\" had two meanings at one moment"
            );
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The meaning of a name at a commit.
    pub(crate) fn at(&self, name: &str, at: Timestamp) -> Option<&NameMeaning<T>> {
        self.before(name, Timestamp(at.0.saturating_add(1))).filter(|meaning| at < meaning.to)
    }

    /// The last of what a name meant before a commit.
    pub(crate) fn before(&self, name: &str, at: Timestamp) -> Option<&NameMeaning<T>> {
        let meanings = self.by_name.get(name)?;
        debug_assert!(meanings.is_sorted_by_key(|meaning| meaning.from), "the meanings of \"{name}\" are out of order");
        meanings[..meanings.partition_point(|meaning| meaning.from < at)].last()
    }

    /// The name under which a table was known until a commit, and since when.
    pub(crate) fn ended_at(&self, table: u32, to: Timestamp) -> Option<(&str, &NameMeaning<T>)> {
        self.all().find(|(_, meaning)| meaning.table.number() == table && meaning.to == to)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &NameMeaning<T>)> {
        self.by_name.iter().flat_map(|(name, meanings)| meanings.iter().map(move |meaning| (name.as_str(), meaning)))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.by_name.keys()
    }

    /// All that a name meant, oldest first.
    pub(crate) fn of_name(&self, name: &str) -> &[NameMeaning<T>] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The meanings that are not kept, as far as they are known.
    pub(crate) fn given_up(&self) -> &GivenUp {
        &self.given_up
    }

    /// The commit from which on it is known what a name meant.
    pub(crate) fn known_from(&self, name: &str) -> Timestamp {
        self.given_up.known_from(name)
    }

    /// Takes out the meanings that ended at or before `oldest`, the oldest snapshot in use, and that the past of their table
    /// does not reach back to, which begins at `kept_from`.
    pub(crate) fn give_up(
        &mut self,
        oldest: Timestamp,
        kept_from: impl Fn(&T) -> Timestamp,
    ) -> Vec<(String, NameMeaning<T>)> {
        let mut gone = Vec::new();
        self.by_name.retain(|name, meanings| {
            let may_go = |meaning: &mut NameMeaning<T>| meaning.to <= oldest && meaning.to <= kept_from(&meaning.table);
            gone.extend(meanings.extract_if(.., may_go).map(|meaning| (name.clone(), meaning)));
            !meanings.is_empty()
        });
        debug_assert!(
            gone.iter().all(|(_, meaning)| meaning.to <= oldest),
            "invariant 3: a snapshot from {oldest:?} on sees what is given up"
        );
        gone.iter().for_each(|(name, meaning)| self.given_up.note(name, meaning.to));
        gone
    }

    /// The tables that have a meaning here, each once.
    pub(crate) fn tables(&self) -> Vec<T> {
        let mut known = BTreeSet::new();
        let tables = self.all().map(|(_, meaning)| &meaning.table);
        tables.filter(|table| known.insert(table.number())).cloned().collect()
    }
}
