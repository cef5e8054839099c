//! The types of parameters that were not declared: those that PostgreSQL would give them.
//!
//! A parameter takes the type of what it stands beside (`column = $1`, `column + $1`, `column IN ($1, ...)`, `BETWEEN`), of
//! the column that it goes to (`VALUES ($1)`, `SET column = $1`), of its cast (`$1::date`), `bigint` as a number of rows,
//! and `text` elsewhere. Expressions are looked at without a planner first: names are those of the tables in the statement.
//! Where that does not tell what stands beside a parameter, the planner is asked (`asked`). What is not known even then
//! leaves a parameter a text, which the planner then reads as the type of what it meets.
pub(crate) mod asked;
mod beside;
mod calls;
mod changes;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, LimitClause, ObjectName,
    ObjectNamePart, Query, Select, Statement, TableFactor, TableWithJoins, UnaryOperator, Value as SqlValue,
    ValueWithSpan, Visitor, VisitorMut,
};
use engine::{ArrayItem, DataType, Schema};

use self::asked::{Around, Ask, Known};
use self::beside::{
    asks_parts, beside_bits, beside_document, beside_space, beside_time, is_arithmetic, is_comparison, is_number,
    is_space, is_time, is_whole, wider,
};
use crate::error::{Result, SqlError};
use crate::interrupt;
use crate::names::tables::Tables;
use crate::names::{fold, table_name};
use crate::parsing::ParsedStatement;
use crate::semantics::spelling::array_literals::item_type;
use crate::session::conflict_targets;
use crate::syntax::identifiers::last_part;
use crate::syntax::parameter::number_of;
use crate::syntax::source::Source;
use crate::syntax::walk::{Walk, WalkMut, walk_expressions};
use crate::values::types::column_type;

/// How many parameters a statement may have, as in PostgreSQL's protocol.
pub(crate) const PARAMETERS_MAX: usize = 65_535;

/// How many parameters a statement has: as many as the largest number says.
pub(crate) fn count(parsed: &mut ParsedStatement, source: &Source) -> Result<usize> {
    struct Count<'a> {
        largest: usize,
        source: &'a Source<'a>,
    }
    impl VisitorMut for Count<'_> {
        type Break = SqlError;

        fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<SqlError> {
            let Statement::Insert(insert) = statement else { return ControlFlow::Continue(()) };
            conflict_targets::expressions(insert).iter_mut().try_for_each(|expr| expr.walk_mut(self))
        }

        fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<SqlError> {
            may_go_on()?;
            let SqlValue::Placeholder(name) = &value.value else { return ControlFlow::Continue(()) };
            match number_of(&value.value).filter(|at| *at < PARAMETERS_MAX) {
                Some(at) => {
                    self.largest = self.largest.max(at + 1);
                    ControlFlow::Continue(())
                }
                None => {
                    let error = SqlError::new("42P02", format!("there is no parameter {name}"));
                    ControlFlow::Break(error.at(self.source.start(value.span)))
                }
            }
        }
    }
    let mut count = Count { largest: 0, source };
    let visited = match parsed {
        ParsedStatement::Statement(statement) | ParsedStatement::Composed(statement, _) => {
            statement.walk_mut(&mut count)
        }
        other => other.query_mut().map_or(ControlFlow::Continue(()), |query| query.walk_mut(&mut count)),
    };
    match visited {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(count.largest),
    }
}

/// The types of all parameters, and of their items for those that are arrays, which travel as text; `known` are the types that
/// were given.
pub(crate) fn types(
    parsed: &ParsedStatement,
    tables: &Tables,
    known: Vec<Option<DataType>>,
    ask: Ask<'_>,
) -> Result<(Vec<DataType>, Vec<Option<DataType>>)> {
    let items = vec![None; known.len()];
    let mut finder = Finder::new(tables, known, items, ask);
    // Twice each, as what one place says may tell what stands beside it in another.
    for asking in [Asking::Nothing, Asking::Nothing, Asking::Known, Asking::Known, Asking::All] {
        if finder.types.iter().any(Option::is_none) {
            finder.asking = asking;
            finder.around.clear();
            finder.scope.clear();
            finder.queries.clear();
            finder.operators.take();
            let visited = match parsed {
                ParsedStatement::Statement(statement) | ParsedStatement::Composed(statement, _) => {
                    statement.walk(&mut finder)
                }
                other => other.query().map_or(ControlFlow::Continue(()), |query| query.walk(&mut finder)),
            };
            if let ControlFlow::Break(error) = visited {
                return Err(error);
            }
        }
    }
    let types = finder.types.into_iter().map(|data_type| data_type.unwrap_or(DataType::TEXT));
    Ok((types.collect(), finder.items))
}

