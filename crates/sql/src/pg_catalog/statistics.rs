//! `pg_stats`: what is known of the values of columns. There is no ANALYZE: merges keep it up, and rows that are not merged yet are taken
//! to be as the others. Of a table of which nothing was merged there are no rows.
//!
//! What PostgreSQL samples and is not kept here is NULL: common values, the correlation with the order of rows, and the width of what has
//! none that is fixed. A histogram is one bucket, from the smallest value to the greatest.
use engine::{Column, ColumnStatistics, Value};

use super::cells::{Cell, Row, text};
use super::objects::{Objects, TableObject};
use crate::names::schemas::schema_of;
use crate::values::pg_types;
use crate::values::single::column_of_values;
use crate::values::text::text_value;

/// PostgreSQL takes the number of values to grow with the rows beyond this share of them.
const GROWS_WITH_ROWS: f64 = 0.1;

/// The rows of the view.
pub(super) fn rows(objects: &Objects) -> Vec<Row> {
    objects.tables.iter().flat_map(of_table).collect()
}

fn of_table(table: &TableObject) -> Vec<Row> {
    let known = table.table.statistics();
    if known.rows_merged == 0 {
        return Vec::new();
    }
    let row = |(column, told): (&Column, &ColumnStatistics)| {
        let mut row = vec![("schemaname", text(schema_of(&table.key))), ("tablename", text(&table.name))];
        row.extend([("attname", text(&column.name)), ("inherited", Cell::Truth(false))]);
        let share = |part: u64| part as f64 / known.rows.max(1) as f64;
        row.push(("null_frac", Cell::Real(share(told.nulls).min(1.0) as f32)));
        let width = i64::from(pg_types::of_column(column.data_type).length);
        row.extend((width > 0).then_some(("avg_width", Cell::Number(width))));
        let distinct = match share(told.distinct) {
            growing if growing > GROWS_WITH_ROWS => -growing.min(1.0),
            _ => told.distinct as f64,
        };
        row.push(("n_distinct", Cell::Real(distinct as f32)));
        row.extend(bounds(column, told).map(|bounds| ("histogram_bounds", Cell::Texts(bounds))));
        row
    };
    table.table.schema().columns().iter().zip(&known.columns).map(row).collect()
}

/// The extremes of a column as texts, unless they are one value.
fn bounds(column: &Column, told: &ColumnStatistics) -> Option<Vec<String>> {
    let extremes: [Value; 2] = [told.min.clone()?, told.max.clone()?];
    let array = column_of_values(&extremes, column.data_type).ok()?;
    let bounds = [text_value(&array, 0)?, text_value(&array, 1)?];
    (bounds[0] != bounds[1]).then_some(bounds.into())
}
