//! `\crosstabview`: a column becomes the names of rows, another one the names of columns, a third one the values between them.
use crate::output::rows::{Column, Footer, Row};
use crate::output::table::Table;

/// The most columns that a table may become wide.
const COLUMNS_MAX: usize = 1600;

/// The rows turned; `names` are the columns for rows, columns, values and the order of columns, by name or number, as far as they are
/// named.
///
/// # Errors
/// What is wrong with the columns or the rows.
pub(crate) fn turned(columns: &[Column], rows: &[Row], names: &[String]) -> Result<Table, String> {
    if columns.len() < 3 {
        return Err("\\crosstabview: query must return at least three columns".to_owned());
    }
    let place = |at: usize| names.get(at).map(|name| column_of(columns, name)).transpose();
    let vertical = place(0)?.unwrap_or(0);
    let horizontal = place(1)?.unwrap_or(1);
    if vertical == horizontal {
        return Err("\\crosstabview: vertical and horizontal headers must be different columns".to_owned());
    }
    let values = match place(2)? {
        Some(values) => values,
        None if columns.len() == 3 => 3 - vertical - horizontal,
        None => {
            return Err(
                "\\crosstabview: data column must be specified when query returns more than three columns".to_owned()
            );
        }
    };
    let order = place(3)?;
    let mut heads: Vec<(Option<String>, Option<f64>)> = Vec::new();
    let mut sides: Vec<Option<String>> = Vec::new();
    for row in rows {
        if !heads.iter().any(|(head, _)| *head == row[horizontal]) {
            let rank = order.and_then(|order| row[order].as_ref()?.parse().ok());
            heads.push((row[horizontal].clone(), rank));
        }
        if !sides.contains(&row[vertical]) {
            sides.push(row[vertical].clone());
        }
    }
    if heads.len() > COLUMNS_MAX {
        return Err(format!("\\crosstabview: maximum number of columns ({COLUMNS_MAX}) exceeded"));
    }
    if order.is_some() {
        heads.sort_by(|a, b| a.1.unwrap_or(f64::MAX).total_cmp(&b.1.unwrap_or(f64::MAX)));
    }
    let mut table = Table::new([]);
    table.columns.push(columns[vertical].clone());
    let named = |head: &Option<String>| Column { name: head.clone().unwrap_or_default(), oid: columns[values].oid };
    table.columns.extend(heads.iter().map(|(head, _)| named(head)));
    let width = heads.len();
    table.rows = sides
        .iter()
        .map(|side| std::iter::once(side.clone()).chain(vec![Some(String::new()); width]).collect())
        .collect();
    let mut is_filled = vec![vec![false; width]; sides.len()];
    for row in rows {
        let side = sides.iter().position(|side| *side == row[vertical]).unwrap_or(0);
        let head = heads.iter().position(|(head, _)| *head == row[horizontal]).unwrap_or(0);
        if std::mem::replace(&mut is_filled[side][head], true) {
            let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "(null)".to_owned());
            let (row, column) = (told(&sides[side]), told(&heads[head].0));
            return Err(format!(
                "\\crosstabview: query result contains multiple data values for row \"{row}\", column \"{column}\""
            ));
        }
        table.rows[side][head + 1].clone_from(&row[values]);
    }
    table.footer = Footer::Count(table.rows.len() as u64);
    Ok(table)
}

fn column_of(columns: &[Column], name: &str) -> Result<usize, String> {
    if let Ok(number) = name.parse::<usize>() {
        let known = (1..=columns.len()).contains(&number);
        let message = || format!("\\crosstabview: column number {number} is out of range 1..{}", columns.len());
        return known.then(|| number - 1).ok_or_else(message);
    }
    let name = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
        .map_or_else(|| name.to_lowercase(), str::to_owned);
    let mut found = columns.iter().enumerate().filter(|(_, column)| column.name == name).map(|(at, _)| at);
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (None, _) => Err(format!("\\crosstabview: column name not found: \"{name}\"")),
        (Some(_), Some(_)) => Err(format!("\\crosstabview: ambiguous column name: \"{name}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 4]], names: &[&str]) -> Result<Table, String> {
        let columns: Vec<Column> = ["a", "b", "c", "d"].map(Column::text).into();
        let rows: Vec<Row> = rows.iter().map(|row| row.iter().map(|text| Some((*text).to_owned())).collect()).collect();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        turned(&columns, &rows, &names)
    }

    #[test]
    fn values_stand_between_the_names_of_rows_and_columns() {
        let rows = [["r1", "c2", "x", "2"], ["r1", "c1", "y", "1"], ["r2", "c1", "z", "1"]];
        let table = table(&rows, &["a", "B", "3", "\"d\""]).unwrap();
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["a", "c1", "c2"]);
        let cells: Vec<Vec<&str>> =
            table.rows.iter().map(|row| row.iter().map(|value| value.as_deref().unwrap()).collect()).collect();
        assert_eq!(cells, [["r1", "y", "x"], ["r2", "z", ""]]);
    }

    #[test]
    fn what_can_not_be_turned_is_told() {
        let twice = [["r", "c", "x", "1"], ["r", "c", "y", "1"]];
        let failed = |names: &[&str]| table(&twice, names).unwrap_err();
        assert!(failed(&["a", "b", "c"]).ends_with("multiple data values for row \"r\", column \"c\""));
        assert!(failed(&["a", "b"]).contains("data column must be specified"));
        assert!(failed(&["nosuch"]).ends_with("column name not found: \"nosuch\""));
        assert!(failed(&["9"]).ends_with("column number 9 is out of range 1..4"));
        assert!(failed(&["a", "a", "c"]).contains("must be different columns"));
    }
}
