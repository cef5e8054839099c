//! Refuses what the planner would silently ignore: a clause that is accepted does what it says.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, Statement, TableFactor, Value, ValueWithSpan, Visitor};

use crate::error::{Result, SqlError};
use crate::syntax::composed::changes_rows;
use crate::syntax::parameter::is_numbered;
use crate::syntax::source::Source;
use crate::syntax::walk::Walk;

/// Checks every query within a statement.
pub(crate) fn query(statement: &Statement, source: &Source) -> Result<()> {
    match statement.walk(&mut Check { source }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// Words that PostgreSQL takes as no column's name, while the parser's library does.
const RESERVED: [&str; 46] = [
    "all",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "default",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "intersect",
    "into",
    "limit",
    "not",
    "offset",
    "on",
    "or",
    "order",
    "primary",
    "select",
    "table",
    "then",
    "union",
    "using",
    "when",
    "where",
    "with",
];

fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

struct Check<'a> {
    source: &'a Source<'a>,
}

impl Check<'_> {
    fn refuse(&self, what: &str, word: &str) -> ControlFlow<Box<SqlError>> {
        ControlFlow::Break(Box::new(SqlError::unsupported(what).at(self.source.find_word(word))))
    }
}

impl Visitor for Check<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        if let Some(cte) = with.into_iter().find(|cte| changes_rows(&cte.query.body)) {
            let message = "WITH clause containing a data-modifying statement must be at the top level";
            let at = self.source.start(cte.alias.name.span);
            return ControlFlow::Break(Box::new(SqlError::new("0A000", message).at(at)));
        }
        if !query.locks.is_empty() {
            return self.refuse("locking rows in a subquery", "for");
        }
        if query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties || fetch.percent) {
            return self.refuse("FETCH ... WITH TIES or PERCENT", "fetch");
        }
        if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
            return self.refuse("FOR XML, SETTINGS or FORMAT", "select");
        }
        if !query.pipe_operators.is_empty() {
            return self.refuse("the pipe syntax", "from");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        if select.into.is_some() {
            return self.refuse("SELECT INTO", "into");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                self.refuse("TABLESAMPLE", "tablesample")
            }
            TableFactor::Table { version: Some(_), .. } => self.refuse("reading a table as of another time", "for"),
            TableFactor::Table { with_hints, partitions, index_hints, .. }
                if !(with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty()) =>
            {
                self.refuse("a table hint", "with")
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Collate { .. } => self.refuse("COLLATE", "collate"),
            Expr::Identifier(ident) if ident.quote_style.is_none() && is_reserved(&ident.value) => {
                let message = format!("syntax error at or near \"{}\"", ident.value);
                let position = self.source.start(ident.span);
                ControlFlow::Break(Box::new(SqlError::syntax(message).at(position)))
            }
            // `:a` and `@a` are parameters of other databases.
            Expr::Value(ValueWithSpan { value: Value::Placeholder(name), span }) if !is_numbered(name) => {
                let first = name.chars().next().unwrap_or('$');
                let error = SqlError::syntax(format!("syntax error at or near \"{first}\""));
                ControlFlow::Break(Box::new(error.at(self.source.start(*span))))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
