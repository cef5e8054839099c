//! The types of arguments as far as a statement's text tells them, before it is planned.
//!
//! Columns of tables and views, literals, casts, the operators between them and a few functions have a type that is seen. What is not
//! seen leaves the choice among functions of one name to their numbers of arguments.
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectNamePart, Query,
    Select, SelectItem, SetExpr, TableFactor, TableWithJoins, UnaryOperator, Value,
};
use engine::{ArrayItem, Column, DataType};

use super::choose::{Sight, becomes};
use crate::names::tables::Tables;
use crate::semantics::naming::columns::{Output, Scope};
use crate::state::view::{RowTarget, TARGET_SCHEMA, target_table};
use crate::syntax::identifiers::{fold, last_part};
use crate::values::types::column_type;

/// Functions that give a text.
const TEXTS: [&str; 16] = [
    "lower",
    "upper",
    "trim",
    "btrim",
    "ltrim",
    "rtrim",
    "concat",
    "concat_ws",
    "replace",
    "left",
    "right",
    "substr",
    "to_char",
    "repeat",
    "lpad",
    "initcap",
];

/// Functions that give an integer.
const INTEGERS: [&str; 5] = ["length", "char_length", "octet_length", "strpos", "ascii"];

/// Functions that give one of their arguments.
const ONE_OF: [&str; 4] = ["coalesce", "greatest", "least", "nullif"];

/// The columns that expressions see, by the SELECTs around them.
#[derive(Default)]
pub(in crate::planning) struct Columns<'a> {
    scope: Option<Scope<'a>>,
    targets: &'a [RowTarget],
    levels: Vec<Level>,
}

/// The columns of the tables of one SELECT.
#[derive(Default)]
struct Level {
    outputs: Vec<Output>,
    /// Whether there is a table of which the columns are not known.
    has_others: bool,
}

impl<'a> Columns<'a> {
    /// Those of statements over these tables, and over rows that are changed or given back.
    pub(super) fn over(tables: Option<&'a Tables>, targets: &'a [RowTarget]) -> Columns<'a> {
        Columns { scope: tables.map(Scope::new), targets, levels: Vec::new() }
    }

    /// These columns of one table.
    pub(super) fn of(columns: &[Column]) -> Columns<'a> {
        let outputs = columns.iter().map(|column| Output::of("", &column.name, Some(column.data_type))).collect();
        Columns { scope: None, targets: &[], levels: vec![Level { outputs, has_others: false }] }
    }

    /// Goes into a SELECT.
    pub(in crate::planning) fn enter(&mut self, select: &Select) {
        let mut level = Level::default();
        for table in &select.from {
            match self.target(table).or_else(|| self.scope.as_mut().and_then(|scope| scope.joined(table))) {
                Some(outputs) => level.outputs.extend(outputs),
                None => level.has_others = true,
            }
        }
        self.levels.push(level);
    }

    /// The columns of a table of which rows are changed or given back, if this is one.
    fn target(&self, table: &TableWithJoins) -> Option<Vec<Output>> {
        let TableFactor::Table { name, alias: Some(alias), .. } = &table.relation else { return None };
        let [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(name)] = &name.0[..] else { return None };
        let is_target = schema.value == TARGET_SCHEMA && table.joins.is_empty();
        let at = (0..self.targets.len()).find(|at| is_target && name.value == target_table(*at))?;
        Some(Output::all_of(&alias.name.value, &self.targets[at].table))
    }

    /// Goes into a query, whose ORDER BY sees the columns of its SELECT.
    pub(in crate::planning) fn enter_query(&mut self, query: &Query) {
        self.scope.iter_mut().for_each(|scope| scope.enter(query));
        match query.body.as_ref() {
            SetExpr::Select(select) => self.enter(select),
            _ => self.levels.push(Level::default()),
        }
    }

    /// Comes out of the query that was entered last.
    pub(in crate::planning) fn leave_query(&mut self) {
        self.scope.iter_mut().for_each(Scope::leave);
        self.leave();
    }

    /// Comes out of the SELECT that was entered last.
    pub(in crate::planning) fn leave(&mut self) {
        self.levels.pop();
    }

    fn column(&self, table: Option<&Ident>, column: &Ident) -> Option<DataType> {
        let column = fold(column);
        let is_of = |output: &&Output| match (table, &output.expr) {
            (None, _) => true,
            (Some(table), Expr::CompoundIdentifier(parts)) => parts.first().map(fold) == Some(fold(table)),
            (Some(_), _) => false,
        };
        let outputs = self.levels.iter().rev().flat_map(|level| &level.outputs);
        outputs.filter(|output| output.name == column).find(is_of)?.data_type
    }

    /// An argument with its columns behind the names of their tables, none of which is one of `hidden`; `None` where that can't be said, or
    /// the argument is more than a column.
    pub(super) fn qualified(&self, expr: &Expr, hidden: &[String]) -> Option<Expr> {
        let is_seen = |table: &Ident| !hidden.contains(&fold(table));
        Some(match expr {
            Expr::Identifier(name) => match self.table_of(name)? {
                Expr::CompoundIdentifier(parts) if is_seen(&parts[0]) => Expr::CompoundIdentifier(parts),
                _ => return None,
            },
            Expr::CompoundIdentifier(parts) if parts.len() == 2 && is_seen(&parts[0]) => expr.clone(),
            Expr::Value(_) | Expr::TypedString(_) => expr.clone(),
            Expr::Nested(inner) => Expr::Nested(Box::new(self.qualified(inner, hidden)?)),
            Expr::Cast { kind, expr: inner, data_type, array, format } => Expr::Cast {
                kind: kind.clone(),
                expr: Box::new(self.qualified(inner, hidden)?),
                data_type: data_type.clone(),
                array: *array,
                format: format.clone(),
            },
            _ => return None,
        })
    }

    /// A column that is named alone, behind the name of its table.
    fn table_of(&self, name: &Ident) -> Option<Expr> {
        let name = fold(name);
        for level in self.levels.iter().rev() {
            let mut found = level.outputs.iter().filter(|output| output.name == name);
            match (found.next(), found.next()) {
                _ if level.has_others => return None,
                (None, _) => {}
                (Some(one), None) if !one.is_merged => return Some(one.expr.clone()),
                _ => return None,
            }
        }
        None
    }
}

