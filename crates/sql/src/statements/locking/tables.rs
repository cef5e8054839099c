//! The tables of a query that locks rows: which of them, how, and the query with the ids of their rows.
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
};
use engine::{LockStrength, LockWait, Table};

use super::check::refuse;
use crate::access::table::rid_column;
use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::names::{find_table, fold, table_name};
use crate::parsing::lock_clauses::LockClause;
use crate::pg_catalog::system;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::view::{TARGET_SCHEMA, target_table};
use crate::statements::view_target::{Through, ViewTarget, find_to_lock};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// A table of the query.
pub(super) struct LockedTable {
    pub(super) table: Table,
    /// How its rows are locked, if they are.
    pub(super) lock: Option<(LockStrength, LockWait)>,
}

/// A table, and the view through which the query names it.
type Found = (Table, Option<ViewTarget>);

/// Something in FROM.
struct Item<'q> {
    factor: &'q mut TableFactor,
    /// Whether an outer join may give no row of it.
    is_nullable: bool,
}

/// Finds the tables of the query's FROM, gives each the name under which a plan finds it with its row ids, and has the
/// query give these ids after its own columns.
pub(super) fn prepare(
    session: &Session,
    write: &mut Write<'_>,
    query: &mut Query,
    clauses: &[LockClause],
    source: &Source,
) -> Result<Vec<LockedTable>> {
    let with: Vec<String> =
        query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| fold(&cte.alias.name)).collect();
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(SqlError::new("XX000", "not a SELECT")) };
    let Select { from, projection, .. } = select.as_mut();
    let mut items = Vec::new();
    from.iter_mut().for_each(|table| factors(table, &mut items));
    check_names(clauses, &items)?;
    let asked = |factor: &TableFactor| clauses.iter().filter(|clause| names(clause, factor)).collect::<Vec<_>>();
    let mut found: Vec<Option<Found>> = vec![None; items.len()];
    // The locked tables are found first: the moment that the others are seen at comes after that.
    for is_locked in [true, false] {
        for (Item { factor, .. }, found) in items.iter().zip(&mut found) {
            let asked = asked(factor);
            if asked.is_empty() != is_locked {
                *found = find(session, write, factor, &with, &asked, source)?;
            }
        }
    }
    let mut tables = Vec::new();
    for (Item { factor, is_nullable }, found) in items.into_iter().zip(found) {
        let (Some((table, view)), asked) = (found, asked(factor)) else { continue };
        if let Some(clause) = asked.first().filter(|_| is_nullable) {
            return Err(refuse(clause, "cannot be applied to the nullable side of an outer join"));
        }
        let alias = rename(factor, (&table, view.as_ref()), tables.len())?;
        let rid = Expr::CompoundIdentifier(vec![alias, quoted(&rid_column(tables.len()))]);
        projection.push(SelectItem::ExprWithAlias { expr: rid, alias: quoted(&format!("\0id {}", tables.len())) });
        tables.push(LockedTable { table, lock: strongest(&asked) });
    }
    Ok(tables)
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn factors<'q>(table: &'q mut TableWithJoins, found: &mut Vec<Item<'q>>) {
    let start = found.len();
    factor(&mut table.relation, found);
    for join in &mut table.joins {
        let before = found.len();
        factor(&mut join.relation, found);
        let nullable = match join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => before..found.len(),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => start..before,
            JoinOperator::FullOuter(_) => start..found.len(),
            _ => continue,
        };
        found[nullable].iter_mut().for_each(|item| item.is_nullable = true);
    }
}

fn factor<'q>(factor: &'q mut TableFactor, found: &mut Vec<Item<'q>>) {
    match factor {
        TableFactor::NestedJoin { table_with_joins, alias: None } => factors(table_with_joins, found),
        other => found.push(Item { factor: other, is_nullable: false }),
    }
}

/// The name by which a statement calls something in FROM.
fn label(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => Some(fold(&alias.name)),
        TableFactor::Table { name, alias: None, .. } => last_part(name),
        _ => None,
    }
}

/// Whether a clause is about something in FROM.
fn names(clause: &LockClause, factor: &TableFactor) -> bool {
    let label = label(factor);
    clause.of.is_empty() || clause.of.iter().any(|(name, _)| Some(name) == label.as_ref())
}

