//! The names of the columns that a table, a subquery or a join gives, as far as they can be told from the syntax tree and
//! the catalog: what `*` stands for.
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Cte, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, Value,
    WildcardAdditionalOptions,
};

use engine::DataType;
use engine::name_in_schema;

use crate::functions::{columns_of, has_columns};
use crate::names::headings::heading;
use crate::names::made_functions;
use crate::names::tables::{CATALOG, SCHEMA, Tables};
use crate::semantics::operations::merged::Side;
use crate::semantics::spelling::spellings::calling_quoted;
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::visit::constraint_mut;

/// One column of what stands in FROM.
#[derive(Clone)]
pub(crate) struct Output {
    pub(crate) name: String,
    /// How it is written, whatever else has this name.
    pub(crate) expr: Expr,
    /// Whether `USING` or `NATURAL` made one of two.
    pub(crate) is_merged: bool,
    /// Its type, if it is a column of a table.
    pub(crate) data_type: Option<DataType>,
}

impl Output {
    /// It as a column of a select list.
    pub(crate) fn item(&self) -> SelectItem {
        match &self.expr {
            expr @ Expr::CompoundIdentifier(_) => SelectItem::UnnamedExpr(expr.clone()),
            expr => SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', &self.name) },
        }
    }

    /// All columns of a table, which a statement calls by the name beside it.
    pub(crate) fn all_of(label: &str, table: &engine::Table) -> Vec<Output> {
        let columns = table.schema().columns().iter();
        columns.map(|column| Output::of(label, &column.name, Some(column.data_type))).collect()
    }

    /// A column of what a statement calls by the name before it.
    pub(crate) fn of(label: &str, column: &str, data_type: Option<DataType>) -> Output {
        let parts = [label, column].map(|part| Ident::with_quote('"', part));
        Output { name: column.to_owned(), expr: Expr::CompoundIdentifier(parts.into()), is_merged: false, data_type }
    }
}

