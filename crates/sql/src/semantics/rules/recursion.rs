//! `WITH RECURSIVE`: what PostgreSQL refuses in a recursive query, which would go on for ever here or give other rows; and
//! items in an order in which each stands behind those that it names.
use std::ops::ControlFlow;

use arrow_schema::DataType as ArrowType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::logical_plan::RecursiveQuery;
use datafusion::logical_expr::{Expr as PlanExpr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, Join, JoinOperator, LimitClause, ObjectNamePart, Query, Select, SetExpr, SetOperator,
    SetQuantifier, Statement, TableFactor, TableWithJoins, Visit, Visitor, VisitorMut, With,
};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::walk::{Walk, WalkMut, WalkPlan};
use crate::values::numerics::is_numeric;
use crate::values::types::type_name;

/// Checks the recursive queries of a statement; `is_aggregate` knows the names of aggregate functions.
pub(crate) fn check(statement: &mut Statement, source: &Source, is_aggregate: &dyn Fn(&str) -> bool) -> Result<()> {
    match statement.walk_mut(&mut Queries { source, is_aggregate }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Queries<'a> {
    source: &'a Source<'a>,
    is_aggregate: &'a dyn Fn(&str) -> bool,
}

impl VisitorMut for Queries<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return ControlFlow::Continue(()) };
        match order(with).and_then(|()| with.cte_tables.iter_mut().try_for_each(|cte| self.prepare(cte))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

/// The recursive term as a table of its own, so that the casts which the planner puts above it are known from the user's.
fn wrap(term: &mut SetExpr) -> Result<()> {
    let text = format!("SELECT * FROM (SELECT 1) AS \"{TERM}\"");
    let mut outer = template(&text)?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|table| &mut table.relation)
    {
        *subquery.body = std::mem::replace(term, SetExpr::Query(template("SELECT 1")?));
    }
    *term = *outer.body;
    Ok(())
}

/// The name of that table; no statement can spell it.
const TERM: &str = "\0term";

/// Refuses recursive queries with values in the recursive term that the other term's type does not hold: the
/// planner casts them.
#[derive(Debug)]
pub(crate) struct RecursiveTypes;

impl AnalyzerRule for RecursiveTypes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan, DataFusionError> {
        plan.look_with_subqueries(|node| match node {
            LogicalPlan::RecursiveQuery(query) => check_types(query).map(|()| TreeNodeRecursion::Continue),
            _ => Ok(TreeNodeRecursion::Continue),
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "recursive_types"
    }
}

fn check_types(query: &RecursiveQuery) -> Result<(), DataFusionError> {
    let LogicalPlan::Projection(term) = query.recursive_term.as_ref() else { return Ok(()) };
    for (at, expr) in term.expr.iter().enumerate() {
        let expr = if let PlanExpr::Alias(alias) = expr { alias.expr.as_ref() } else { expr };
        let PlanExpr::Cast(cast) = expr else { continue };
        let (to, from) = (cast.field.data_type(), cast.expr.get_type(term.input.schema())?);
        if rank(&from) > rank(to) {
            let (name, column) = (&query.name, at + 1);
            let (to, from) = (type_name(to), type_name(&from));
            let message = format!(
                "recursive query \"{name}\" column {column} has type {to} in non-recursive term but type {from} overall"
            );
            let hint = "Cast the output of the non-recursive term to the correct type.";
            return Err(DataFusionError::External(Box::new(SqlError::new("42804", message).hint(hint))));
        }
    }
    Ok(())
}

/// Which numbers hold the others.
fn rank(data_type: &ArrowType) -> u8 {
    match data_type {
        _ if data_type.is_floating() => 3,
        _ if data_type.is_decimal() || is_numeric(data_type) => 2,
        _ if data_type.is_integer() => 1,
        _ => 0,
    }
}

/// Puts the items of a list behind those that they name.
fn order(with: &mut With) -> Result<()> {
    let mut waiting = std::mem::take(&mut with.cte_tables);
    while !waiting.is_empty() {
        let is_free = |cte: &Cte| {
            waiting
                .iter()
                .all(|other| other.alias.name == cte.alias.name || !names(&cte.query, &fold(&other.alias.name)))
        };
        let Some(next) = waiting.iter().position(is_free) else {
            return Err(SqlError::new("0A000", "mutual recursion between WITH items is not implemented"));
        };
        with.cte_tables.push(waiting.remove(next));
    }
    Ok(())
}

/// Whether a query names a table so.
fn names(query: &Query, name: &str) -> bool {
    let mut found = References { name, found: 0 };
    found.query(query, Within::Plain, &mut |_, _, _| Ok(())).is_ok() && found.found > 0
}

/// Where a reference stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Plain,
    Static,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

impl Within {
    fn words(self) -> &'static str {
        match self {
            Within::Plain => "its recursive term",
            Within::Static => "its non-recursive term",
            Within::Subquery => "a subquery",
            Within::OuterJoin => "an outer join",
            Within::Intersect => "INTERSECT",
            Within::Except => "EXCEPT",
        }
    }
}

