//! Queries of few rows that are passed on as cells: of the rows that have a whole number between two others in one column, these, in any
//! order of one column, or each value of one column once, or how many they are and the sums of columns.
use arrow_schema::{DataType as ArrowType, FieldRef};

use super::answer::{Answer, Total};
use super::between::Between;
use super::ordering::SortKey;
use crate::point::columns::Columns;

/// What such a query is about.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) between: Between,
    pub(crate) given: Given,
}

/// What is passed on.
#[derive(Debug)]
pub(crate) enum Given {
    Rows {
        /// where the columns of the answer are among those that are read
        places: Vec<usize>,
        /// By what the rows are sorted once they are found, if they are not found in their order.
        order: Option<SortKey>,
        /// Whether of rows that are equal in this order the first is passed alone.
        is_distinct: bool,
    },
    /// One row of whole numbers: counts and sums of columns that are stored as words.
    Sums(Vec<Total>),
}

impl Passed {
    /// A query as one of these: what it is about, gives, and in which order, of the columns that it reads.
    pub(super) fn of(between: Between, answer: &Answer, order: &[SortKey], reads: &[usize]) -> Option<Passed> {
        let given = match answer {
            Answer::Columns { columns, places, is_distinct } if are_passed(columns) => {
                let is_sorted = |key: &SortKey| {
                    let given = places.iter().position(|place| *place == key.place);
                    given.is_some_and(|at| *columns.schema.field(at).data_type() != ArrowType::Boolean)
                };
                let order = match order[..] {
                    _ if between.is_order(order, reads) && !is_distinct => None,
                    [key] if is_sorted(&key) && (!is_distinct || places[..] == [key.place]) => Some(key),
                    _ => return None,
                };
                Given::Rows { places: places.clone(), order, is_distinct: *is_distinct }
            }
            Answer::Totals { totals, schema } if between.is_of_words && answer.is_of_sums() => {
                let is_whole = |field: &FieldRef| *field.data_type() == ArrowType::Int64;
                schema.fields().iter().all(is_whole).then(|| Given::Sums(totals.clone()))?
            }
            _ => return None,
        };
        Some(Passed { between, given })
    }
}

/// Whether values of these columns are passed as cells.
pub(crate) fn are_passed(columns: &Columns) -> bool {
    use ArrowType::{Boolean, Int16, Int32, Int64, Utf8View};

    let is_passed = |field: &FieldRef| matches!(field.data_type(), Boolean | Int16 | Int32 | Int64 | Utf8View);
    columns.are_stored && columns.schema.fields().iter().all(is_passed)
}