/// Stops a walk through a statement that is to stop.
pub(crate) fn may_go_on() -> ControlFlow<SqlError> {
    interrupt::check().map_or_else(ControlFlow::Break, ControlFlow::Continue)
}

/// What the planner is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    Nothing,
    /// Expressions without parameters whose types are not known.
    Known,
    All,
}

struct Finder<'a> {
    tables: &'a Tables,
    ask: Ask<'a>,
    asking: Asking,
    /// The queries that the walk is in, the innermost last; noted while the planner is asked.
    around: Vec<Around>,
    /// The tables that were met so far, each under the name by which its columns may be called.
    scope: Vec<(String, Arc<Schema>)>,
    /// Where the tables of each query begin that the walk is in.
    queries: Vec<usize>,
    types: Vec<Option<DataType>>,
    /// The types of the items of those that are arrays.
    items: Vec<Option<DataType>>,
    /// The types of operators and calls by where they lie, as far as they were looked at in this walk: each is asked for once by
    /// each operator around it.
    operators: RefCell<HashMap<*const Expr, Option<DataType>>>,
    /// How many types were worked out.
    #[cfg(test)]
    steps: std::cell::Cell<usize>,
}

impl<'a> Finder<'a> {
    fn new(tables: &'a Tables, types: Vec<Option<DataType>>, items: Vec<Option<DataType>>, ask: Ask<'a>) -> Finder<'a> {
        Finder {
            tables,
            ask,
            asking: Asking::Nothing,
            around: Vec::new(),
            scope: Vec::new(),
            queries: Vec::new(),
            types,
            items,
            operators: RefCell::default(),
            #[cfg(test)]
            steps: Default::default(),
        }
    }

    fn schema(&self, name: &ObjectName) -> Option<Arc<Schema>> {
        let name = table_name(name, &Source::new("")).ok()?;
        self.tables.find(&name).ok().map(|table| table.schema().clone())
    }

    fn enter(&mut self, factor: &TableFactor) {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
        let Some(schema) = self.schema(name) else { return };
        let last = name.0.last().and_then(ObjectNamePart::as_ident);
        let shown = alias.as_ref().map(|alias| &alias.name).or(last).map(fold).unwrap_or_default();
        let begin = self.queries.last().copied().unwrap_or_default();
        if !self.scope[begin..].iter().any(|(known, _)| *known == shown) {
            self.scope.push((shown, schema));
        }
    }

    fn enter_all(&mut self, tables: &[TableWithJoins]) {
        for table in tables {
            self.enter(&table.relation);
            table.joins.iter().for_each(|join| self.enter(&join.relation));
        }
    }

    /// The type of a column, of the table that is named or the newest that has one of that name.
    fn column(&self, table: Option<&Ident>, column: &Ident) -> Option<DataType> {
        let (table, column) = (table.map(fold), fold(column));
        let mut scopes = self.scope.iter().rev().filter(|(name, _)| table.as_ref().is_none_or(|table| table == name));
        scopes.find_map(|(_, schema)| schema.position(&column).map(|at| schema.columns()[at].data_type))
    }

    /// The type of an expression as far as it can be seen.
    fn type_of(&self, expr: &Expr) -> Option<DataType> {
        let is_operator = match expr {
            Expr::BinaryOp { op, .. } => is_arithmetic(op),
            Expr::Function(_) => true,
            _ => false,
        };
        if let Some(known) = self.operators.borrow().get(&std::ptr::from_ref(expr)).filter(|_| is_operator) {
            return *known;
        }
        let found = self.type_by_parts(expr);
        if is_operator {
            self.operators.borrow_mut().insert(std::ptr::from_ref(expr), found);
        }
        found
    }

    fn type_by_parts(&self, expr: &Expr) -> Option<DataType> {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
        match expr {
            Expr::Identifier(column) => self.column(None, column),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [.., table, column] => self.column(Some(table), column),
                _ => None,
            },
            Expr::Value(value) => match &value.value {
                SqlValue::Number(text, _) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                    Some(if text.parse::<i32>().is_ok() { DataType::Integer } else { DataType::BigInt })
                }
                SqlValue::Number(..) => Some(DataType::Numeric),
                SqlValue::Boolean(_) => Some(DataType::Boolean),
                other => *self.types.get(number_of(other)?)?,
            },
            Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } => {
                self.type_of(inner)
            }
            Expr::Cast { data_type, .. } => column_type(data_type).ok().map(|(data_type, _)| data_type),
            Expr::TypedString(typed) => column_type(&typed.data_type).ok().map(|(data_type, _)| data_type),
            Expr::BinaryOp { left, op, right } if is_arithmetic(op) => {
                let (left, right) = (self.type_of(left), self.type_of(right));
                if is_time(left) || is_time(right) { None } else { wider(left, right) }
            }
            Expr::BinaryOp { left, op: BinaryOperator::Arrow | BinaryOperator::HashArrow, .. } => {
                self.type_of(left).filter(|data_type| *data_type == DataType::Jsonb)
            }
            Expr::BinaryOp { op: BinaryOperator::LongArrow | BinaryOperator::HashLongArrow, .. } => {
                Some(DataType::TEXT)
            }
            Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
                let (left, right) = (self.type_of(left), self.type_of(right));
                Some(left.or(right).filter(|data_type| is_whole(*data_type)).unwrap_or(DataType::TEXT))
            }
            Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) if takes_one_of(name) => {
                list.args.iter().filter_map(plain_argument).find_map(|arg| self.type_of(arg))
            }
            _ => None,
        }
    }

    /// The type of an expression that stands beside one of `others`: the planner is asked if one of those waits for it.
    fn type_beside<'e>(&self, expr: &Expr, others: impl IntoIterator<Item = &'e Expr>) -> Option<DataType> {
        let seen = self.type_of(expr);
        if seen.is_some() || self.asking == Asking::Nothing || !others.into_iter().any(|other| self.is_open(other)) {
            return seen;
        }
        let is_open = |part: &Expr| match self.is_open(part) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        if self.is_open(expr) || self.asking == Asking::Known && walk_expressions(expr, is_open).is_break() {
            return None;
        }
        let types = self.types.iter().map(|data_type| data_type.unwrap_or(DataType::TEXT)).collect();
        asked::ask(expr, &self.around, &Known { types, items: self.items.clone() }, self.ask)
    }

    /// Whether an expression is a parameter that nothing is known of yet.
    fn is_open(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Value(value) => number_of(&value.value).is_some_and(|at| self.types.get(at) == Some(&None)),
            Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } => {
                self.is_open(inner)
            }
            _ => false,
        }
    }

    /// A parameter that nothing is known of yet gets a type.
    fn set(&mut self, expr: &Expr, data_type: Option<DataType>) {
        match expr {
            Expr::Value(value) => {
                if let Some(at) = number_of(&value.value)
                    && let Some(known) = self.types.get_mut(at)
                {
                    *known = known.or(data_type.map(plain));
                }
            }
            Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } => {
                self.set(inner, data_type);
            }
            _ => {}
        }
    }

    /// Values of which one is taken are of one type.
    fn set_alike<'e>(&mut self, values: impl Iterator<Item = &'e Expr> + Clone) {
        let known = values.clone().find_map(|value| self.type_beside(value, values.clone()));
        values.for_each(|value| self.set(value, known));
    }

    /// Parameters of a series are of the type of what else is known of it.
    fn set_series(&mut self, name: &ObjectName, args: &[FunctionArg]) {
        if name.0.last().and_then(ObjectNamePart::as_ident).is_none_or(|name| fold(name) != "generate_series") {
            return;
        }
        let args: Vec<&Expr> = args.iter().filter_map(plain_argument).collect();
        let known = args.iter().find_map(|arg| self.type_of(arg));
        // The step between times is no time.
        let ends = if is_time(known) { 2 } else { 3 };
        for arg in args.iter().take(ends) {
            self.set(arg, known.or(Some(DataType::Integer)));
        }
    }

    /// Parameters of a call of a user's function are of the types of its arguments, where all functions that it may mean agree.
    fn set_call(&mut self, name: &ObjectName, args: &[FunctionArg]) {
        let Some(name) = last_part(name).filter(|_| engine::has_made_functions()) else { return };
        let mut functions = interrupt::made_types::functions();
        functions.retain(|function| function.name == name && function.definition.arguments.len() >= args.len());
        for (at, arg) in args.iter().enumerate() {
            let mut types = functions.iter().map(|function| function.definition.arguments[at].data_type);
            let first = types.next();
            if let Some(arg) = plain_argument(arg)
                && types.all(|other| Some(other) == first)
            {
                self.set(arg, first);
            }
        }
    }

    /// A parameter that nothing is known of yet is an array.
    fn set_array(&mut self, expr: &Expr, item: Option<DataType>) {
        match expr {
            Expr::Value(value) => {
                if let (Some(at), Some(item)) = (number_of(&value.value), item)
                    && let (Some(known @ None), Some(items)) = (self.types.get_mut(at), self.items.get_mut(at))
                {
                    *known = Some(DataType::TEXT);
                    *items = Some(plain(item));
                }
            }
            Expr::Nested(inner) => self.set_array(inner, item),
            _ => {}
        }
    }

    /// Looks at the operands of an operator.
    fn set_operands(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) {
        use BinaryOperator::{And, Or, PGBitwiseShiftLeft, PGBitwiseShiftRight};

        match op {
            _ if asks_parts(op) => self.set_parts(left, op, right),
            _ if is_comparison(op) => self.set_compared(left, right),
            _ if is_space(self.type_of(left)) || is_space(self.type_of(right)) => {
                let (of_left, of_right) = (self.type_of(left), self.type_of(right));
                self.set(left, beside_space(op, of_right));
                self.set(right, beside_space(op, of_left));
            }
            _ if is_arithmetic(op) => {
                let (of_left, of_right) = (self.type_beside(left, [right]), self.type_beside(right, [left]));
                self.set(left, beside_time(op, of_right, false));
                self.set(right, beside_time(op, of_left, true));
            }
            _ if beside_bits(op) => self.set_each_other(left, right),
            PGBitwiseShiftLeft | PGBitwiseShiftRight => {
                let is_shift = self.type_beside(left, [right]).is_some_and(is_number);
                self.set(right, is_shift.then_some(DataType::Integer));
            }
            And | Or => {
                self.set(left, Some(DataType::Boolean));
                self.set(right, Some(DataType::Boolean));
            }
            _ => {}
        }
    }

    /// Operands of an operator that asks for parts of a document or an array.
    fn set_parts(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) {
        let of_left = self.type_of(left);
        match beside_document(op) {
            Some(of_right) if of_left == Some(DataType::Jsonb) => self.set(right, Some(of_right)),
            _ if of_left.is_some_and(is_whole) => self.set(right, of_left),
            _ => self.set(left, self.type_of(right).filter(|data_type| is_whole(*data_type))),
        }
    }

    /// Of rows the values in their places are compared.
    fn set_compared(&mut self, left: &Expr, right: &Expr) {
        match (left, right) {
            (Expr::Tuple(left), Expr::Tuple(right)) => {
                left.iter().zip(right).for_each(|(left, right)| self.set_each_other(left, right));
            }
            _ => self.set_each_other(left, right),
        }
    }

    fn set_each_other(&mut self, left: &Expr, right: &Expr) {
        let (of_left, of_right) = (self.type_beside(left, [right]), self.type_beside(right, [left]));
        self.set(left, of_right);
        self.set(right, of_left);
    }
}

