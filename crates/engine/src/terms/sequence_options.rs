//! Which numbers a sequence gives out, and the columns of the table that it is.
use serde::{Deserialize, Serialize};
use types::{Column, DataType, Schema};

use crate::error::{Error, Result};

/// Which numbers a sequence gives out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SequenceOptions {
    /// smallint, integer or bigint: how far the bounds may lie
    pub data_type: DataType,
    /// the first number
    pub start: i64,
    /// from one number to the next; negative for a sequence that goes down
    pub increment: i64,
    /// the smallest number
    pub min: i64,
    /// the largest number
    pub max: i64,
    /// whether it begins again at the other bound instead of ending
    pub cycle: bool,
    /// how many numbers a session was to take at a time; they are always taken one by one
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cache: i64,
}

fn one() -> i64 {
    1
}

fn is_one(number: &i64) -> bool {
    *number == 1
}

impl Default for SequenceOptions {
    fn default() -> Self {
        let (data_type, max) = (DataType::BigInt, i64::MAX);
        SequenceOptions { data_type, start: 1, increment: 1, min: 1, max, cycle: false, cache: 1 }
    }
}

impl SequenceOptions {
    /// The smallest and the largest number of a type that a sequence can have.
    pub fn bounds(data_type: DataType) -> Option<(i64, i64)> {
        match data_type {
            DataType::SmallInt => Some((i16::MIN.into(), i16::MAX.into())),
            DataType::Integer => Some((i32::MIN.into(), i32::MAX.into())),
            DataType::BigInt => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }

    /// Refuses options that contradict each other.
    ///
    /// # Errors
    /// [`Error::BadSequence`] with PostgreSQL's words for the first contradiction.
    pub fn check(&self) -> Result<()> {
        let SequenceOptions { data_type, start, increment, min, max, .. } = *self;
        let refuse = |why: String| Err(Error::BadSequence(why));
        let Some((lowest, highest)) = SequenceOptions::bounds(data_type) else {
            return refuse("sequence type must be smallint, integer, or bigint".into());
        };
        if increment == 0 {
            return refuse("INCREMENT must not be zero".into());
        }
        if max > highest || max < lowest {
            return refuse(format!("MAXVALUE ({max}) is out of range for sequence data type {data_type}"));
        }
        if min < lowest || min > highest {
            return refuse(format!("MINVALUE ({min}) is out of range for sequence data type {data_type}"));
        }
        if min >= max {
            return refuse(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})"));
        }
        if start < min {
            return refuse(format!("START value ({start}) cannot be less than MINVALUE ({min})"));
        }
        if start > max {
            return refuse(format!("START value ({start}) cannot be greater than MAXVALUE ({max})"));
        }
        Ok(())
    }

    /// The columns of the table that a sequence is.
    pub(crate) fn schema() -> Schema {
        let column = |name, data_type| Column { nullable: false, ..Column::new(name, data_type) };
        let columns =
            [("last_value", DataType::BigInt), ("log_cnt", DataType::BigInt), ("is_called", DataType::Boolean)];
        Schema::new(columns.map(|(name, data_type)| column(name, data_type)).into(), &[])
            .expect("no name is given twice")
    }

    /// The number after another one, `None` where the sequence ends.
    pub(crate) fn after(&self, last: i64) -> Option<i64> {
        let next = last.checked_add(self.increment).filter(|next| (self.min..=self.max).contains(next));
        let other_bound = if self.increment > 0 { self.min } else { self.max };
        let after = next.or(self.cycle.then_some(other_bound));
        debug_assert!(after.is_none_or(|after| (self.min..=self.max).contains(&after)), "{after:?} after {last}");
        after
    }

    /// How many numbers follow this one without reaching a bound, at most as many as are wanted.
    pub(crate) fn following(&self, last: i64, wanted: i64) -> i64 {
        let bound = if self.increment > 0 { self.max } else { self.min };
        let room = (i128::from(bound) - i128::from(last)) / i128::from(self.increment);
        let following = room.clamp(0, wanted.into()) as i64;
        debug_assert!(
            following == 0
                || (i128::from(self.min)..=i128::from(self.max))
                    .contains(&(i128::from(last) + i128::from(following) * i128::from(self.increment))),
            "{following} numbers after {last} are too many"
        );
        following
    }
}
