//! A way to call a function of ranges, shapes or addresses: what it takes, gives and computes.
use engine::{DataType, Value};

use crate::error::SqlError;

/// The operator of a part of a shape, as in `p[0]`.
pub(crate) const PART: &str = "[]";

/// What a form computes of a row; NULL is [`Value::Null`].
pub(super) type Compute = Box<dyn Fn(&[Value]) -> std::result::Result<Value, SqlError> + Send + Sync>;

/// One way to call a function.
pub(super) struct Form {
    pub(super) takes: Vec<DataType>,
    pub(super) gives: DataType,
    pub(super) sees_null: bool,
    pub(super) compute: Compute,
}

/// A form that gives NULL for any NULL.
pub(super) fn strict(
    takes: impl Into<Vec<DataType>>,
    gives: DataType,
    compute: impl Fn(&[Value]) -> std::result::Result<Value, SqlError> + Send + Sync + 'static,
) -> Form {
    Form { takes: takes.into(), gives, sees_null: false, compute: Box::new(compute) }
}
