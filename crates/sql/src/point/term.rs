//! Where the values of a statement by key come from.
//!
//! A value is taken here only if it is plainly one of its column's type: a literal that reads as one, a parameter of the same
//! type, an integer of another width that fits. For all else there is the long way.
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{BinaryOperator, CastKind, Expr, FunctionArguments};
use engine::{Column, ColumnDefault, DataType, Value};

use super::assigned::Assigned;
use super::exact::{bits, decimal, exact, is_integer};
use super::fills::{Fills, is_always_filled};
use super::scope::Scope;
use crate::syntax::parameter::number_of;
use crate::values::builder::ColumnBuilder;
use crate::values::literals::{Literal, append_literal, is_default, literal};
use crate::values::numerics;
use crate::values::single::value_of_scalar;
use crate::values::types::{column_type, cuts_times};

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// It is a value of the column's type, or NULL.
    Constant(Value),
    /// A parameter, counted from 0, for a column of this type.
    Parameter(usize, DataType),
    /// A parameter, counted from 0, plus an integer.
    Shifted { parameter: usize, by: i64, width: DataType, column_type: DataType },
    /// The time of the transaction, for a column of this type.
    Now(DataType),
    /// The next number of a sequence, for a column of this type.
    Next(String, DataType),
    /// An expression of parameters.
    Assigned(Arc<Assigned>),
}

/// The value that a column is set to.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    Value(Origin),
    /// The value of another column, which this one takes as it is.
    Column {
        read: usize,
        column_type: DataType,
    },
    /// Two columns of integers, or of decimals, added or subtracted; as [`Term::Sum`].
    Columns {
        left: usize,
        right: usize,
        is_minus: bool,
        width: DataType,
        column_type: DataType,
    },
    /// A column of integers plus or minus an integer, or one of decimals plus or minus a number. `width` is the type of
    /// the sum, `column_type` that of the column which it goes to.
    Sum {
        read: usize,
        by: Origin,
        is_minus: bool,
        width: DataType,
        column_type: DataType,
    },
    /// Another expression of columns.
    Assigned(Arc<Assigned>),
}

/// Whether reading a text as a value of this type may round it or cut it off.
fn is_cut_to_fit(data_type: DataType) -> bool {
    use DataType::{Decimal, Double, Real, TimeDigits};

    data_type.has_length() || matches!(data_type, Decimal { .. } | Real | Double | TimeDigits { .. })
}

impl Term {
    /// The columns that it reads, in their order.
    pub(crate) fn reads(&self) -> Vec<usize> {
        match self {
            Term::Value(_) => Vec::new(),
            Term::Column { read, .. } | Term::Sum { read, .. } => vec![*read],
            Term::Columns { left, right, .. } => vec![*left, *right],
            Term::Assigned(assigned) => assigned.reads().collect(),
        }
    }
}