/// What expressions are seen by.
pub(super) struct Seen<'a> {
    pub(super) columns: &'a Columns<'a>,
    /// The types of parameters, by their numbers.
    pub(super) parameters: &'a [DataType],
}

impl Seen<'_> {
    /// What is seen of an expression's type.
    pub(super) fn sight(&self, expr: &Expr) -> Sight {
        let known = |data_type: Option<DataType>| data_type.map_or(Sight::Unseen, Sight::Known);
        match expr {
            Expr::Identifier(column) => known(self.columns.column(None, column)),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [.., table, column] => known(self.columns.column(Some(table), column)),
                _ => Sight::Unseen,
            },
            Expr::Value(value) => self.value(&value.value),
            Expr::Nested(inner)
            | Expr::Collate { expr: inner, .. }
            | Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } => self.sight(inner),
            Expr::Cast { data_type, .. } => known(column_type(data_type).ok().map(|(found, _)| found)),
            Expr::TypedString(typed) => known(column_type(&typed.data_type).ok().map(|(found, _)| found)),
            Expr::Interval(_) => Sight::Known(DataType::Interval),
            Expr::BinaryOp { left, op, right } => self.operation(left, op, right),
            Expr::UnaryOp { op: UnaryOperator::Not, .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::Between { .. }
            | Expr::InList { .. }
            | Expr::InSubquery { .. }
            | Expr::Exists { .. }
            | Expr::Like { .. }
            | Expr::ILike { .. } => Sight::Known(DataType::Boolean),
            Expr::Case { conditions, else_result, .. } => {
                self.one_of(conditions.iter().map(|when| &when.result).chain(else_result.as_deref()))
            }
            Expr::Array(array) => match self.one_of(array.elem.iter()) {
                Sight::Known(item) => known(ArrayItem::of(item).map(DataType::Array)),
                _ => Sight::Unseen,
            },
            Expr::Subquery(query) => match query.body.as_ref() {
                // That of a call that was written out.
                SetExpr::Select(select) => match &select.projection[..] {
                    [SelectItem::UnnamedExpr(expr)] => written(expr).map_or(Sight::Unseen, |cast| self.sight(cast)),
                    _ => Sight::Unseen,
                },
                _ => Sight::Unseen,
            },
            Expr::Function(function) => self.call(function),
            _ => Sight::Unseen,
        }
    }

    fn value(&self, value: &Value) -> Sight {
        match value {
            Value::Number(text, _) if text.parse::<i32>().is_ok() => Sight::Known(DataType::Integer),
            Value::Number(text, _) if text.parse::<i64>().is_ok() => Sight::Known(DataType::BigInt),
            Value::Number(..) => Sight::Known(DataType::Numeric),
            Value::Boolean(_) => Sight::Known(DataType::Boolean),
            Value::Placeholder(name) => {
                let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
                let found = number.and_then(|number| self.parameters.get(number.checked_sub(1)?));
                found.map_or(Sight::Unseen, |found| Sight::Known(*found))
            }
            _ => Sight::Untyped,
        }
    }

    /// The type of values of which one is taken.
    fn one_of<'e>(&self, values: impl Iterator<Item = &'e Expr>) -> Sight {
        let mut found = Sight::Untyped;
        for value in values {
            found = match (found, self.sight(value)) {
                (Sight::Unseen, _) | (_, Sight::Unseen) => return Sight::Unseen,
                (Sight::Untyped, other) | (other, Sight::Untyped) => other,
                (Sight::Known(one), Sight::Known(other)) if becomes(one, other) => Sight::Known(other),
                (Sight::Known(one), Sight::Known(_)) => Sight::Known(one),
            };
        }
        found
    }

    fn operation(&self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Sight {
        use BinaryOperator::{And, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, Plus};
        match op {
            Eq | NotEq | Lt | LtEq | Gt | GtEq | And | Or => return Sight::Known(DataType::Boolean),
            BinaryOperator::StringConcat => {
                let is_text = |expr| matches!(self.sight(expr), Sight::Known(DataType::Text { .. }) | Sight::Untyped);
                return if is_text(left) && is_text(right) { Sight::Known(DataType::TEXT) } else { Sight::Unseen };
            }
            Plus | Minus | Multiply | Divide | Modulo => {}
            _ => return Sight::Unseen,
        }
        let is_number = |data_type: DataType| becomes(data_type, DataType::Double);
        match (self.sight(left), self.sight(right)) {
            (Sight::Known(one), Sight::Known(other)) if is_number(one) && is_number(other) => {
                Sight::Known(if becomes(one, other) { other } else { one })
            }
            (Sight::Known(one), Sight::Untyped) | (Sight::Untyped, Sight::Known(one)) if is_number(one) => {
                Sight::Known(one)
            }
            _ => Sight::Unseen,
        }
    }

    fn call(&self, function: &Function) -> Sight {
        let Some(name) = last_part(&function.name) else { return Sight::Unseen };
        let name = name.as_str();
        let arguments: Vec<&Expr> = match &function.args {
            FunctionArguments::List(list) => list.args.iter().filter_map(plain).collect(),
            _ => Vec::new(),
        };
        match name {
            _ if ONE_OF.contains(&name) => self.one_of(arguments.into_iter()),
            _ if TEXTS.contains(&name) => Sight::Known(DataType::TEXT),
            _ if INTEGERS.contains(&name) => Sight::Known(DataType::Integer),
            "count" | "nextval" | "row_number" | "rank" => Sight::Known(DataType::BigInt),
            "now" | "current_timestamp" | "clock_timestamp" => Sight::Known(DataType::TimestampTz),
            "current_date" => Sight::Known(DataType::Date),
            "random" => Sight::Known(DataType::Double),
            "min" | "max" | "abs" => arguments.first().map_or(Sight::Unseen, |first| self.sight(first)),
            _ => Sight::Unseen,
        }
    }
}

/// The cast within what stands in the select list of a call that was written out.
fn written(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Cast { .. } => Some(expr),
        // That of a function that is NULL where an argument is.
        Expr::Nested(inner) => match inner.as_ref() {
            Expr::Case { operand: None, conditions, else_result: None, .. } => match &conditions[..] {
                [only] => written(&only.result),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The expression that an argument is.
pub(super) fn plain(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}