/// A text is a text of any length, and a number one of any scale.
fn plain(data_type: DataType) -> DataType {
    match data_type {
        DataType::CITEXT | DataType::HSTORE => data_type,
        DataType::Text { .. } | DataType::Char { .. } => DataType::TEXT,
        DataType::Decimal { .. } => DataType::Numeric,
        DataType::TimeDigits { of, .. } => of.whole(),
        DataType::Array(ArrayItem::Decimal { .. }) => DataType::Array(ArrayItem::Decimal { precision: 38, scale: 10 }),
        DataType::Array(item) => ArrayItem::of(plain(item.data_type())).map_or(data_type, DataType::Array),
        other => other,
    }
}

fn plain_argument(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// Whether a function gives one of its arguments.
fn takes_one_of(name: &ObjectName) -> bool {
    let name = last_part(name);
    name.is_some_and(|name| ["coalesce", "greatest", "least", "nullif"].contains(&name.as_str()))
}

impl Visitor for Finder<'_> {
    type Break = SqlError;

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<SqlError> {
        if self.asking != Asking::Nothing {
            self.around.extend(Around::of_change(statement));
        }
        self.statement(statement);
        ControlFlow::Continue(())
    }

    /// A part of a set operation knows nothing of the tables of those before it.
    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
        self.scope.truncate(self.queries.last().copied().unwrap_or_default());
        self.enter_all(&select.from);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<SqlError> {
        self.scope.truncate(self.queries.pop().unwrap_or_default());
        if self.asking != Asking::Nothing {
            self.around.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<SqlError> {
        self.enter(factor);
        if let TableFactor::Table { name, args: Some(args), .. } = factor {
            self.set_series(name, &args.args);
            self.set_call(name, &args.args);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        if self.asking != Asking::Nothing {
            self.around.push(Around::of_query(query));
        }
        self.queries.push(self.scope.len());
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            let counts = limit.iter().chain(offset.iter().map(|offset| &offset.value));
            counts.for_each(|expr| self.set(expr, Some(DataType::BigInt)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        may_go_on()?;
        match expr {
            Expr::Cast { expr, data_type, .. } if let Some(item) = item_type(data_type) => {
                let item = column_type(&item).map_or(DataType::BigInt, |(item, _)| item);
                self.set_array(expr, Some(item));
            }
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => {
                if let Some(DataType::Array(item)) = self.type_beside(right, [&**left]) {
                    self.set(left, Some(item.data_type()));
                }
                let item = self.type_beside(left, [&**right]);
                self.set_array(right, item);
            }
            Expr::Cast { expr, data_type, .. } => {
                let data_type = column_type(data_type).ok().map(|(data_type, _)| data_type);
                self.set(expr, data_type);
            }
            Expr::BinaryOp { left, op, right } => self.set_operands(left, op, right),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.set(expr, Some(DataType::Boolean)),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.set_each_other(left, right)
            }
            Expr::Between { expr, low, high, .. } => {
                self.set_each_other(expr, low);
                self.set_each_other(expr, high);
            }
            Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
                self.set_series(name, &list.args);
                self.set_call(name, &list.args);
                self.set_known_call(name, &list.args);
                if takes_one_of(name) {
                    self.set_alike(list.args.iter().filter_map(plain_argument));
                }
            }
            Expr::Substring { substring_from, substring_for, shorthand: true, .. } => {
                let places = substring_from.iter().chain(substring_for);
                places.for_each(|place| self.set(place, Some(DataType::Integer)));
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                let tested = conditions.iter().map(|when| &when.condition);
                if let Some(operand) = operand {
                    self.set_alike(tested.chain([&**operand]));
                }
                let results = conditions.iter().map(|when| &when.result);
                self.set_alike(results.chain(else_result.as_deref()));
            }
            Expr::InList { expr, list, .. } => list.iter().for_each(|item| self.set_compared(expr, item)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use engine::Database;

    use super::*;
    use crate::parsing::parse::parse;

    #[test]
    fn the_steps_of_finding_types_grow_with_the_length_of_a_statement() {
        let tables = Tables::published(&Database::in_memory());
        let steps = |depth: usize| {
            let text = format!("SELECT 1 + 2 * $1{}", " + $2 - 3".repeat(depth));
            let Ok(ParsedStatement::Statement(statement)) = parse(&text) else { panic!("{text} is no statement") };
            let mut finder = Finder::new(&tables, vec![None; 2], vec![None; 2], &|_, _| None);
            let _ = statement.walk(&mut finder);
            assert_eq!(finder.types, [Some(DataType::Integer); 2]);
            finder.steps.get()
        };
        let few = steps(50);
        assert!(steps(500) <= 11 * few, "{few} and {}", steps(500));
    }
}
