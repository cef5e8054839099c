//! What makes a name a function in SQL.
//!
//! The engine keeps a function as it keeps a view: as a table that never has rows, so that it is made, changed, seen and dropped with
//! the transactions and snapshots of tables. It never reads the body, which SQL puts in the place of calls.
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use types::DataType;

/// Whether any database of the process has, or had, such a function.
static ARE_MADE: AtomicBool = AtomicBool::new(false);

/// Whether a call may be of a function that a user has made. So statements look for none where there never was any.
pub fn has_made_functions() -> bool {
    ARE_MADE.load(Ordering::Relaxed)
}

/// How a function's body is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionBody {
    /// statements in a text: `AS '...'`
    Text,
    /// one expression: `RETURN ...`
    Return,
    /// statements between `BEGIN ATOMIC` and `END`
    Atomic,
}

/// What a function promises of its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionVolatility {
    /// they depend on the arguments alone
    Immutable,
    /// they stay within a statement
    Stable,
    /// nothing
    Volatile,
}

/// What a function gives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionResult {
    /// values of a type
    Value(DataType),
    /// rows of these columns, said as `TABLE (...)`
    Table(Vec<(String, DataType)>),
    /// rows of these columns, said as arguments with `OUT`
    Out(Vec<(String, DataType)>),
    /// rows as a table or view has them, by the name by which the engine knows it
    RowOf(String),
    /// nothing: `void`
    Nothing,
}

/// An argument that a call gives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FunctionArgument {
    /// its name, which may be empty
    pub name: String,
    /// its type
    pub data_type: DataType,
    /// what it is where a call leaves it out, as an SQL expression
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// The definition of a function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FunctionDefinition {
    /// the arguments in their order
    pub arguments: Vec<FunctionArgument>,
    /// what it gives
    pub result: FunctionResult,
    /// whether it gives any number of results
    pub returns_set: bool,
    /// the body in SQL, as it was written
    pub body: String,
    /// how the body is written
    pub form: FunctionBody,
    /// what it promises of its results
    pub volatility: FunctionVolatility,
    /// whether its result is NULL where an argument is
    pub is_strict: bool,
    /// what was said besides, as `CREATE FUNCTION` says it
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl FunctionDefinition {
    /// Notes that there is such a function.
    pub(crate) fn introduce(&self) {
        ARE_MADE.store(true, Ordering::Relaxed);
    }
}
