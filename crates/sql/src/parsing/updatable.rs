//! Views through which rows can be changed, as PostgreSQL tells them by their queries: those that give columns of one table or of one
//! such view, a row for each row.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

use crate::names::{fold, table_name};
use crate::parsing::parse::{Places, parse_query};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::visit::own;

/// The query of such a view.
pub(crate) struct Simple {
    pub(crate) select: Box<Select>,
    /// The name by which the catalog knows the table or view that it reads.
    pub(crate) reads: String,
    /// What that is called in the query.
    pub(crate) label: String,
    /// The names that the query gives to the first of its columns.
    pub(crate) renamed: Vec<String>,
    /// The column of what it reads that each of its own is, by the name in the query; none of what is computed.
    pub(crate) columns: Vec<Option<String>>,
}

/// Why rows can't be changed through a view that reads anything else.
pub(crate) const OTHERS: &str = "Views that do not select from a single table or view are not automatically updatable.";

/// Why no row can be put in or changed through a view of computed columns alone.
pub(crate) const NO_COLUMNS: &str = "Views that have no updatable columns are not automatically updatable.";

/// Aggregates that a select list may have without GROUP BY.
const AGGREGATES: &str = " array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every \
    json_agg json_object_agg jsonb_agg jsonb_object_agg max min mode percentile_cont percentile_disc regr_avgx regr_avgy \
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp string_agg sum \
    var_pop var_samp variance ";

/// Functions that give several rows.
const GIVING_ROWS: &str = " generate_series generate_subscripts json_array_elements json_array_elements_text json_each \
    json_each_text json_object_keys jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text \
    jsonb_object_keys regexp_matches regexp_split_to_table string_to_table unnest ";

/// Reads the query of a view; why rows can't be changed through it, in PostgreSQL's words, if they can't.
pub(crate) fn simple(query: &str) -> Result<Simple, &'static str> {
    let query = parse_query(query, Places::Unknown).map_err(|_| OTHERS)?;
    of_query(*query)
}

/// Why rows can't be changed through a view with this query; `None` if they can, as far as the query tells.
pub(crate) fn why_not_updatable(query: &Query) -> Option<&'static str> {
    of_query(query.clone()).err()
}

fn of_query(query: Query) -> Result<Simple, &'static str> {
    let select = match *query.body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => {
            return Err("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.");
        }
        SetExpr::Query(inner) => return of_query(*inner),
        _ => return Err(OTHERS),
    };
    of_select(&select)?;
    if query.with.is_some() {
        return Err("Views containing WITH are not automatically updatable.");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    of_list(&select)?;
    if let [TableWithJoins { relation: TableFactor::Table { sample: Some(_), .. }, .. }] = &select.from[..] {
        return Err("Views containing TABLESAMPLE are not automatically updatable.");
    }
    let (label, renamed, reads) = read(&select).ok_or(OTHERS)?;
    let columns = select.projection.iter().map(|item| column(item, &label)).collect();
    Ok(Simple { select, reads, label, renamed, columns })
}

fn of_select(select: &Select) -> Result<(), &'static str> {
    let groups = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, sets) => !keys.is_empty() || !sets.is_empty(),
    };
    match () {
        () if select.distinct.is_some() => Err("Views containing DISTINCT are not automatically updatable."),
        () if groups => Err("Views containing GROUP BY are not automatically updatable."),
        () if select.having.is_some() => Err("Views containing HAVING are not automatically updatable."),
        () => Ok(()),
    }
}

/// Refuses functions of several rows in the select list.
fn of_list(select: &Select) -> Result<(), &'static str> {
    let mut list = select.projection.clone();
    let is_among = |names: &str, name: &str| names.contains(&format!(" {name} "));
    let found = own(&mut list, |expr| {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = last_part(&function.name).unwrap_or_default();
        match () {
            () if function.over.is_some() => {
                ControlFlow::Break("Views that return window functions are not automatically updatable.")
            }
            () if is_among(AGGREGATES, &name) => {
                ControlFlow::Break("Views that return aggregate functions are not automatically updatable.")
            }
            () if is_among(GIVING_ROWS, &name) => {
                ControlFlow::Break("Views that return set-returning functions are not automatically updatable.")
            }
            () => ControlFlow::Continue(()),
        }
    });
    match found {
        ControlFlow::Break(why) => Err(why),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// What the query reads: its name in the query and those of its columns, and the name by which the catalog knows it.
fn read(select: &Select) -> Option<(String, Vec<String>, String)> {
    let [table] = &select.from[..] else { return None };
    let TableFactor::Table { name, alias, args: None, version: None, sample: None, .. } = &table.relation else {
        return None;
    };
    if !table.joins.is_empty() {
        return None;
    }
    let reads = table_name(name, &Source::new("")).ok()?;
    match alias {
        None => Some((last_part(name)?, Vec::new(), reads)),
        Some(alias) => {
            let renamed = alias.columns.iter().map(|column| fold(&column.name)).collect();
            Some((fold(&alias.name), renamed, reads))
        }
    }
}

/// The column that an item of the select list is.
fn column(item: &SelectItem, label: &str) -> Option<String> {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return None };
    match expr {
        Expr::Identifier(name) => Some(fold(name)),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [of, name] if fold(of) == label => Some(fold(name)),
            [_, of, name] if fold(of) == label => Some(fold(name)),
            _ => None,
        },
        _ => None,
    }
}