/// The names that are known at a place of a statement.
pub(crate) struct Scope<'a> {
    tables: &'a Tables,
    /// The queries of `WITH` and their columns, the innermost last.
    named: Vec<(String, Option<Vec<String>>)>,
    /// How many of them each query has.
    frames: Vec<usize>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(tables: &'a Tables) -> Scope<'a> {
        Scope { tables, named: Vec::new(), frames: Vec::new() }
    }

    /// Goes into a query of whose WITH nothing is known yet.
    pub(crate) fn begin(&mut self) {
        self.frames.push(0);
    }

    /// Makes a query of WITH known; its columns, too, unless it is the query itself that is looked at.
    pub(crate) fn add(&mut self, cte: &Cte, knows_columns: bool) {
        let columns = if knows_columns { renamed(self.query(&cte.query), Some(&cte.alias)) } else { None };
        self.named.push((fold(&cte.alias.name), columns));
        if let Some(count) = self.frames.last_mut() {
            *count += 1;
        }
    }

    /// Goes into a query: what its WITH names is known from here on.
    pub(crate) fn enter(&mut self, query: &Query) {
        let before = self.named.len();
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let columns = renamed(self.query(&cte.query), Some(&cte.alias));
            self.named.push((fold(&cte.alias.name), columns));
        }
        self.frames.push(self.named.len() - before);
    }

    /// Comes out of the query that was entered last.
    pub(crate) fn leave(&mut self) {
        let count = self.frames.pop().unwrap_or(0);
        self.named.truncate(self.named.len() - count);
    }

    /// The table of the catalog that a name means here.
    pub(crate) fn table(&self, name: &ObjectName) -> Option<engine::Table> {
        let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
        let table = match parts?.as_slice() {
            [table] if self.named.iter().any(|(name, _)| name == table) => return None,
            [table] => table.clone(),
            [schema, table] if schema == SCHEMA => table.clone(),
            [catalog, schema, table] if catalog == CATALOG && schema == SCHEMA => table.clone(),
            [schema, table] if !schema.starts_with('\0') => name_in_schema(schema, table),
            _ => return None,
        };
        self.tables.find(&table).ok()
    }

    fn query(&mut self, query: &Query) -> Option<Vec<String>> {
        self.enter(query);
        let columns = self.body(&query.body);
        self.leave();
        columns
    }

    fn body(&mut self, body: &SetExpr) -> Option<Vec<String>> {
        match body {
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, .. } => self.body(left),
            SetExpr::Values(values) => {
                let width = values.rows.first()?.len();
                Some((1..=width).map(|at| format!("column{at}")).collect())
            }
            SetExpr::Select(select) => {
                let mut columns = Vec::new();
                for item in &select.projection {
                    match item {
                        SelectItem::UnnamedExpr(expr) => {
                            columns.push(column_name(expr).or_else(|| heading(expr)).unwrap_or_else(unnamed));
                        }
                        SelectItem::ExprWithAlias { alias, .. } => columns.push(fold(alias)),
                        SelectItem::Wildcard(_) => {
                            for table in &select.from {
                                columns.extend(self.joined(table)?.into_iter().map(|output| output.name));
                            }
                        }
                        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                            let [ObjectNamePart::Identifier(label)] = &name.0[..] else { return None };
                            let all = select.from.iter().map(|table| self.labelled(table, &fold(label)));
                            columns.extend(all.collect::<Vec<_>>().into_iter().flatten().next()?);
                        }
                        _ => return None,
                    }
                }
                Some(columns)
            }
            _ => None,
        }
    }

    /// The columns of one item of FROM, by its label.
    fn labelled(&mut self, table: &TableWithJoins, wanted: &str) -> Option<Vec<String>> {
        let factors = std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation));
        factors.into_iter().find_map(|factor| match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => self.labelled(table_with_joins, wanted),
            other if label(other).is_some_and(|label| fold(&label) == wanted) => {
                Some(self.factor(other)?.into_iter().map(|output| output.name).collect())
            }
            _ => None,
        })
    }

    /// The columns of an item of FROM.
    pub(crate) fn factor(&mut self, factor: &TableFactor) -> Option<Vec<Output>> {
        let columns = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let last = name.0.last().and_then(ObjectNamePart::as_ident)?;
                let known = match &name.0[..] {
                    [_] => self.named.iter().rev().find(|(known, _)| *known == fold(last)),
                    _ => None,
                };
                let columns = match known {
                    Some((_, columns)) => columns.clone(),
                    None => {
                        let table = self.table(name)?;
                        Some(table.schema().columns().iter().map(|column| column.name.clone()).collect())
                    }
                };
                renamed(columns, alias.as_ref())?
            }
            TableFactor::Table { name, alias: Some(alias), args: Some(args), with_ordinality, .. } => {
                self.of_call(name, args.args.len(), Some(alias), *with_ordinality)?
            }
            TableFactor::Derived { subquery, alias: Some(alias), .. } => renamed(self.query(subquery), Some(alias))?,
            TableFactor::NestedJoin { table_with_joins, alias: None } => return self.joined(table_with_joins),
            _ => return None,
        };
        let label = label(factor)?;
        let output = |name: String| {
            let expr = Expr::CompoundIdentifier(vec![label.clone(), Ident::with_quote('"', &name)]);
            Output { name, expr, is_merged: false, data_type: None }
        };
        let mut outputs: Vec<Output> = columns.into_iter().map(output).collect();
        if let TableFactor::Table { name, args: None, .. } = factor
            && let Some(table) = self.table(name)
        {
            for (output, column) in outputs.iter_mut().zip(table.schema().columns()) {
                output.data_type = Some(column.data_type);
            }
        }
        Some(outputs)
    }

    /// The columns of a call in FROM of a function with so many arguments.
    pub(crate) fn of_call(
        &self,
        name: &ObjectName,
        arguments: usize,
        alias: Option<&TableAlias>,
        is_numbered: bool,
    ) -> Option<Vec<String>> {
        let function = fold(name.0.last().and_then(ObjectNamePart::as_ident)?);
        let own = alias.map_or_else(|| function.clone(), |alias| fold(&alias.name));
        let mut columns = match made_functions::columns_of_call(&function, &own, self.tables) {
            Some(of_made) => of_made?,
            None if has_columns(&function) => return None,
            None => match columns_of(&function) {
                Some((_, names)) if names[0] != function => names.iter().map(|name| (*name).to_owned()).collect(),
                _ if function == "unnest" && arguments > 1 => vec![function; arguments],
                // The one column is called like what the function gives.
                _ => vec![own],
            },
        };
        columns.extend(is_numbered.then(|| "ordinality".to_owned()));
        renamed(Some(columns), alias)
    }

    /// The columns of a table and what is joined to it, as `*` has them: first those that a join merges.
    pub(crate) fn joined(&mut self, table: &TableWithJoins) -> Option<Vec<Output>> {
        let mut outputs = self.factor(&table.relation)?;
        for join in &table.joins {
            let right = self.factor(&join.relation)?;
            outputs = match merged_names(&join.join_operator, &outputs, &right) {
                None => outputs.into_iter().chain(right).collect(),
                Some(names) => merge(&join.join_operator, &names, outputs, right)?.0,
            };
        }
        Some(outputs)
    }

    /// Writes out the stars among what a query selects, where all columns that they stand for are known.
    pub(crate) fn write_out_stars(&mut self, select: &mut Select) {
        let mut items = Vec::with_capacity(select.projection.len());
        for item in &select.projection {
            let outputs = match item {
                SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                    let all: Option<Vec<_>> = select.from.iter().map(|table| self.joined(table)).collect();
                    all.map(|all| all.into_iter().flatten().collect::<Vec<Output>>())
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let label = last_part(name).unwrap_or_default();
                    let columns = select.from.iter().find_map(|table| self.labelled(table, &label));
                    columns.map(|columns| columns.iter().map(|column| Output::of(&label, column, None)).collect())
                }
                other => {
                    items.push(other.clone());
                    continue;
                }
            };
            let Some(outputs) = outputs else { return };
            items.extend(outputs.iter().map(Output::item));
        }
        select.projection = items;
    }

    /// Writes every join of columns by name as one by a condition.
    pub(crate) fn spell_out(&mut self, table: &mut TableWithJoins) -> Option<Vec<Output>> {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = &mut table.relation {
            self.spell_out(table_with_joins)?;
        }
        // Columns merged within parentheses have been written as a condition, so that it is looked at before.
        let mut outputs = self.factor(&table.relation)?;
        for join in &mut table.joins {
            let right = self.factor(&join.relation)?;
            outputs = match merged_names(&join.join_operator, &outputs, &right) {
                None => outputs.into_iter().chain(right).collect(),
                Some(names) => {
                    let (outputs, condition) = merge(&join.join_operator, &names, outputs, right)?;
                    if let Some(constraint) = constraint_mut(&mut join.join_operator) {
                        *constraint = JoinConstraint::On(condition);
                    }
                    outputs
                }
            };
        }
        Some(outputs)
    }
}