impl Scope<'_> {
    /// Where the values of the primary key come from, if conditions say `column = value` for each of its columns once and
    /// nothing else.
    pub(crate) fn key(&self, conditions: &[&Expr]) -> Option<Vec<Origin>> {
        let key = self.schema().primary_key();
        if key.is_empty() || conditions.len() != key.len() {
            return None;
        }
        let of_column = |wanted: usize| conditions.iter().find_map(|condition| self.equality(condition, wanted));
        key.iter().map(|column| of_column(*column)).collect()
    }

    /// The value that a condition wants a column to have.
    fn equality(&self, condition: &Expr, wanted: usize) -> Option<Origin> {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return None };
        let value = match (self.column(left), self.column(right)) {
            (Some(column), None) if column == wanted => right,
            (None, Some(column)) if column == wanted => left,
            _ => return None,
        };
        self.key_value(value, self.known(wanted))
    }

    /// A value to compare a column with, which nothing may be rounded or cut off of.
    pub(super) fn key_value(&self, expr: &Expr, column: &Column) -> Option<Origin> {
        if let Some(parameter) = self.parameter(expr, column.data_type.whole()) {
            return Some(parameter);
        }
        if let Some(shifted) = self.shifted(expr, column.data_type) {
            return Some(shifted);
        }
        let value = match literal(expr)? {
            Literal::Number(number) => match column.data_type {
                DataType::Decimal { .. } => exact(&Value::Decimal(decimal(&number)?), column.data_type)?,
                DataType::Numeric => Value::Numeric(numerics::read(&number).ok()?),
                _ => exact(&Value::BigInt(number.parse().ok()?), column.data_type)?,
            },
            Literal::Text(text) => match column.data_type {
                DataType::Text { .. } | DataType::Char { .. } => exact(&Value::Text(text), column.data_type)?,
                DataType::Decimal { .. } | DataType::Real | DataType::Double | DataType::TimeDigits { .. } => {
                    return None;
                }
                DataType::Array(item) if is_cut_to_fit(item.data_type()) => return None,
                _ => read(Literal::Text(text), column)?,
            },
            Literal::Boolean(value) if column.data_type == DataType::Boolean => Value::Boolean(value),
            Literal::Typed(array, data_type) if data_type == column.data_type => {
                read(Literal::Typed(array, data_type), column)?
            }
            _ => return None,
        };
        Some(Origin::Constant(value)).filter(|_| !matches!(column.data_type, DataType::Real | DataType::Double))
    }

    /// A parameter plus or minus an integer that is written out, to compare a column of integers with.
    fn shifted(&self, expr: &Expr, column_type: DataType) -> Option<Origin> {
        let (left, right, is_minus) = match expr {
            Expr::Nested(inner) => return self.shifted(inner, column_type),
            Expr::BinaryOp { left, op: BinaryOperator::Plus, right } => (left, right, false),
            Expr::BinaryOp { left, op: BinaryOperator::Minus, right } => (left, right, true),
            _ => return None,
        };
        let (parameter, from) = self.placeholder(left).filter(|(_, from)| is_integer(*from))?;
        let (Origin::Constant(Value::BigInt(by)), by_type) = self.integer(right)? else { return None };
        let width = if bits(from) >= bits(by_type) { from } else { by_type };
        let by = if is_minus { by.checked_neg()? } else { by };
        is_integer(column_type).then_some(Origin::Shifted { parameter, by, width, column_type })
    }

    /// A value that is put into a column.
    pub(crate) fn cell(&self, expr: &Expr, column: &Column) -> Option<Origin> {
        if let Some(parameter) = self.parameter(expr, column.data_type) {
            return Some(parameter);
        }
        if is_now(expr) && matches!(column.data_type.whole(), DataType::Timestamp | DataType::TimestampTz) {
            return Some(Origin::Now(column.data_type));
        }
        read(literal(expr)?, column).map(Origin::Constant)
    }

    /// A parameter for a column of a type.
    fn parameter(&self, expr: &Expr, to: DataType) -> Option<Origin> {
        let (at, from) = self.placeholder(expr)?;
        let fits = match (from, to) {
            (from, to) if is_integer(from) => is_integer(to),
            (DataType::Text { .. }, DataType::Text { .. } | DataType::Char { .. })
            | (DataType::Decimal { .. } | DataType::Numeric, DataType::Decimal { .. } | DataType::Numeric) => true,
            (from, to) => from == to.whole(),
        };
        fits.then_some(Origin::Parameter(at, to))
    }

    /// A parameter, counted from 0, and the type that it has where it stands: it may be cast to its own type or to a wider integer, as
    /// programs write that put a type behind each of their parameters.
    fn placeholder(&self, expr: &Expr) -> Option<(usize, DataType)> {
        match expr {
            Expr::Value(value) => {
                let at = number_of(&value.value)?;
                Some((at, *self.types.get(at)?))
            }
            Expr::Nested(inner) => self.placeholder(inner),
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => {
                let ((at, from), (to, _)) = (self.placeholder(expr)?, column_type(data_type).ok()?);
                let is_wider = is_integer(from) && is_integer(to) && bits(from) <= bits(to);
                // A cast to its own type may still cut something off.
                let stays = from == to && (to == DataType::Numeric || !is_cut_to_fit(to)) && !cuts_times(data_type);
                let is_text = matches!(from, DataType::Text { .. }) && matches!(to, DataType::TEXT | DataType::VARCHAR);
                (is_wider || stays || is_text).then_some((at, to))
            }
            _ => None,
        }
    }

    /// A column and what it is set to.
    pub(crate) fn set(&self, name: &str, expr: &Expr) -> Option<(usize, Term)> {
        let at = self.tables[0].position(name).filter(|_| !is_default(expr))?;
        let column = self.known(at);
        let plain = match (self.cell(expr, column), self.column(expr)) {
            (Some(value), _) => Some(Term::Value(value)),
            (None, Some(read)) => self.taken(read, column.data_type),
            (None, None) => self.sum(expr, column.data_type),
        };
        let term = match plain {
            Some(term) => term,
            None => Term::Assigned(self.assigned(expr, column)?),
        };
        Some((at, term))
    }

    /// The value of a column for one that takes it as it is.
    fn taken(&self, read: usize, column_type: DataType) -> Option<Term> {
        let fits = match (self.known(read).data_type, column_type) {
            (
                DataType::Json
                | DataType::Jsonb
                | DataType::TimeTz
                | DataType::Interval
                | DataType::Range(_)
                | DataType::Geometry(_)
                | DataType::Network(_),
                _,
            ) => false,
            (DataType::Text { .. }, DataType::Text { .. }) => true,
            (from, to) => from == to || (is_integer(from) && is_integer(to)),
        };
        fits.then_some(Term::Column { read, column_type })
    }

    fn sum(&self, expr: &Expr, column_type: DataType) -> Option<Term> {
        let (left, right, is_minus) = match expr {
            Expr::Nested(inner) => return self.sum(inner, column_type),
            Expr::BinaryOp { left, op: BinaryOperator::Plus, right } => (left, right, false),
            Expr::BinaryOp { left, op: BinaryOperator::Minus, right } => (left, right, true),
            _ => return None,
        };
        let (read, other) = match (self.column(left), self.column(right)) {
            (Some(read), None) => (read, right),
            (None, Some(read)) if !is_minus => (read, left),
            (Some(left), Some(right)) => return self.sum_of_columns((left, right), is_minus, column_type),
            _ => return None,
        };
        let read_type = self.known(read).data_type;
        if let (DataType::Decimal { .. }, DataType::Decimal { .. }) = (read_type, column_type) {
            return Some(Term::Sum { read, by: self.number(other)?, is_minus, width: column_type, column_type });
        }
        let (by, by_type) = self.integer(other)?;
        if !is_integer(read_type) || !is_integer(column_type) {
            return None;
        }
        let width = if bits(read_type) >= bits(by_type) { read_type } else { by_type };
        Some(Term::Sum { read, by, is_minus, width, column_type })
    }

    fn sum_of_columns(&self, (left, right): (usize, usize), is_minus: bool, column_type: DataType) -> Option<Term> {
        let types = (self.known(left).data_type, self.known(right).data_type);
        let width = match (types, column_type) {
            ((DataType::Decimal { .. }, DataType::Decimal { .. }), DataType::Decimal { .. }) => column_type,
            ((left, right), to) if is_integer(left) && is_integer(right) && is_integer(to) => {
                if bits(left) >= bits(right) { left } else { right }
            }
            _ => return None,
        };
        Some(Term::Columns { left, right, is_minus, width, column_type })
    }

    /// A number that decimals are added to.
    fn number(&self, expr: &Expr) -> Option<Origin> {
        match literal(expr) {
            Some(Literal::Number(number)) => decimal(&number).map(Value::Decimal).map(Origin::Constant),
            _ => self.parameter(expr, DataType::Numeric).or_else(|| self.parameter(expr, DataType::BigInt)),
        }
    }

    /// An integer and the type that it has by itself.
    pub(super) fn integer(&self, expr: &Expr) -> Option<(Origin, DataType)> {
        if let Some(Literal::Number(number)) = literal(expr) {
            let number = number.parse::<i64>().ok()?;
            let data_type = if i32::try_from(number).is_ok() { DataType::Integer } else { DataType::BigInt };
            return Some((Origin::Constant(Value::BigInt(number)), data_type));
        }
        let (at, from) = self.placeholder(expr).filter(|(_, from)| is_integer(*from))?;
        Some((Origin::Parameter(at, DataType::BigInt), from))
    }

    /// Whole rows of `VALUES`: columns that are not named are filled with their defaults.
    pub(crate) fn rows(
        &self,
        names: &[String],
        rows: &[&[Expr]],
        defaults: &[ColumnDefault],
    ) -> Option<Vec<Vec<Origin>>> {
        let columns = self.schema().columns();
        let named = names.iter().map(|name| self.schema().position(name)).collect::<Option<Vec<_>>>()?;
        let targets = if names.is_empty() { (0..columns.len()).collect() } else { named };
        let is_twice = |(at, column): (usize, &usize)| targets[..at].contains(column);
        if targets.iter().enumerate().any(is_twice) {
            return None;
        }
        let is_left_out = |at: usize| match targets.iter().position(|target| *target == at) {
            Some(place) => rows.iter().any(|row| row.get(place).is_some_and(is_default)),
            None => true,
        };
        let fills = Fills::of(defaults, self, is_left_out);
        let row = |row: &&[Expr]| {
            if row.len() != targets.len() {
                return None;
            }
            let mut whole: Vec<Option<Origin>> = (0..columns.len()).map(|at| fills.origin(at).cloned()).collect();
            for (expr, at) in row.iter().zip(&targets).filter(|(expr, _)| !is_default(expr)) {
                let column = &columns[*at];
                let assigned =
                    || self.assigned(expr, column).filter(|assigned| assigned.is_free()).map(Origin::Assigned);
                whole[*at] = self.cell(expr, column).or_else(assigned).filter(|_| !is_always_filled(defaults, *at));
            }
            whole.into_iter().collect()
        };
        rows.iter().map(row).collect()
    }
}

/// A literal as it is assigned to a column.
fn read(literal: Literal, column: &Column) -> Option<Value> {
    if let Literal::Null = literal {
        return Some(Value::Null);
    }
    let mut builder = ColumnBuilder::new(column.data_type);
    append_literal(&mut builder, literal, column).ok()?;
    let scalar = ScalarValue::try_from_array(&builder.finish(), 0).ok()?;
    value_of_scalar(&scalar, column.data_type)
}

/// Whether an expression is the time of the transaction.
fn is_now(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let [part] = &function.name.0[..] else { return false };
    let Some(ident) = part.as_ident() else { return false };
    let has_no_arguments = match &function.args {
        FunctionArguments::None => ident.value.eq_ignore_ascii_case("current_timestamp"),
        FunctionArguments::List(list) => list.args.is_empty() && ident.value.eq_ignore_ascii_case("now"),
        FunctionArguments::Subquery(_) => false,
    };
    has_no_arguments && ident.quote_style.is_none() && function.filter.is_none() && function.over.is_none()
}