/// Refuses names after OF that are not in FROM.
fn check_names(clauses: &[LockClause], items: &[Item<'_>]) -> Result<()> {
    let labels: Vec<String> = items.iter().filter_map(|item| label(item.factor)).collect();
    for clause in clauses {
        if let Some((name, position)) = clause.of.iter().find(|(name, _)| !labels.contains(name)) {
            let message = format!("relation \"{name}\" in {} clause not found in FROM clause", clause.strength);
            return Err(SqlError::new("42P01", message).at(*position));
        }
    }
    Ok(())
}

/// The table that something in FROM is; `None` where it is something else, of which no row can be locked.
fn find(
    session: &Session,
    write: &mut Write<'_>,
    factor: &TableFactor,
    with: &[String],
    asked: &[&LockClause],
    source: &Source,
) -> Result<Option<Found>> {
    let named = asked.iter().find(|clause| !clause.of.is_empty());
    let refuse_named = |what: &str| named.map_or(Ok(None), |clause| Err(refuse(clause, what)));
    let (name, version) = match factor {
        TableFactor::Table { name, args: None, version, .. } => (name, version),
        TableFactor::Table { .. } | TableFactor::Function { .. } | TableFactor::TableFunction { .. } => {
            return refuse_named("cannot be applied to a function");
        }
        TableFactor::NestedJoin { .. } => return refuse_named("cannot be applied to a join"),
        TableFactor::Derived { .. } => {
            let refused = |clause: &&LockClause| Err(refuse(clause, "of the rows of a subquery is not supported"));
            return asked.first().map_or(Ok(None), refused);
        }
        _ => return refuse_named("cannot be applied to this"),
    };
    if let [part] = &name.0[..]
        && part.as_ident().is_some_and(|ident| with.contains(&fold(ident)))
    {
        return refuse_named("cannot be applied to a WITH query");
    }
    let Some(clause) = asked.first().filter(|_| version.is_some()) else {
        let is_view = || find_table(&session.tables, name, source).is_ok_and(|table| table.view().is_some());
        let found = match asked.first() {
            None => find_table(&session.tables.at(&write.moment()?), name, source),
            Some(clause) if is_view() => {
                let found = find_to_lock(write, name, source)?;
                let (table, view) =
                    found.ok_or_else(|| refuse(clause, "of the rows of such a view is not supported"))?;
                return Ok(Some((table, Some(view))));
            }
            Some(_) => write.table(name, source),
        };
        return match found {
            Ok(table) if version.is_none() && table.view().is_none() => Ok(Some((table, None))),
            Ok(_) => Ok(None),
            Err(error) => not_a_table(name, asked, source).map_or(Err(error), |view| view),
        };
    };
    Err(refuse(clause, "cannot be applied to a table as of another time"))
}

/// The answer for a name that is no table's but a view's.
fn not_a_table(name: &ObjectName, asked: &[&LockClause], source: &Source) -> Option<Result<Option<Found>>> {
    let is_view = match table_name(name, source) {
        Ok(name) => system::is_view(&name),
        Err(error) => error.sqlstate == "3F000" && name.to_string().to_lowercase().contains("information_schema"),
    };
    let refused = |clause: &&LockClause| {
        let view = last_part(name).unwrap_or_default();
        Err(SqlError::new("42809", format!("cannot lock rows in view \"{view}\"")).at(clause.position))
    };
    is_view.then(|| asked.first().map_or(Ok(None), refused))
}

/// Gives a table the name under which a plan finds it with its row ids; returns what its columns are called by.
fn rename(factor: &mut TableFactor, (table, view): (&Table, Option<&ViewTarget>), at: usize) -> Result<Ident> {
    let TableFactor::Table { name, alias, .. } = factor else { return Err(SqlError::new("XX000", "not a table")) };
    if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
        return Err(SqlError::unsupported("locking rows of a table whose columns are renamed"));
    }
    if let Some(view) = view {
        let alias = alias.as_ref().map_or_else(|| last_part(name).unwrap_or_default(), |alias| fold(&alias.name));
        *factor = view.factor(&alias, Through::to_lock(at))?.relation;
        return Ok(quoted(&alias));
    }
    *name = ObjectName::from(vec![quoted(TARGET_SCHEMA), quoted(&target_table(at))]);
    let plain = || TableAlias { explicit: true, name: quoted(local(table.name())), columns: Vec::new(), at: None };
    Ok(alias.get_or_insert_with(plain).name.clone())
}

/// Of several clauses about one table the strongest lock counts, and NOWAIT before SKIP LOCKED before waiting.
fn strongest(asked: &[&LockClause]) -> Option<(LockStrength, LockWait)> {
    let strength = asked.iter().map(|clause| clause.strength.lock()).max()?;
    let any = |wait: LockWait| asked.iter().any(|clause| clause.wait == wait);
    let wait = [LockWait::NoWait, LockWait::SkipLocked].into_iter().find(|wait| any(*wait));
    Some((strength, wait.unwrap_or(LockWait::Block)))
}
