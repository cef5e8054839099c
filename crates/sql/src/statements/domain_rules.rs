//! What a domain asks of the values of a column, as rules of the column's table; see `domains`.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, VisitorMut};
use engine::{Check, Column, DomainDefinition};

use crate::access::index_expressions::text::parsed;
use crate::error::{DOMAIN_RULE, Result};
use crate::names::fold;
use crate::planning::index_compile::Kind;
use crate::planning::index_define::define_over;
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;

/// How a condition of a domain calls the value.
pub(crate) const VALUE: &str = "value";

/// The rules for a column of a table that is of a domain; those of the table that are there already are given.
pub(crate) fn rules(
    (domain, definition): &(String, DomainDefinition),
    at: usize,
    (table, columns): (&str, &[Column]),
    known: &[Check],
) -> Result<Vec<Check>> {
    let is_taken = |number: usize| known.iter().any(|check| check.name.starts_with(&prefix(number)));
    let mut numbers = (0..).filter(|number| !is_taken(*number));
    let mut rules = Vec::with_capacity(definition.checks.len() + 1);
    let column = Ident::with_quote('"', &columns[at].name);
    let mut rule = |check: &str, condition: &Expr| -> Result<()> {
        let number = numbers.next().unwrap_or_default();
        let defined = define_over(condition, (table, columns), Kind::Check, &Source::new(""))?;
        let name = format!("{}{domain}{DOMAIN_RULE}{check}", prefix(number));
        rules.push(Check { name, condition: defined.text, columns: defined.columns, validated: true });
        Ok(())
    };
    if definition.not_null {
        rule("", &Expr::IsNotNull(Box::new(Expr::Identifier(column.clone()))))?;
    }
    for (name, condition) in &definition.checks {
        let mut condition = parsed(condition)?;
        let _ = condition.walk_mut(&mut Named(&column));
        rule(name, &condition)?;
    }
    Ok(rules)
}

/// What the names of rules begin with, which are looked at in the order of their names.
fn prefix(number: usize) -> String {
    format!("{DOMAIN_RULE}{number:04}{DOMAIN_RULE}")
}

/// Puts the column in the place of the value.
struct Named<'a>(&'a Ident);

impl VisitorMut for Named<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(ident) = expr
            && fold(ident) == VALUE
        {
            *ident = self.0.clone();
        }
        ControlFlow::Continue(())
    }
}
