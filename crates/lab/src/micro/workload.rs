//! The work of every contestant: the rows of the table, and transactions on them.
//!
//! All of it follows from a seed and costs a few nanoseconds a statement, so that every contestant is given the same
//! and none waits for it:
//!
//! ```text
//! one random number   low half: the key, by multiplication in place of a division
//!                     high half: one of all sets of so many columns, listed beforehand
//! ```
//!
//! L-Store paper, section 6.1; the active set is the first rows of the table.

/// The columns of the table; the first is its primary key.
pub(super) const COLUMNS: usize = 10;
/// The column that is summed up; updates touch it as often as any other.
pub(super) const SUMMED: usize = 1;

/// Random numbers: wyrand, 64 bits of state.
pub(super) struct Random(u64);

impl Random {
    /// The numbers that follow from a seed.
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number, any of 64 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }

    /// The next value of a column: 31 bits, so that the sum of any table fits its type.
    fn next_value(&mut self) -> i64 {
        (self.next() >> 33) as i64
    }
}

/// The number below `bound` that 32 random bits lead to.
fn scaled(bits: u32, bound: u64) -> u64 {
    (u64::from(bits) * bound) >> 32
}

/// The row that the table is loaded with for this key.
pub(super) fn loaded_row(key: u64) -> [i64; COLUMNS] {
    let mut random = Random::new(key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut row = [0; COLUMNS];
    row[0] = key as i64;
    row[1..].fill_with(|| random.next_value());
    row
}

/// The shape of transactions.
pub(super) struct Workload {
    active: u64,
    reads: usize,
    updates: usize,
    /// those of reads, then those of updates
    sets: Vec<Vec<usize>>,
    /// how many are of reads
    read_sets: usize,
}

impl Workload {
    /// Transactions of so many point reads and updates of rows with keys below `active`, each of `columns` columns.
    pub(super) fn new(active: u64, reads: u32, updates: u32, columns: u32) -> Workload {
        let columns = columns as usize;
        let mut sets = column_sets(0, columns);
        let read_sets = sets.len();
        sets.extend(column_sets(1, columns.min(COLUMNS - 1)));
        Workload { active: active.max(1), reads: reads as usize, updates: updates as usize, sets, read_sets }
    }

    /// The transactions that follow from a seed.
    pub(super) fn transactions(&self, seed: u64) -> Transactions<'_> {
        let count = self.reads + self.updates;
        Transactions { workload: self, random: Random::new(seed), statements: vec![Statement::default(); count] }
    }

    /// Transactions of one such update each.
    pub(super) fn single_updates(&self) -> Workload {
        Workload { reads: 0, updates: 1, sets: self.sets.clone(), ..*self }
    }

    /// How many rows may be touched, the first of the table.
    pub(super) fn active(&self) -> u64 {
        self.active
    }

    /// Updates in a transaction.
    pub(super) fn updates(&self) -> u64 {
        self.updates as u64
    }
}

/// All sets of `count` columns from `first` on.
fn column_sets(first: usize, count: usize) -> Vec<Vec<usize>> {
    let mut sets = Vec::new();
    for bits in 0_u32..1 << COLUMNS {
        if bits.count_ones() as usize == count && bits.trailing_zeros() as usize >= first {
            sets.push((0..COLUMNS).filter(|column| bits >> column & 1 == 1).collect());
        }
    }
    sets
}

/// One statement of a transaction.
#[derive(Clone, Default)]
pub(super) struct Statement<'w> {
    /// Which row.
    pub(super) key: u64,
    /// Which of its columns, ascending.
    pub(super) columns: &'w [usize],
    /// The number of this set of columns among all that statements choose from.
    pub(super) set: usize,
    is_update: bool,
    values: [i64; COLUMNS],
}

impl Statement<'_> {
    /// The new values of the columns, if this is an update.
    pub(super) fn new_values(&self) -> Option<&[i64]> {
        self.is_update.then(|| &self.values[..self.columns.len()])
    }
}

/// An endless sequence of transactions.
pub(super) struct Transactions<'w> {
    workload: &'w Workload,
    random: Random,
    statements: Vec<Statement<'w>>,
}

impl<'w> Transactions<'w> {
    /// The statements of the next transaction: the reads, then the updates.
    pub(super) fn next(&mut self) -> &[Statement<'w>] {
        let Transactions { workload, random, statements } = self;
        let workload: &'w Workload = workload;
        for (at, statement) in statements.iter_mut().enumerate() {
            let bits = random.next();
            statement.key = scaled(bits as u32, workload.active);
            statement.is_update = at >= workload.reads;
            let (first, end) = match statement.is_update {
                true => (workload.read_sets, workload.sets.len()),
                false => (0, workload.read_sets),
            };
            statement.set = first + scaled((bits >> 32) as u32, (end - first) as u64) as usize;
            statement.columns = &workload.sets[statement.set];
            if statement.is_update {
                let count = statement.columns.len();
                statement.values[..count].fill_with(|| random.next_value());
            }
        }
        statements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_as_ordered() {
        let workload = Workload::new(1000, 8, 2, 4);
        let mut transactions = workload.transactions(7);
        for _ in 0..1000 {
            let statements = transactions.next();
            assert_eq!(statements.len(), 10);
            for (at, statement) in statements.iter().enumerate() {
                assert!(statement.key < 1000);
                assert_eq!(statement.columns.len(), 4);
                assert!(statement.columns.is_sorted_by(|left, right| left < right));
                assert_eq!(statement.new_values().map(<[i64]>::len), (at >= 8).then_some(4));
                assert!(statement.new_values().is_none() || statement.columns[0] > 0, "updates leave the key alone");
            }
        }
    }

    #[test]
    fn every_row_and_every_column_has_its_turn() {
        let workload = Workload::new(100, 1, 1, 4);
        let mut transactions = workload.transactions(1);
        let (mut keys, mut read, mut updated) = ([0; 100], [0; COLUMNS], [0; COLUMNS]);
        for _ in 0..10_000 {
            for statement in transactions.next() {
                keys[statement.key as usize] += 1;
                let counts = if statement.new_values().is_some() { &mut updated } else { &mut read };
                statement.columns.iter().for_each(|column| counts[*column] += 1);
            }
        }
        assert!(keys.iter().all(|count| (100..300).contains(count)), "{keys:?}");
        assert!(read.iter().all(|count| (3700..4300).contains(count)), "{read:?}");
        assert!(updated[0] == 0 && updated[1..].iter().all(|count| (4100..4800).contains(count)), "{updated:?}");
    }

    #[test]
    fn a_seed_leads_to_one_sequence_and_another_to_another() {
        let workload = Workload::new(1 << 31, 1, 1, 10);
        let keys = |seed| {
            let mut transactions = workload.transactions(seed);
            (0..10).map(|_| transactions.next()[1].key).collect::<Vec<_>>()
        };
        assert_eq!(keys(1), keys(1));
        assert_ne!(keys(1), keys(2));
        assert_eq!(workload.transactions(1).next()[1].columns, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
}
