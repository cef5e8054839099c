//! The order of the versions of each list, and what reads say of it.
//!
//! Lists only grow at their end, so the longest list that was read tells the order in which its elements came, and
//! every other read is a prefix of it: the version that it saw is its length. Committed appends that the longest read
//! does not have came later, in an order unknown.
//!
//! ```text
//!   order      e1 | e2 | e3 | e4          not seen   e5  e6
//!   read of T1 [e1   e2]                  place 2: behind the writer of e2, before the writer of e3
//!   read of T2 [e1   e2   e3   e4]        place 4: behind the writer of e4, before the writers of e5 and e6
//! ```
//!
//! (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020, section 4.)
//! Elements that cannot be there, as those of aborted transactions, are reported and then left out, so that one fault
//! is not told as two.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::explain::shown;
use super::report::Findings;
use super::{History, Kind, Operation, Outcome};

/// An append: its writer and its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Append {
    pub(super) writer: u32,
    pub(super) element: u64,
}

/// A read of a list.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) reader: u32,
    /// How many elements of the order it saw; none if it saw another order.
    pub(super) place: Option<usize>,
    /// How many of the elements at the end are the reader's own.
    pub(super) own: usize,
    /// The last element that is not the reader's own.
    pub(super) last: Option<Append>,
}

/// All that is known of a list.
#[derive(Debug)]
pub(super) struct List {
    pub(super) key: u64,
    pub(super) order: Vec<Append>,
    /// Committed appends that no read has, those of the earliest end first.
    pub(super) unseen: Vec<Append>,
    pub(super) reads: Vec<Read>,
}

/// All that is known of a set: its committed appends, and which reads saw which of them.
#[derive(Debug, Default)]
pub(super) struct Set {
    pub(super) key: u64,
    pub(super) appends: Vec<Append>,
    pub(super) reads: Vec<(u32, HashSet<u64>)>,
}

/// The operations on a key.
#[derive(Default)]
struct Log<'h> {
    key: u64,
    is_set: bool,
    appends: Vec<Append>,
    reads: Vec<(u32, &'h [u64])>,
}

/// The writer of each element, and which transactions count as committed.
pub(super) struct Writers<'h> {
    history: &'h History,
    by_element: HashMap<(u64, u64), u32>,
    counts: Vec<bool>,
}

impl<'h> Writers<'h> {
    /// # Panics
    /// If an element was appended twice to a key: then reads tell nothing.
    pub(super) fn of(history: &'h History) -> Writers<'h> {
        let mut by_element = HashMap::new();
        for (number, transaction) in history.transactions.iter().enumerate() {
            assert!(transaction.start <= transaction.end, "T{number} ends before it starts");
            for operation in &transaction.operations {
                if let Operation::Append { key, element } = operation
                    && let Some(first) = by_element.insert((*key, *element), number as u32)
                {
                    panic!("element {element} was appended to {key} by T{first} and by T{number}; it must be unique");
                }
            }
        }
        let counts = history.transactions.iter().map(|each| each.outcome == Outcome::Committed).collect();
        let mut writers = Writers { history, by_element, counts };
        writers.count_what_was_seen();
        writers
    }

    /// Whether the transaction counts as committed.
    pub(super) fn count(&self, number: u32) -> bool {
        self.counts[number as usize]
    }

    /// The transactions that count as committed.
    pub(super) fn counted(&self) -> impl Iterator<Item = u32> {
        (0..self.counts.len() as u32).filter(|&number| self.count(number))
    }

    /// A transaction of unknown outcome has committed if one that has committed read from it.
    fn count_what_was_seen(&mut self) {
        if self.history.transactions.iter().all(|transaction| transaction.outcome != Outcome::Unknown) {
            return;
        }
        let mut readers: Vec<u32> = self.counted().collect();
        while let Some(reader) = readers.pop() {
            for operation in &self.history.transactions[reader as usize].operations {
                for &element in operation.elements().unwrap_or_default() {
                    let Some(&writer) = self.by_element.get(&(operation.key(), element)) else { continue };
                    let is_unknown = self.history.transactions[writer as usize].outcome == Outcome::Unknown;
                    if is_unknown && !std::mem::replace(&mut self.counts[writer as usize], true) {
                        readers.push(writer);
                    }
                }
            }
        }
    }

    /// The versions of each key, as far as they are known.
    pub(super) fn versions(&self, findings: &mut Findings) -> (Vec<List>, Vec<Set>) {
        let (mut lists, mut sets) = (Vec::new(), Vec::new());
        for log in self.logs() {
            match log.is_set {
                true => sets.push(self.set(log, findings)),
                false => lists.push(self.list(log, findings)),
            }
        }
        (lists, sets)
    }

    fn logs(&self) -> Vec<Log<'h>> {
        let mut logs: Vec<Log> = Vec::new();
        let mut places: HashMap<u64, usize> = HashMap::new();
        for number in self.counted() {
            for operation in &self.history.transactions[number as usize].operations {
                let key = operation.key();
                let place = *places.entry(key).or_insert_with(|| {
                    logs.push(Log { key, ..Log::default() });
                    logs.len() - 1
                });
                match operation {
                    Operation::Append { element, .. } => {
                        logs[place].appends.push(Append { writer: number, element: *element });
                    }
                    Operation::Read { list, .. } => logs[place].reads.push((number, list)),
                    Operation::ReadSet { elements, .. } => {
                        logs[place].is_set = true;
                        logs[place].reads.push((number, elements));
                    }
                }
            }
        }
        logs
    }

