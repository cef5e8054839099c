//! The options of a sequence taken together: PostgreSQL's defaults, and which options change with which.
use engine::{DataType, SequenceOptions};

use crate::error::{Result, SqlError};

/// The options that a statement names.
#[derive(Clone, Default)]
pub(crate) struct AskedOptions {
    pub(crate) data_type: Option<DataType>,
    pub(crate) increment: Option<i64>,
    /// `Some(None)`: NO MINVALUE
    pub(crate) min: Option<Option<i64>>,
    /// `Some(None)`: NO MAXVALUE
    pub(crate) max: Option<Option<i64>>,
    pub(crate) start: Option<i64>,
    /// `Some(None)`: with the number to start with
    pub(crate) restart: Option<Option<i64>>,
    /// told, and otherwise of no meaning: numbers always come from memory
    pub(crate) cache: Option<i64>,
    pub(crate) cycle: Option<bool>,
    /// `Some(None)`: of no column
    pub(crate) owner: Option<Option<Owner>>,
}

/// The column that a sequence belongs to.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) table: String,
    /// Whether a schema stands before the table.
    pub(crate) says_schema: bool,
    pub(crate) column: String,
    pub(crate) position: Option<usize>,
}

impl AskedOptions {
    /// The options of a new sequence.
    pub(crate) fn of_new(&self) -> Result<SequenceOptions> {
        self.check_cache()?;
        let data_type = self.data_type.unwrap_or(DataType::BigInt);
        let increment = self.increment.unwrap_or(1);
        let (lowest, highest) = default_bounds(data_type, increment)?;
        let min = self.min.flatten().unwrap_or(lowest);
        let max = self.max.flatten().unwrap_or(highest);
        let start = self.start.unwrap_or(if increment > 0 { min } else { max });
        let (cycle, cache) = (self.cycle.unwrap_or(false), self.cache.unwrap_or(1));
        Ok(SequenceOptions { data_type, start, increment, min, max, cycle, cache })
    }

    /// The options of a sequence that is there, and the number that it restarts with.
    pub(crate) fn of_changed(&self, before: &SequenceOptions) -> Result<(SequenceOptions, Option<i64>)> {
        self.check_cache()?;
        let data_type = self.data_type.unwrap_or(before.data_type);
        let increment = self.increment.unwrap_or(before.increment);
        let (lowest, highest) = default_bounds(data_type, increment)?;
        // A bound that was the old type's becomes the new type's.
        let (old_lowest, old_highest) = type_bounds(before.data_type)?;
        let (new_lowest, new_highest) = type_bounds(data_type)?;
        let (moves_min, moves_max) = (
            self.data_type.is_some() && before.min == old_lowest,
            self.data_type.is_some() && before.max == old_highest,
        );
        let bound = |asked: Option<Option<i64>>, moved: Option<i64>, default, kept| match asked {
            Some(Some(bound)) => bound,
            Some(None) => moved.unwrap_or(default),
            None => moved.unwrap_or(kept),
        };
        let min = bound(self.min, moves_min.then_some(new_lowest), lowest, before.min);
        let max = bound(self.max, moves_max.then_some(new_highest), highest, before.max);
        let start = self.start.unwrap_or(before.start);
        let (cycle, cache) = (self.cycle.unwrap_or(before.cycle), self.cache.unwrap_or(before.cache));
        let restart = self.restart.map(|restart| restart.unwrap_or(start));
        Ok((SequenceOptions { data_type, start, increment, min, max, cycle, cache }, restart))
    }

    fn check_cache(&self) -> Result<()> {
        match self.cache {
            Some(cache) if cache <= 0 => {
                Err(SqlError::new("22023", format!("CACHE ({cache}) must be greater than zero")))
            }
            _ => Ok(()),
        }
    }
}

/// How far a sequence goes where nothing is said: from 1 up, or from -1 down.
fn default_bounds(data_type: DataType, increment: i64) -> Result<(i64, i64)> {
    let (lowest, highest) = type_bounds(data_type)?;
    Ok(if increment > 0 { (1, highest) } else { (lowest, -1) })
}

fn type_bounds(data_type: DataType) -> Result<(i64, i64)> {
    let wrong = || SqlError::new("22023", "sequence type must be smallint, integer, or bigint");
    SequenceOptions::bounds(data_type).ok_or_else(wrong)
}