/// What an item of FROM is called.
pub(crate) fn label(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, args: None, .. } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

/// The name of a column that stands by itself, hidden or not.
fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(fold(ident)),
        Expr::CompoundIdentifier(parts) => parts.last().map(fold),
        _ => None,
    }
}

fn unnamed() -> String {
    "?column?".to_owned()
}

/// Columns under the names of an alias.
fn renamed(columns: Option<Vec<String>>, alias: Option<&TableAlias>) -> Option<Vec<String>> {
    let names: Vec<String> = alias.iter().flat_map(|alias| &alias.columns).map(|column| fold(&column.name)).collect();
    match columns {
        Some(columns) => {
            let rest = columns.into_iter().skip(names.len()).collect::<Vec<_>>();
            Some(names.into_iter().chain(rest).collect())
        }
        None => None,
    }
}

/// What a join is on, if it may say so.
pub(crate) fn constraint(join: &JoinOperator) -> Option<&JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// Whether a join may have no row of its left side, and of its right side.
pub(crate) fn sides_that_miss(join: &JoinOperator) -> (bool, bool) {
    match join {
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
        JoinOperator::FullOuter(_) => (true, true),
        _ => (false, false),
    }
}

/// Whether a join merges columns of both sides.
pub(crate) fn merges(join: &JoinOperator) -> bool {
    matches!(constraint(join), Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
}

/// Whether a merged column would be that of the table that may have no row, which is what the planner takes.
pub(crate) fn merges_from_the_right(join: &JoinOperator) -> bool {
    let is_right = matches!(join, JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_));
    is_right && merges(join)
}

