//! Tables in a dump: their columns with defaults, and checks. Keys and what refers to them come after the rows.
use std::io::Write;

use super::catalog::{Catalog, Relation, quoted, texts};
use super::error::Result;
use super::objects::{options, owners};

/// A column as the catalog has it.
struct Column {
    name: String,
    data_type: String,
    is_not_null: bool,
    /// `a` or `d` of an identity column
    identity: String,
    is_generated: bool,
    default: String,
    /// The collation with its schema, as a statement spells it, unless it is that of the type.
    collation: String,
}

fn columns(catalog: &mut Catalog, table: &Relation) -> Result<Vec<Column>> {
    let rows = catalog.rows(&format!(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, \
         pg_get_expr(d.adbin, d.adrelid), CASE WHEN a.attcollation <> t.typcollation \
         THEN quote_ident(n.nspname) || '.' || quote_ident(c.collname) END \
         FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation \
         LEFT JOIN pg_namespace n ON n.oid = c.collnamespace \
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = {} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        table.oid
    ))?;
    let column = |row| -> Result<Column> {
        let [name, data_type, not_null, identity, generated, default, collation] = texts(row)?;
        let (is_not_null, is_generated) = (not_null == "t", generated == "s");
        Ok(Column { name, data_type, is_not_null, identity, is_generated, default, collation })
    };
    rows.into_iter().map(column).collect()
}

/// The columns that have values of their own, as a statement spells them.
pub(super) fn columns_with_values(catalog: &mut Catalog, table: &Relation) -> Result<Vec<String>> {
    let columns = columns(catalog, table)?.into_iter().filter(|column| !column.is_generated);
    Ok(columns.map(|column| quoted(&column.name)).collect())
}

/// All tables.
pub(super) fn write(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let owners = owners(catalog)?;
    for table in catalog.tables().cloned().collect::<Vec<_>>() {
        let mut parts = Vec::new();
        for column in columns(catalog, &table)? {
            let mut part = format!("{} {}", quoted(&column.name), column.data_type);
            if !column.collation.is_empty() {
                part += &format!(" COLLATE {}", column.collation);
            }
            if column.is_generated {
                part += &format!(" GENERATED ALWAYS AS ({}) STORED", column.default);
            } else if !column.default.is_empty() {
                part += &format!(" DEFAULT {}", column.default);
            }
            if column.is_not_null {
                part += " NOT NULL";
            }
            let is_its = |(_, of, name, is_identity): &&(Relation, Relation, String, bool)| {
                *is_identity && *of == table && *name == column.name
            };
            if let Some((sequence, ..)) = owners.iter().find(is_its) {
                let always = if column.identity == "a" { "ALWAYS" } else { "BY DEFAULT" };
                let options = options(catalog, sequence, false)?;
                part += &format!(" GENERATED {always} AS IDENTITY (SEQUENCE NAME {}{options})", sequence.spelled());
            }
            parts.push(part);
        }
        let checks = catalog.rows(&format!(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = {} AND contype = 'c' \
             AND convalidated ORDER BY conname",
            table.oid
        ))?;
        for row in checks {
            let [name, check] = texts(row)?;
            parts.push(format!("CONSTRAINT {} {check}", quoted(&name)));
        }
        let body = if parts.is_empty() { String::new() } else { format!("\n    {}\n", parts.join(",\n    ")) };
        writeln!(out, "CREATE TABLE {} ({body});\n", table.spelled())?;
    }
    Ok(())
}
