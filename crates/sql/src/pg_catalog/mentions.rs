//! What the texts of the catalog (queries of views, bodies of functions, defaults, conditions) name, and where.
//!
//! A text that is kept names things of `public` without their schema and all others with theirs. Two questions are answered by that: on
//! what an object depends (`dependencies`), and how its text is told where the search path does not find `public` (`hidden`).
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Query, TableFactor, Value, ValueWithSpan, Visitor,
};
use engine::schema_and_name;

use crate::names::name_in_text;
use crate::parsing::parse::{Places, parse_query};
use crate::syntax::identifiers::{fold, last_part, quoted};
use crate::syntax::source::Source;
use crate::syntax::walk::Walk;
use crate::syntax::with_scope::WithScope;

/// What is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Relation,
    /// With so many arguments.
    Function(usize),
    Type,
}

/// A name in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) named: Named,
    /// The schema, if the text says it.
    pub(super) schema: Option<String>,
    pub(super) name: String,
    /// The byte at which the schema begins, or the name where the text says none.
    pub(super) whole: usize,
    /// The byte at which the name begins.
    pub(super) start: usize,
}

/// What begins a query whose only column is an expression.
const SELECT: &str = "SELECT ";

/// The names in a query; none where it is not understood.
pub(super) fn of_query(text: &str) -> Vec<Mention> {
    let Ok(query) = parse_query(text, Places::Known) else { return Vec::new() };
    let source = Source::new(text);
    let mut found = Mentions { source: &source, scope: WithScope::default(), found: Vec::new() };
    let _ = query.walk(&mut found);
    found.found
}

/// The names in an expression.
pub(super) fn of_expression(text: &str) -> Vec<Mention> {
    let found = of_query(&format!("{SELECT}{text}")).into_iter();
    let moved = |place: usize| place.saturating_sub(SELECT.len());
    found.map(|mention| Mention { whole: moved(mention.whole), start: moved(mention.start), ..mention }).collect()
}

struct Mentions<'a> {
    source: &'a Source<'a>,
    scope: WithScope,
    found: Vec<Mention>,
}

impl Mentions<'_> {
    fn add(&mut self, named: Named, name: &ObjectName) {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let (schema, name) = match parts[..] {
            [name] => (None, name),
            [schema, name] => (Some(fold(schema)), name),
            _ => return,
        };
        let first = parts.first().and_then(|first| self.source.offset(first.span.start));
        if let (Some(whole), Some(start)) = (first, self.source.offset(name.span.start)) {
            self.found.push(Mention { named, schema, name: fold(name), whole, start });
        }
    }

    /// A literal that names a relation, as `nextval('numbers')` has it.
    fn add_text(&mut self, literal: &ValueWithSpan) {
        let Value::SingleQuotedString(text) = &literal.value else { return };
        let (Ok(key), Some(start)) = (name_in_text(text), self.source.offset(literal.span.start)) else { return };
        let (schema, name) = schema_and_name(&key);
        // One without a schema is of `public`; so is one that says so.
        let schema = (text.contains('.')).then(|| schema.to_owned());
        let whole = start + 1;
        let start = whole + schema.as_ref().map_or(0, |schema| quoted(schema).len() + 1);
        self.found.push(Mention { named: Named::Relation, schema, name: name.to_owned(), whole, start });
    }

    fn add_type(&mut self, data_type: &SqlType) {
        match data_type {
            SqlType::Custom(name, _) => self.add(Named::Type, name),
            SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item)) => {
                self.add_type(item);
            }
            _ => {}
        }
    }

    fn add_call(&mut self, function: &Function) {
        let list = match &function.args {
            FunctionArguments::List(list) => &list.args[..],
            FunctionArguments::None | FunctionArguments::Subquery(_) => &[],
        };
        self.add(Named::Function(list.len()), &function.name);
        let takes_name = matches!(last_part(&function.name).as_deref(), Some("nextval" | "currval" | "setval"));
        if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(literal)))) = list.first()
            && takes_name
        {
            self.add_text(literal);
        }
    }
}

impl Visitor for Mentions<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scope.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.scope.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } if !self.scope.has(name) => self.add(Named::Relation, name),
            TableFactor::Table { name, args: Some(list), .. } => self.add(Named::Function(list.args.len()), name),
            TableFactor::Function { name, args, .. } => self.add(Named::Function(args.len()), name),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => self.add_call(function),
            Expr::Cast { expr: inner, data_type, .. } => match (data_type, inner.as_ref()) {
                (SqlType::Regclass, Expr::Value(literal)) => self.add_text(literal),
                _ => self.add_type(data_type),
            },
            Expr::TypedString(typed) => self.add_type(&typed.data_type),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mentions: &[Mention], text: &str) -> Vec<String> {
        let shown = |mention: &Mention| {
            let schema = mention.schema.as_ref().map_or_else(String::new, |schema| format!("{schema}."));
            let rest: String = text[mention.start..].chars().take(3).collect();
            format!("{:?} {schema}{} at {rest}", mention.named, mention.name)
        };
        mentions.iter().map(shown).collect()
    }

    #[test]
    fn names_are_found_where_they_stand() {
        let text =
            "WITH w AS (SELECT 1) SELECT f(a, 'x'::mood), nextval('n'::regclass) FROM w, t JOIN s.u ON true, g(1)";
        let names = [
            "Relation t at t J",
            "Relation s.u at u O",
            "Function(1) g at g(1",
            "Function(2) f at f(a",
            "Type mood at moo",
            "Function(1) nextval at nex",
            "Relation n at n':",
        ];
        let mut found = shown(&of_query(text), text);
        found.sort();
        let mut names = names.map(str::to_owned);
        names.sort();
        assert_eq!(found, names);
        let text = "lower(a) = k('b'::s.mood[])";
        let names = ["Function(1) lower at low", "Function(1) k at k('", "Type s.mood at moo"];
        assert_eq!(shown(&of_expression(text), text), names);
    }
}
