//! Checks what a transaction must see of its own: its appends at the end of what it reads, and the rest unchanged.

use std::collections::HashSet;

use super::explain::shown;
use super::report::Findings;
use super::{History, Kind, Operation};

/// A transaction's knowledge of a key.
struct Known<'h> {
    key: u64,
    own: Vec<u64>,
    /// The elements that it read beside its own.
    others: Option<&'h [u64]>,
    others_of_set: Option<HashSet<u64>>,
}

/// Looks at a transaction by itself.
pub(super) fn judge(history: &History, number: u32, findings: &mut Findings) {
    let mut known: Vec<Known> = Vec::new();
    for operation in &history.transactions[number as usize].operations {
        let key = operation.key();
        let place = known.iter().position(|each| each.key == key).unwrap_or_else(|| {
            known.push(Known { key, own: Vec::new(), others: None, others_of_set: None });
            known.len() - 1
        });
        let known = &mut known[place];
        match operation {
            Operation::Append { element, .. } => known.own.push(*element),
            Operation::Read { list, .. } => known.read(number, list, findings),
            Operation::ReadSet { elements, .. } => known.read_set(number, elements, findings),
        }
    }
}

impl<'h> Known<'h> {
    fn read(&mut self, number: u32, list: &'h [u64], findings: &mut Findings) {
        let Known { key, own, .. } = self;
        if !list.ends_with(own) {
            findings.add(Kind::Internal, &[number], || {
                format!("T{number} read list {key} as {} after it had appended {}", shown(list), shown(own))
            });
            return;
        }
        let others = &list[..list.len() - own.len()];
        let before = self.others.replace(others).unwrap_or(others);
        if before != others {
            let is_backward = before.starts_with(others);
            self.tell_of_change(number, is_backward, (before, others), findings);
        }
    }

    fn read_set(&mut self, number: u32, elements: &[u64], findings: &mut Findings) {
        let Known { key, own, .. } = self;
        let mut others: HashSet<u64> = elements.iter().copied().collect();
        if !own.iter().all(|element| others.remove(element)) {
            findings.add(Kind::Internal, &[number], || {
                format!("T{number} read set {key} as {} after it had appended {}", shown(elements), shown(own))
            });
            return;
        }
        if let Some(before) = self.others_of_set.replace(others.clone())
            && before != others
        {
            let (mut before, mut others): (Vec<_>, Vec<_>) =
                (before.into_iter().collect(), others.into_iter().collect());
            before.sort_unstable();
            others.sort_unstable();
            let is_backward = others.iter().all(|element| before.binary_search(element).is_ok());
            self.tell_of_change(number, is_backward, (&before, &others), findings);
        }
    }

    fn tell_of_change(&self, number: u32, is_backward: bool, change: (&[u64], &[u64]), findings: &mut Findings) {
        let kind = if is_backward { Kind::BackwardRead } else { Kind::UnrepeatableRead };
        findings.add(kind, &[number], || {
            let (before, after) = (shown(change.0), shown(change.1));
            format!("T{number} read list {} twice, beside its own appends as {before} and then as {after}", self.key)
        });
    }
}
