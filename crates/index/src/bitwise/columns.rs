//! The columns: how they are cut, and building them.
//!
//! Two passes, as a radix clustering (the paper, section 3.3): the first counts the points of each cluster, the sums of the counts
//! are the directory, and the second puts the bits of each point in their places.
use std::fmt;

use types::Rid;

use super::model::{BitSplit, SpaceModel};
use super::packed::{Packed, lowest};
use super::preselect::BitwiseImage;
use crate::beside::Token;

/// Why columns can't be distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitwiseError {
    /// The budget has no room for one bit of prefix and one of suffix.
    Budget {
        /// The budget.
        budget_bytes: usize,
        /// What the smallest cut takes.
        least_bytes: u128,
    },
    /// A column has another length than the list of Rids.
    Length {
        /// The column, counted from 0.
        column: usize,
        /// Its length.
        length: usize,
        /// How many Rids there are.
        rids: usize,
    },
    /// There are more points than pointers of 32 bits tell apart.
    Points {
        /// How many points there are.
        points: usize,
    },
}

impl fmt::Display for BitwiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BitwiseError::Budget { budget_bytes, least_bytes } => write!(
                f,
                "a budget of {budget_bytes} bytes is too small for these columns; give it {least_bytes} bytes at least"
            ),
            BitwiseError::Length { column, length, rids } => {
                write!(f, "column {column} has {length} values for {rids} records; give each record one")
            }
            BitwiseError::Points { points } => {
                write!(f, "{points} records are too many for one index of this kind; divide them into parts below 2^32")
            }
        }
    }
}

impl std::error::Error for BitwiseError {}

/// One or two columns of integers, distributed by bits. Immutable: built at once, read by any number of threads.
///
/// ```
/// use index::{BitwiseColumns, Bounds, Cpu};
/// use types::Rid;
///
/// let (x, y) = ([1, 5, 9, 5], [2, 5, 9, 6]);
/// let rids: Vec<Rid> = (0..4).map(|slot| Rid::base(0, slot)).collect();
/// let columns = BitwiseColumns::new([&x, &y], &rids, 1 << 16)?;
/// let window = Bounds::new([4, 4], [6, 6]).expect("low ends below high ends");
/// let matches = columns.search_batch(&[window], &Cpu::default());
/// assert_eq!(matches.of_query(0).len(), 2);
/// # Ok::<(), index::BitwiseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BitwiseColumns<const D: usize> {
    pub(super) image: BitwiseImage<D>,
    /// The lowest and highest value of each column.
    pub(super) ends: [(i64, i64); D],
    pub(super) residuals: [Packed; D],
    pub(super) residual_bits: u32,
    pub(super) rids: Vec<u64>,
    model: SpaceModel,
}

impl<const D: usize> BitwiseColumns<D> {
    /// Held at compile time wherever columns are used.
    const HAS_DIMENSIONS: () = assert!(D == 1 || D == 2, "one or two columns are distributed");

    /// Distributes columns, whose values at the same place belong to the record with the Rid there. What preselection reads
    /// takes `budget_bytes` at most, some words apart.
    ///
    /// # Errors
    /// [`BitwiseError`] if the budget is too small for any cut, a column has another length than `rids`, or there are 2^32
    /// records or more.
    pub fn new(columns: [&[i64]; D], rids: &[Rid], budget_bytes: usize) -> Result<Self, BitwiseError> {
        let () = Self::HAS_DIMENSIONS;
        if let Some(column) = (0..D).find(|column| columns[*column].len() != rids.len()) {
            return Err(BitwiseError::Length { column, length: columns[column].len(), rids: rids.len() });
        }
        if u32::try_from(rids.len()).is_err() {
            return Err(BitwiseError::Points { points: rids.len() });
        }
        let ends = columns.map(|column| {
            column.iter().fold((i64::MAX, i64::MIN), |(low, high), value| (low.min(*value), high.max(*value)))
        });
        let ends = ends.map(|(low, high)| if low > high { (0, 0) } else { (low, high) });
        let spans = ends.map(|(low, high)| high.wrapping_sub(low) as u64);
        let model = SpaceModel::new(rids.len() as u64, &spans, budget_bytes);
        let split = model
            .choose()
            .ok_or_else(|| BitwiseError::Budget { budget_bytes, least_bytes: model.least_budget_bytes() })?;
        Ok(Self::build(columns, rids, model, split, ends))
    }

    fn build(columns: [&[i64]; D], rids: &[Rid], model: SpaceModel, split: BitSplit, ends: [(i64, i64); D]) -> Self {
        let residual_bits = model.coordinate_bits() - split.kept_bits();
        let prefixes: [u64; D] = std::array::from_fn(|column| model.prefixes(column, split.prefix_bits));
        let offset = |column: usize, place: usize| columns[column][place].wrapping_sub(ends[column].0) as u64;
        let shift = split.suffix_bits + residual_bits;
        let cluster = |place: usize| {
            let prefix = |column| offset(column, place) >> shift;
            (0..D).fold(0, |cluster, column| cluster * prefixes[column] + prefix(column)) as usize
        };
        let mut starts = vec![0u32; model.clusters(split.prefix_bits) as usize + 1];
        (0..rids.len()).for_each(|place| starts[cluster(place) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut suffixes: [Packed; D] = std::array::from_fn(|_| Packed::zeros(rids.len(), split.suffix_bits));
        let mut residuals: [Packed; D] = std::array::from_fn(|_| Packed::zeros(rids.len(), residual_bits));
        let mut ordered = vec![0; rids.len()];
        for (place, rid) in rids.iter().enumerate() {
            let target = &mut next[cluster(place)];
            for column in 0..D {
                let offset = offset(column, place);
                suffixes[column].set(*target as usize, offset >> residual_bits & lowest(split.suffix_bits));
                residuals[column].set(*target as usize, offset & lowest(residual_bits));
            }
            ordered[*target as usize] = rid.word();
            *target += 1;
        }
        let image = BitwiseImage { split, prefixes, starts, suffixes, token: Token::new() };
        BitwiseColumns { image, ends, residuals, residual_bits, rids: ordered, model }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.rids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rids.is_empty()
    }

    /// Where the coordinates are cut.
    pub fn split(&self) -> BitSplit {
        self.image.split
    }

    /// The model that decided.
    pub fn model(&self) -> &SpaceModel {
        &self.model
    }

    /// What preselection reads.
    pub fn image(&self) -> &BitwiseImage<D> {
        &self.image
    }

    /// The memory of residuals and Rids, in bytes.
    pub fn memory_apart(&self) -> usize {
        self.residuals.iter().map(Packed::bytes).sum::<usize>() + size_of_val(&*self.rids)
    }

    /// The coordinate at a place of the lists, counted from the column's lowest value, of which preselection knows `kept`.
    #[inline]
    pub(super) fn refined(&self, column: usize, place: usize, kept: u64) -> u64 {
        kept << self.residual_bits | self.residuals[column].get(place)
    }
}