/// The columns that a `NATURAL` join merges; `None` of another join, and where they are not known.
pub(crate) fn natural_names(
    join: &JoinOperator,
    scope: &mut Scope<'_>,
    left: &TableWithJoins,
    right: &TableFactor,
) -> Option<Vec<String>> {
    match constraint(join)? {
        JoinConstraint::Natural => merged_names(join, &scope.joined(left)?, &scope.factor(right)?),
        _ => None,
    }
}

fn merged_names(join: &JoinOperator, left: &[Output], right: &[Output]) -> Option<Vec<String>> {
    match constraint(join)? {
        JoinConstraint::Using(names) => Some(names.iter().filter_map(last_part).collect()),
        JoinConstraint::Natural => {
            let is_common = |output: &&Output| right.iter().any(|other| other.name == output.name);
            Some(left.iter().filter(is_common).map(|output| output.name.clone()).collect())
        }
        _ => None,
    }
}

/// The columns of both sides, those of these names merged, and the condition that they are equal. `None` where a side has
/// not just one column of a name, which the planner reports.
fn merge(
    join: &JoinOperator,
    names: &[String],
    mut left: Vec<Output>,
    mut right: Vec<Output>,
) -> Option<(Vec<Output>, Expr)> {
    let mut merged = Vec::with_capacity(names.len());
    let mut condition: Option<Expr> = None;
    for name in names {
        let (first, second) = (take(&mut left, name)?, take(&mut right, name)?);
        let equal = merged_of(Side::Equal, first.expr.clone(), second.expr.clone());
        condition = Some(match condition {
            None => equal,
            Some(before) => operation(before, BinaryOperator::And, equal),
        });
        let types = first.data_type.zip(second.data_type);
        let (first, second) = (first.expr, second.expr);
        let expr = match join {
            JoinOperator::FullOuter(_) => merged_of(Side::Either, first, second),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => merged_of(Side::Right, first, second),
            _ if types.is_some_and(|(left, right)| left != right) => merged_of(Side::Left, first, second),
            _ => first,
        };
        let data_type = types.filter(|(left, right)| left == right).map(|(left, _)| left);
        merged.push(Output { name: name.clone(), expr, is_merged: true, data_type });
    }
    let condition = condition.unwrap_or_else(|| Expr::value(Value::Boolean(true)));
    Some((merged.into_iter().chain(left).chain(right).collect(), condition))
}

fn take(outputs: &mut Vec<Output>, name: &str) -> Option<Output> {
    let at = outputs.iter().position(|output| output.name == name)?;
    let found = outputs.remove(at);
    (!outputs.iter().any(|output| output.name == name)).then_some(found)
}

fn operation(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// The column that both sides have.
fn merged_of(side: Side, left: Expr, right: Expr) -> Expr {
    calling_quoted(side.function(), vec![left, right])
}
