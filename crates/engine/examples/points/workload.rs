//! What the contestants are given to do.

pub const COLUMNS: usize = 10;

/// Numbers by chance (wyrand).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }

    fn next_value(&mut self) -> u64 {
        self.next() >> 33
    }
}

fn below(bits: u32, bound: u64) -> u64 {
    (u64::from(bits) * bound) >> 32
}

/// The row of a key as it is loaded.
pub fn loaded_row(key: u64) -> [i64; COLUMNS] {
    let mut random = Random(key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut row = [0; COLUMNS];
    row[0] = key as i64;
    row[1..].fill_with(|| random.next_value() as i64);
    row
}

#[derive(Clone, Default)]
pub struct Statement {
    pub key: u64,
    pub set: usize,
    pub is_update: bool,
    /// as words
    pub values: [u64; 4],
}

/// The sets of columns that statements choose from.
pub struct Workload {
    pub read_sets: Vec<Vec<usize>>,
    pub update_sets: Vec<Vec<usize>>,
}

impl Workload {
    pub fn new() -> Workload {
        Workload { read_sets: column_sets(0), update_sets: column_sets(1) }
    }

    /// The statements of a transaction: 8 reads, then 2 updates.
    pub fn fill(&self, random: &mut Random, active: u64, statements: &mut [Statement; 10]) {
        for (at, statement) in statements.iter_mut().enumerate() {
            let bits = random.next();
            statement.key = below(bits as u32, active);
            statement.is_update = at >= 8;
            let sets = if statement.is_update { &self.update_sets } else { &self.read_sets };
            statement.set = below((bits >> 32) as u32, sets.len() as u64) as usize;
            if statement.is_update {
                statement.values.fill_with(|| random.next_value());
            }
        }
    }

    pub fn columns(&self, statement: &Statement) -> &[usize] {
        if statement.is_update { &self.update_sets[statement.set] } else { &self.read_sets[statement.set] }
    }
}

/// All sets of four columns from `first` on.
fn column_sets(first: usize) -> Vec<Vec<usize>> {
    let is_meant = |bits: &u32| bits.count_ones() == 4 && bits.trailing_zeros() as usize >= first;
    let columns = |bits: u32| (0..COLUMNS).filter(|column| bits >> column & 1 == 1).collect();
    (0_u32..1 << COLUMNS).filter(is_meant).map(columns).collect()
}
