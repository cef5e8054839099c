//! Whether rows can be changed through a view, as PostgreSQL tells it by the view's query.
use datafusion::sql::sqlparser::ast::{GroupByExpr, Query, Select, SetExpr, TableFactor};

use crate::parsing::parse::{Places, parse_query};

/// Why rows can't be changed through a view with this query, in PostgreSQL's words; `None` if they can.
pub(crate) fn why_not_updatable(query: &str) -> Option<String> {
    let query = parse_query(query, Places::Unknown).ok()?;
    why(&query).map(str::to_owned)
}

fn why(query: &Query) -> Option<&'static str> {
    const OTHERS: &str = "Views that do not select from a single table or view are not automatically updatable.";
    let body = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => {
            return Some("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.");
        }
        SetExpr::Query(inner) => return why(inner),
        _ => return Some(OTHERS),
    };
    of_select(body).or_else(|| match () {
        _ if query.with.is_some() => Some("Views containing WITH are not automatically updatable."),
        _ if query.limit_clause.is_some() || query.fetch.is_some() => {
            Some("Views containing LIMIT or OFFSET are not automatically updatable.")
        }
        _ => match &body.from[..] {
            [table] if table.joins.is_empty() && matches!(table.relation, TableFactor::Table { args: None, .. }) => {
                None
            }
            _ => Some(OTHERS),
        },
    })
}

fn of_select(select: &Select) -> Option<&'static str> {
    let groups = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, sets) => !keys.is_empty() || !sets.is_empty(),
    };
    match () {
        _ if select.distinct.is_some() => Some("Views containing DISTINCT are not automatically updatable."),
        _ if groups => Some("Views containing GROUP BY are not automatically updatable."),
        _ if select.having.is_some() => Some("Views containing HAVING are not automatically updatable."),
        _ => None,
    }
}
