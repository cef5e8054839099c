//! The shape of a table: its columns in order, and which of them make the primary key.
use std::fmt;
use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::{Collation, DataType};

/// The most columns that a table may have, as in PostgreSQL.
pub const COLUMNS_MAX: usize = 1600;

/// One column of a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// The name, as the catalog keeps it (lower case unless it was quoted).
    pub name: String,
    /// The type of its values.
    pub data_type: DataType,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// The collation that it was given, where that is not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<Collation>,
}

impl Column {
    /// A column that takes NULL.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Column {
        Column { name: name.into(), data_type, nullable: true, collation: None }
    }

    /// Makes the column NOT NULL.
    pub fn not_null(mut self) -> Column {
        self.nullable = false;
        self
    }
}

/// The columns of a table and its primary key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Schema {
    columns: Vec<Column>,
    primary_key: Vec<usize>,
}

/// Why a list of columns makes no schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaError {
    /// More than [`COLUMNS_MAX`] columns.
    TooManyColumns(usize),
    /// Two columns have this name.
    DuplicateColumn(String),
    /// The primary key names a column that is not there.
    NoSuchKeyColumn(String),
    /// The primary key names a column twice.
    DuplicateKeyColumn(String),
    /// The column's type can't be part of a key.
    NotAKeyType(String, DataType),
    /// The precision or scale is out of range.
    BadDecimal(String, DataType),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaError::TooManyColumns(n) => write!(f, "{n} columns; a table may have {COLUMNS_MAX}"),
            SchemaError::DuplicateColumn(name) => write!(f, "column \"{name}\" specified more than once"),
            SchemaError::NoSuchKeyColumn(name) => write!(f, "column \"{name}\" named in key does not exist"),
            SchemaError::DuplicateKeyColumn(name) => {
                write!(f, "column \"{name}\" appears twice in primary key constraint")
            }
            SchemaError::NotAKeyType(_, data_type) => {
                write!(f, "data type {data_type} has no default operator class for access method \"btree\"")
            }
            SchemaError::BadDecimal(name, data_type) => write!(
                f,
                "column \"{name}\": {data_type} is out of range; precision is 1 to 38 and scale 0 to precision"
            ),
        }
    }
}

impl std::error::Error for SchemaError {}

impl Schema {
    /// Builds a schema of these columns. `primary_key` names the key columns in order (empty: no primary key); they
    /// become NOT NULL.
    ///
    /// # Errors
    /// The first of [`SchemaError`] that applies: more than [`COLUMNS_MAX`], a name twice, a decimal
    /// out of range, or a key of columns that are not there, come twice or have a type that no key may have.
    pub fn new(mut columns: Vec<Column>, primary_key: &[&str]) -> Result<Schema, SchemaError> {
        if columns.len() > COLUMNS_MAX {
            return Err(SchemaError::TooManyColumns(columns.len()));
        }
        for (i, column) in columns.iter().enumerate() {
            if columns[..i].iter().any(|earlier| earlier.name == column.name) {
                return Err(SchemaError::DuplicateColumn(column.name.clone()));
            }
            if let DataType::Decimal { precision, scale } = column.data_type
                && !((1..=38).contains(&precision) && (0..=precision as i8).contains(&scale))
            {
                return Err(SchemaError::BadDecimal(column.name.clone(), column.data_type));
            }
        }
        let mut key = Vec::with_capacity(primary_key.len());
        for name in primary_key {
            let at = columns
                .iter()
                .position(|column| column.name == *name)
                .ok_or_else(|| SchemaError::NoSuchKeyColumn(name.to_string()))?;
            if key.contains(&at) {
                return Err(SchemaError::DuplicateKeyColumn(name.to_string()));
            }
            if !columns[at].data_type.is_key() {
                return Err(SchemaError::NotAKeyType(name.to_string(), columns[at].data_type));
            }
            columns[at].nullable = false;
            key.push(at);
        }
        Ok(Schema { columns, primary_key: key })
    }

    /// The columns in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The positions of the primary key's columns, in key order; empty where there is no primary key.
    pub fn primary_key(&self) -> &[usize] {
        &self.primary_key
    }

    /// The position of the column with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The schema that Arrow batches of whole rows have.
    pub fn to_arrow(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(&column.name, column.data_type.to_stored_arrow(), column.nullable);
        Arc::new(ArrowSchema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_columns_refuse_null() {
        let columns = vec![Column::new("a", DataType::BigInt), Column::new("b", DataType::TEXT)];
        let schema = Schema::new(columns, &["b"]).unwrap();
        assert_eq!(schema.primary_key(), [1]);
        assert!(!schema.columns()[1].nullable && schema.columns()[0].nullable);
    }

    #[test]
    fn bad_schemas_say_what_is_wrong() {
        let column = |name: &str, data_type| Column::new(name, data_type);
        let twice = vec![column("a", DataType::Date), column("a", DataType::Date)];
        assert_eq!(Schema::new(twice, &[]), Err(SchemaError::DuplicateColumn("a".into())));
        let missing = Schema::new(vec![column("a", DataType::Date)], &["b"]);
        assert_eq!(missing, Err(SchemaError::NoSuchKeyColumn("b".into())));
        let json = Schema::new(vec![column("a", DataType::Json)], &["a"]);
        assert_eq!(json, Err(SchemaError::NotAKeyType("a".into(), DataType::Json)));
        let decimal = DataType::Decimal { precision: 39, scale: 0 };
        assert_eq!(Schema::new(vec![column("a", decimal)], &[]), Err(SchemaError::BadDecimal("a".into(), decimal)));
    }
}