impl Queries<'_> {
    fn prepare(&self, cte: &mut Cte) -> Result<()> {
        let name = fold(&cte.alias.name);
        if !names(&cte.query, &name) {
            return Ok(());
        }
        self.check(cte, name)?;
        match cte.query.body.as_mut() {
            SetExpr::SetOperation { right, .. } => wrap(right),
            _ => Ok(()),
        }
    }

    fn check(&self, cte: &Cte, name: String) -> Result<()> {
        let invalid = |text: String, at: &Ident| Err(SqlError::new("42P19", text).at(self.source.start(at.span)));
        let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = cte.query.body.as_ref() else {
            let form = "non-recursive-term UNION [ALL] recursive-term";
            return invalid(format!("recursive query \"{name}\" does not have the form {form}"), &cte.alias.name);
        };
        let mut refuse = |within: Within, at: &Ident, found: usize| match within {
            Within::Plain if found > 1 => {
                invalid(format!("recursive reference to query \"{name}\" must not appear more than once"), at)
            }
            Within::Plain => Ok(()),
            _ => {
                let place = within.words();
                invalid(format!("recursive reference to query \"{name}\" must not appear within {place}"), at)
            }
        };
        let mut references = References { name: &name, found: 0 };
        references.set(left, Within::Static, &mut refuse)?;
        references.set(right, Within::Plain, &mut refuse)?;
        if let Some(with) = &cte.query.with {
            references.with(with, Within::Subquery, &mut refuse)?;
        }
        self.check_clauses(&cte.query)?;
        self.check_aggregates(right, &name)
    }

    fn check_clauses(&self, query: &Query) -> Result<()> {
        let refuse = |clause: &str, word: &str| {
            let message = format!("{clause} in a recursive query is not implemented");
            Err(SqlError::new("0A000", message).at(self.source.find_word(word)))
        };
        if query.order_by.is_some() {
            return refuse("ORDER BY", "order");
        }
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { offset: Some(_), .. }) => return refuse("OFFSET", "offset"),
            Some(_) => return refuse("LIMIT", "limit"),
            None if query.fetch.is_some() => return refuse("LIMIT", "fetch"),
            None => {}
        }
        if query.locks.is_empty() { Ok(()) } else { refuse("FOR UPDATE/SHARE", "for") }
    }

    /// Refuses aggregates in the SELECT that has the recursive reference in its FROM.
    fn check_aggregates(&self, term: &SetExpr, name: &str) -> Result<()> {
        let mut selects = Selects { name, found: Vec::new() };
        let _ = term.walk(&mut selects);
        for select in selects.found {
            let mut aggregates = Aggregates { is_aggregate: self.is_aggregate, depth: 0 };
            let found = select.projection.walk(&mut aggregates);
            let found = if found.is_break() { found } else { select.having.walk(&mut aggregates) };
            if let ControlFlow::Break(at) = found {
                let message = "aggregate functions are not allowed in a recursive query's recursive term";
                return Err(SqlError::new("42P19", message).at(self.source.start(at.span)));
            }
        }
        Ok(())
    }
}

/// Told of each reference: where it stands, its name, and the how manieth it is.
type Told<'a> = dyn FnMut(Within, &Ident, usize) -> Result<()> + 'a;

/// Walks through a query and finds the tables of one name.
struct References<'a> {
    name: &'a str,
    found: usize,
}

