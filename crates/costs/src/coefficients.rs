//! The coefficients of the model: what each kind of work costs, in the notation of the paper's Table 2.

/// A coefficient of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coefficient {
    /// `c_sr`: a page read from the device after the one before it; `c_s` of the original model
    SequentialRead,
    /// `c_rr`: a page read from anywhere on the device; `c_r` of the original model
    RandomRead,
    /// `c_sw`: a page written after the one before it
    SequentialWrite,
    /// `c_rw`: a page written anywhere
    RandomWrite,
    /// `ĉ_cpu`: a row that is loaded or given
    Tuple,
    /// `ċ_cpu`: an entry of an index, or of a hash table
    IndexTuple,
    /// `c_op`: an operator that is applied to a row
    Operator,
    /// a page that is in memory, read after the one before it; ours, as the paper's database has its pages on the device
    SequentialMemory,
    /// a page that is in memory, read from anywhere; ours
    RandomMemory,
}

impl Coefficient {
    /// All of them, in the order of their numbers.
    pub const ALL: [Coefficient; 9] = [
        Coefficient::SequentialRead,
        Coefficient::RandomRead,
        Coefficient::SequentialWrite,
        Coefficient::RandomWrite,
        Coefficient::Tuple,
        Coefficient::IndexTuple,
        Coefficient::Operator,
        Coefficient::SequentialMemory,
        Coefficient::RandomMemory,
    ];

    /// The name of the setting that has it: PostgreSQL's, where PostgreSQL has one.
    pub fn setting(self) -> &'static str {
        match self {
            Coefficient::SequentialRead => "seq_page_cost",
            Coefficient::RandomRead => "random_page_cost",
            Coefficient::SequentialWrite => "lstore.seq_write_cost",
            Coefficient::RandomWrite => "lstore.random_write_cost",
            Coefficient::Tuple => "cpu_tuple_cost",
            Coefficient::IndexTuple => "cpu_index_tuple_cost",
            Coefficient::Operator => "cpu_operator_cost",
            Coefficient::SequentialMemory => "lstore.seq_memory_cost",
            Coefficient::RandomMemory => "lstore.random_memory_cost",
        }
    }

    /// Its symbol in the paper's notation.
    pub fn symbol(self) -> &'static str {
        match self {
            Coefficient::SequentialRead => "c_sr",
            Coefficient::RandomRead => "c_rr",
            Coefficient::SequentialWrite => "c_sw",
            Coefficient::RandomWrite => "c_rw",
            Coefficient::Tuple => "c_cpu",
            Coefficient::IndexTuple => "c_index",
            Coefficient::Operator => "c_op",
            Coefficient::SequentialMemory => "c_sm",
            Coefficient::RandomMemory => "c_rm",
        }
    }
}

/// A value for each coefficient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients([f64; Coefficient::ALL.len()]);

impl Default for Coefficients {
    /// Those of a database that was not calibrated: [`Coefficients::converted`] from PostgreSQL's default for pages. Of the processor,
    /// a row put into a hash table costs twice as much as one looked up there, and one that is given half of that.
    fn default() -> Coefficients {
        Coefficients::converted(1.0, 4.0)
    }
}

impl Coefficients {
    /// PostgreSQL's default settings.
    pub const POSTGRESQL: Coefficients = Coefficients([1.0, 4.0, 1.0, 1.0, 0.01, 0.005, 0.0025, 0.01, 0.02]);

    /// The coefficients by which both models give the same costs, from the two of the original model (the paper's Section 3.3): a
    /// write of either kind costs what a read in order does, as the original counts it.
    pub fn converted(sequential: f64, random: f64) -> Coefficients {
        Coefficients([sequential, random, sequential, sequential, 0.001_25, 0.002_5, 0.002_5, 0.01, 0.02])
    }

    /// The value of one.
    pub fn get(&self, of: Coefficient) -> f64 {
        self.0[of as usize]
    }

    /// With another value for one.
    #[must_use]
    pub fn with(mut self, of: Coefficient, value: f64) -> Coefficients {
        self.0[of as usize] = value;
        self
    }
}
