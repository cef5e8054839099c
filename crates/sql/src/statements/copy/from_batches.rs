//! Rows that a caller in the same process has as Arrow batches: columns matched by name, one batch at a time. Errors count rows from
//! 0, as programs do.
use arrow_array::ArrayRef;
use engine::Column;

use super::from_parquet::{match_columns, texts};
use super::input::BatchInput;
use crate::error::Result;
use crate::session::transactions::Write;
use crate::state::target::Target;
use crate::statements::filling::Filling;
use crate::values::assign::assign_counted;
use crate::values::stored::rows_as_stored;

/// Loads the rows; returns how many came in.
pub(crate) fn run(
    write: &mut Write<'_>,
    (target, filling): (&Target, &Filling<'_>),
    input: &mut dyn BatchInput,
) -> Result<(u64, Vec<String>)> {
    let schema = input.schema();
    let order = match_columns(&schema, target, "data")?;
    let mut loaded = 0u64;
    while let Some(batch) = input.next_batch() {
        write.check()?;
        let batch = batch?;
        let assign = |(at, column): (&usize, &Column)| -> Result<ArrayRef> {
            let (array, field) = (batch.column(*at), schema.field(*at));
            assign_counted(array, field, &column.name, column.data_type, texts(column), loaded)
        };
        let assigned = order.iter().zip(target.columns()).map(assign).collect::<Result<Vec<_>>>()?;
        let rows = filling.rows(write, target, assigned, batch.num_rows())?;
        loaded += write.transaction.insert_batch(&target.table, &rows_as_stored(&rows))?;
    }
    Ok((loaded, Vec::new()))
}