impl References<'_> {
    fn query(&mut self, query: &Query, within: Within, told: &mut Told) -> Result<()> {
        if let Some(with) = &query.with {
            // An item of the name hides it.
            if with.cte_tables.iter().any(|cte| fold(&cte.alias.name) == self.name) {
                return Ok(());
            }
            self.with(with, within, told)?;
        }
        self.set(&query.body, within, told)?;
        self.subqueries(&query.order_by, told)?;
        self.subqueries(&query.limit_clause, told)
    }

    fn with(&mut self, with: &With, within: Within, told: &mut Told) -> Result<()> {
        with.cte_tables.iter().try_for_each(|cte| self.query(&cte.query, within, told))
    }

    fn set(&mut self, body: &SetExpr, within: Within, told: &mut Told) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select, within, told),
            SetExpr::Query(query) => self.query(query, within, told),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let is_all = *set_quantifier == SetQuantifier::All;
                let (of_left, of_right) = match op {
                    SetOperator::Intersect if is_all => (Within::Intersect, Within::Intersect),
                    SetOperator::Except | SetOperator::Minus if is_all => (Within::Except, Within::Except),
                    SetOperator::Except | SetOperator::Minus => (within, Within::Except),
                    _ => (within, within),
                };
                let of = |place| if within == Within::Plain { place } else { within };
                self.set(left, of(of_left), told)?;
                self.set(right, of(of_right), told)
            }
            SetExpr::Values(values) => self.subqueries(values, told),
            _ => Ok(()),
        }
    }

    fn select(&mut self, select: &Select, within: Within, told: &mut Told) -> Result<()> {
        select.from.iter().try_for_each(|table| self.joined(table, within, told))?;
        self.subqueries(&select.projection, told)?;
        self.subqueries(&select.selection, told)?;
        self.subqueries(&select.group_by, told)?;
        self.subqueries(&select.having, told)
    }

    /// Joins are from left to right: what stands left of one stands left of all that follow.
    fn joined(&mut self, table: &TableWithJoins, within: Within, told: &mut Told) -> Result<()> {
        let outer = if within == Within::Plain { Within::OuterJoin } else { within };
        let is_right = |join: &Join| matches!(join.join_operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_));
        let is_full = |join: &Join| matches!(join.join_operator, JoinOperator::FullOuter(_));
        let left_of = |joins: &[Join]| {
            if joins.iter().any(|join| is_right(join) || is_full(join)) { outer } else { within }
        };
        self.factor(&table.relation, left_of(&table.joins), told)?;
        for (at, join) in table.joins.iter().enumerate() {
            let is_left = matches!(join.join_operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_));
            let place = if is_left || is_full(join) { outer } else { left_of(&table.joins[at + 1..]) };
            self.factor(&join.relation, place, told)?;
            self.subqueries(&join.join_operator, told)?;
        }
        Ok(())
    }

    fn factor(&mut self, table: &TableFactor, within: Within, told: &mut Told) -> Result<()> {
        match table {
            TableFactor::Table { name, args: None, .. } => match &name.0[..] {
                [ObjectNamePart::Identifier(ident)] if fold(ident) == self.name => {
                    self.found += 1;
                    told(within, ident, self.found)
                }
                _ => Ok(()),
            },
            TableFactor::Derived { subquery, .. } => self.query(subquery, within, told),
            TableFactor::NestedJoin { table_with_joins, .. } => self.joined(table_with_joins, within, told),
            other => self.subqueries(other, told),
        }
    }

    /// The subqueries of expressions.
    fn subqueries(&mut self, part: &impl Visit, told: &mut Told) -> Result<()> {
        let mut outermost = Outermost { depth: 0, walk: &mut |query| self.query(query, Within::Subquery, told) };
        match part.walk(&mut outermost) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(*error),
        }
    }
}

/// Finds the subqueries of expressions, but not those within them.
struct Outermost<'a> {
    depth: usize,
    walk: &'a mut dyn FnMut(&Query) -> Result<()>,
}

impl Visitor for Outermost<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        match self.depth {
            1 => (self.walk)(query).map_or_else(|error| ControlFlow::Break(Box::new(error)), ControlFlow::Continue),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Finds the SELECTs that have a table of the name in their own FROM.
struct Selects<'a> {
    name: &'a str,
    found: Vec<Select>,
}

impl Visitor for Selects<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_ours = |table: &TableFactor| match table {
            TableFactor::Table { name, args: None, .. } => {
                matches!(&name.0[..], [ObjectNamePart::Identifier(ident)] if fold(ident) == self.name)
            }
            _ => false,
        };
        let has =
            |table: &TableWithJoins| is_ours(&table.relation) || table.joins.iter().any(|join| is_ours(&join.relation));
        if select.from.iter().any(has) {
            self.found.push(select.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Finds the first aggregate of a query's own.
struct Aggregates<'a> {
    is_aggregate: &'a dyn Fn(&str) -> bool,
    depth: usize,
}

impl Visitor for Aggregates<'_> {
    type Break = Ident;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Ident> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Ident> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Ident> {
        if let Expr::Function(function) = expr
            && self.depth == 0
            && function.over.is_none()
            && let Some(ObjectNamePart::Identifier(ident)) = function.name.0.last()
            && (self.is_aggregate)(&fold(ident))
        {
            return ControlFlow::Break(ident.clone());
        }
        ControlFlow::Continue(())
    }
}
