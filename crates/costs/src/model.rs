//! The two models, and what holds for all operators of a plan.
use crate::coefficients::{Coefficient, Coefficients};

/// The bytes of a page, as in the paper's experiments (its Section 4.1).
pub const PAGE_BYTES: f64 = 8192.0;

/// Which of the paper's two models counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// PostgreSQL's: accesses are in order or not, whether they read or write
    Original,
    /// The paper's: reads and writes cost differently
    #[default]
    Asymmetric,
}

impl Model {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Model::Original => "original",
            Model::Asymmetric => "asymmetric",
        }
    }

    /// The model of a name, in any case.
    pub fn named(name: &str) -> Option<Model> {
        [Model::Original, Model::Asymmetric].into_iter().find(|model| model.name().eq_ignore_ascii_case(name))
    }
}

/// A relation as it is stored: `‖R‖_p` and `‖R‖_t`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relation {
    /// pages of [`PAGE_BYTES`]
    pub pages: f64,
    /// rows
    pub tuples: f64,
}

/// A side of a join: what the plan below it gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// rows
    pub rows: f64,
    /// bytes of each
    pub width: f64,
}

impl Side {
    /// `‖P‖_p`: the pages that its rows fill.
    pub fn pages(&self) -> f64 {
        (self.rows * self.width / PAGE_BYTES).ceil()
    }
}

/// A model with its coefficients and the memory that there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CostModel {
    /// the model that counts
    pub model: Model,
    /// what the kinds of work cost
    pub coefficients: Coefficients,
    /// the pages that one operator may keep in memory; without a limit nothing is written
    pub operator_pages: Option<f64>,
    /// `e`: the pages of all caches together; without a limit all that was read stays
    pub cache_pages: Option<f64>,
}

impl CostModel {
    fn get(&self, of: Coefficient) -> f64 {
        self.coefficients.get(of)
    }

    /// `c_s` or `c_sr`.
    pub(crate) fn sequential_read(&self) -> f64 {
        self.get(Coefficient::SequentialRead)
    }

    /// `c_r` or `c_rr`.
    pub(crate) fn random_read(&self) -> f64 {
        self.get(Coefficient::RandomRead)
    }

    /// `c_s` or `c_sw` (Table 3).
    pub(crate) fn sequential_write(&self) -> f64 {
        match self.model {
            Model::Original => self.sequential_read(),
            Model::Asymmetric => self.get(Coefficient::SequentialWrite),
        }
    }

    /// `c_rw`, which the original model has not.
    pub(crate) fn random_write(&self) -> f64 {
        self.get(Coefficient::RandomWrite)
    }

    /// `ĉ_cpu`.
    pub(crate) fn tuple(&self) -> f64 {
        self.get(Coefficient::Tuple)
    }

    /// `ċ_cpu`.
    pub(crate) fn index_tuple(&self) -> f64 {
        self.get(Coefficient::IndexTuple)
    }

    /// `c_op`.
    pub(crate) fn operator(&self) -> f64 {
        self.get(Coefficient::Operator)
    }

    /// Whether so many pages are more than an operator may keep.
    pub fn is_too_large(&self, pages: f64) -> bool {
        self.operator_pages.is_some_and(|most| pages > most)
    }
}