    fn set(&self, log: Log, findings: &mut Findings) -> Set {
        let mut reads = Vec::with_capacity(log.reads.len());
        for &(reader, elements) in &log.reads {
            reads.push((reader, self.sound(log.key, reader, elements, findings).iter().copied().collect()));
        }
        Set { key: log.key, appends: log.appends, reads }
    }

    fn list(&self, log: Log, findings: &mut Findings) -> List {
        let longest = log.reads.iter().map(|&(_, list)| list).max_by_key(|list| list.len()).unwrap_or_default();
        let is_clean = self.is_sound(log.key, longest) && log.reads.iter().all(|(_, list)| longest.starts_with(list));
        let reads: Vec<(u32, Cow<[u64]>)> = log
            .reads
            .iter()
            .map(|&(reader, list)| match is_clean {
                true => (reader, Cow::Borrowed(list)),
                false => (reader, Cow::Owned(self.sound(log.key, reader, list, findings))),
            })
            .collect();
        let (teller, longest) = reads
            .iter()
            .max_by_key(|(_, list)| list.len())
            .map_or((0, [].as_slice()), |(reader, list)| (*reader, list.as_ref()));
        let order = longest.iter().map(|&element| self.append(log.key, element)).collect();
        let places = reads
            .iter()
            .map(|(reader, list)| {
                let is_prefix = longest.starts_with(list);
                if !is_prefix {
                    findings.add(Kind::IncompatibleOrder, &[*reader, teller], || {
                        let (one, other) = (shown(list), shown(longest));
                        format!("list {} was {one} for T{reader} and {other} for T{teller}", log.key)
                    });
                }
                self.place(log.key, *reader, list, is_prefix)
            })
            .collect();
        let seen: HashSet<u64> = longest.iter().copied().collect();
        let mut unseen: Vec<Append> = log.appends.into_iter().filter(|each| !seen.contains(&each.element)).collect();
        unseen.sort_by_key(|each| self.history.transactions[each.writer as usize].end);
        List { key: log.key, order, unseen, reads: places }
    }

    fn place(&self, key: u64, reader: u32, list: &[u64], is_prefix: bool) -> Read {
        let is_own = |element: &&u64| self.append(key, **element).writer == reader;
        let own = list.iter().rev().take_while(is_own).count();
        let last = list[..list.len() - own].last().map(|&element| self.append(key, element));
        Read { reader, place: is_prefix.then_some(list.len()), own, last }
    }

    /// A sound element's append.
    fn append(&self, key: u64, element: u64) -> Append {
        Append { writer: self.by_element[&(key, element)], element }
    }

    fn is_sound(&self, key: u64, list: &[u64]) -> bool {
        let mut seen = HashSet::with_capacity(list.len());
        list.iter().all(|&element| {
            let writer = self.by_element.get(&(key, element));
            seen.insert(element) && writer.is_some_and(|&writer| self.count(writer))
        })
    }

    /// The elements of a list that can be there; tells of the others.
    fn sound(&self, key: u64, reader: u32, list: &[u64], findings: &mut Findings) -> Vec<u64> {
        let mut seen = HashSet::with_capacity(list.len());
        let mut sound = Vec::with_capacity(list.len());
        for &element in list {
            if !seen.insert(element) {
                findings.add(Kind::DuplicateElement, &[reader], || format!("{element} is in list {key} twice"));
                continue;
            }
            match self.by_element.get(&(key, element)) {
                Some(&writer) if self.count(writer) => sound.push(element),
                Some(&writer) => findings.add(Kind::AbortedRead, &[writer, reader], || {
                    format!("T{reader} read {element} in list {key}, which T{writer} appended before it aborted")
                }),
                None => findings.add(Kind::UnwrittenElement, &[reader], || {
                    format!("T{reader} read {element} in list {key}, which was never appended")
                }),
            }
        }
        sound
    }
}

/// Tells of reads that ended between two appends of one transaction, and of pairs of transactions that built on the
/// same version.
pub(super) fn judge_reads(history: &History, list: &List, findings: &mut Findings) {
    let key = list.key;
    let mut builders: HashMap<usize, u32> = HashMap::new();
    for read in &list.reads {
        let reader = read.reader;
        if let Some(Append { writer, element }) = read.last
            && let Some(last) = history.transactions[writer as usize].last_append(key)
            && last != element
        {
            findings.add(Kind::IntermediateRead, &[writer, reader], || {
                format!("T{reader} read list {key} with {element} of T{writer} at its end, but without its {last}")
            });
        }
        if let (Some(place), 0) = (read.place, read.own)
            && history.transactions[reader as usize].last_append(key).is_some()
        {
            let other = *builders.entry(place).or_insert(reader);
            if other != reader {
                findings.add(Kind::LostUpdate, &[other, reader], || {
                    format!(
                        "T{other} and T{reader} both read list {key} with {place} elements, and both appended to it"
                    )
                });
            }
        }
    }
}
