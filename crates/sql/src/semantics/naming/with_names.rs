//! A query of an inner WITH hides one of an outer WITH that has its name. The planner knows each name once, so that the
//! inner query gets a hidden name, and what means it names that.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Ident, ObjectName, ObjectNamePart, Query, Statement, TableAlias, TableFactor, VisitorMut, With,
};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::{fold, hidden};
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;

/// Tells the queries of WITH apart.
pub(crate) fn tell_apart(statement: &mut Statement, source: &Source) -> Result<()> {
    let mut queries = Queries { source, known: Vec::new(), frames: Vec::new(), renamed: 0 };
    match statement.walk_mut(&mut queries) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Queries<'a> {
    source: &'a Source<'a>,
    /// The names that are known at a place, the innermost last, and what they are called.
    known: Vec<(String, Option<Ident>)>,
    /// The WITH of each query around, which has been gone through already, and how many names were known before.
    frames: Vec<(Option<With>, usize)>,
    renamed: usize,
}

impl Queries<'_> {
    fn with(&mut self, with: &mut With) -> ControlFlow<Box<SqlError>> {
        let before = self.known.len();
        for cte in &mut with.cte_tables {
            let name = fold(&cte.alias.name);
            if self.known[before..].iter().any(|(known, _)| *known == name) {
                let error = SqlError::new("42712", format!("WITH query name \"{name}\" specified more than once"));
                return ControlFlow::Break(Box::new(error.at(self.source.start(cte.alias.name.span))));
            }
            let other = self.known.iter().any(|(known, _)| *known == name).then(|| {
                self.renamed += 1;
                hidden(format_args!("with {}", self.renamed), &name)
            });
            // Only a recursive query means itself by its name.
            if with.recursive {
                self.known.push((name, other.clone()));
                cte.query.walk_mut(self)?;
            } else {
                cte.query.walk_mut(self)?;
                self.known.push((name, other.clone()));
            }
            rename(cte, other);
        }
        ControlFlow::Continue(())
    }
}

fn rename(cte: &mut Cte, name: Option<Ident>) {
    if let Some(name) = name {
        cte.alias.name = Ident { span: cte.alias.name.span, ..name };
    }
}

impl VisitorMut for Queries<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let (mut with, before) = (query.with.take(), self.known.len());
        let visited = match &mut with {
            Some(with) => self.with(with),
            None => ControlFlow::Continue(()),
        };
        self.frames.push((with, before));
        visited
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some((with, before)) = self.frames.pop() {
            query.with = with;
            self.known.truncate(before);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table { name, alias, args: None, .. } = table else { return ControlFlow::Continue(()) };
        let [ObjectNamePart::Identifier(ident)] = &name.0[..] else { return ControlFlow::Continue(()) };
        let own = fold(ident);
        let meant = self.known.iter().rev().find(|(known, _)| *known == own);
        if let Some((_, Some(other))) = meant {
            let label = ident.clone();
            *name = ObjectName::from(vec![Ident { span: label.span, ..other.clone() }]);
            alias.get_or_insert_with(|| TableAlias { explicit: true, name: label, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}
