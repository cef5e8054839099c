//! The text of a view's query: what it reads, and what is changed in it as the view is made and as its tables are renamed.
//!
//! The text stays as it was written; only these places are replaced, which the syntax tree tells:
//!
//! ```text
//! SELECT * FROM t      ->  SELECT t.a, t.b FROM t                as the view is made, and so are joins that are NATURAL
//! SELECT f(1.5)        ->  SELECT f((1.5)::double precision)     as the view is made, where f takes a double
//! SELECT t.a FROM t    ->  SELECT t.a FROM u AS t                where t is renamed
//! SELECT t.a FROM t    ->  SELECT t.a FROM t AS t(a, b)          where its first column is renamed
//! ```
//!
//! So what stands elsewhere in the text keeps its meaning, whatever is renamed.
use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, Spanned, TableAlias,
    TableFactor, Visitor, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use engine::{name_in_schema, schema_and_name};

use crate::access::default_expressions::each_sequence;
use crate::error::Result;
use crate::names::schemas::{local, spelled};
use crate::names::tables::{CATALOG, SCHEMA, Tables};
use crate::parsing::parse::{Places, parse_query};
use crate::planning::functions::users::{self, Found, called_by_path};
use crate::semantics::naming::columns::{Output, Scope, label};
use crate::statements::view_joins;
use crate::syntax::identifiers::{fold, quoted};
use crate::syntax::source::Source;
use crate::syntax::walk::Walk;
use crate::syntax::with_scope::WithScope;
use crate::values::pg_types::kept_name;

/// What takes the place of a part of a text.
type Edit = (Range<usize>, String);

/// The text of a view's query, which stands between these bytes of the statement's text, or up to its end, with its `*` written out.
pub(crate) fn fixed(query: &Query, (start, end): (usize, Option<usize>), source: &Source, tables: &Tables) -> String {
    let mut stars = Stars { source, scope: Scope::new(tables), edits: Vec::new() };
    let _ = query.walk(&mut stars);
    let _ = each_table(query, |_, factor| {
        // The search path has told its schema, which stands nowhere in the text.
        if let TableFactor::Table { name, .. } = factor
            && let [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(own)] = &name.0[..]
            && schema.span == Span::empty()
            && let Some(place) = place(own.span, source)
        {
            stars.edits.push((place.start..place.start, format!("{}.", written(&schema.value))));
        }
    });
    stars.edits.extend(casts(query, source, tables));
    stars.edits.extend(called_by_path(query, tables).into_iter().filter_map(|(schema, span)| {
        let place = place(span, source)?;
        Some((place.start..place.start, format!("{}.", written(&schema))))
    }));
    each_sequence(query, |name, span| {
        let found = tables.resolved(name.clone());
        stars.edits.extend(place(span, source).filter(|_| found != name).map(|place| (place, in_quotes(&found))));
    });
    let text = source.text[start..end.unwrap_or(source.text.len())].trim_end();
    let end = start + text.trim_end_matches(|c: char| c == ';' || c.is_whitespace()).len();
    edited(source.text, start..end, stars.edits)
}

/// The casts of arguments without which a function could be another one later.
fn casts(query: &Query, source: &Source, tables: &Tables) -> Vec<Edit> {
    let found = users::found(query, tables, false);
    let has_casts = found.iter().any(|found| found.casts.iter().any(Option::is_some));
    let Some(tokens) = has_casts.then(|| source.tokens().ok()).flatten() else { return Vec::new() };
    let tokens: Vec<&TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let mut edits = Vec::new();
    for Found { name, casts, .. } in &found {
        let behind = tokens.iter().position(|token| token.span.start >= name.end);
        let arguments = behind.map(|behind| arguments(&tokens[behind..])).unwrap_or_default();
        if arguments.len() != casts.len() {
            continue;
        }
        for (argument, data_type) in arguments.iter().zip(casts) {
            let (Some(place), Some(data_type)) = (place(*argument, source), data_type) else { continue };
            edits.push((place.start..place.start, "(".to_owned()));
            edits.push((place.end..place.end, format!(")::{}", kept_name(*data_type))));
        }
    }
    edits
}

/// Where the arguments of a call stand of which these tokens are the rest, from its parenthesis on, without the names of parameters.
fn arguments(tokens: &[&TokenWithSpan]) -> Vec<Span> {
    let (mut depth, mut found, mut start) = (0, Vec::new(), 1);
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth -= 1,
            Token::RArrow | Token::Assignment if depth == 1 && at == start + 1 => start = at + 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && token.token == Token::Comma) {
            found.extend((start < at).then(|| tokens[start].span.union(&tokens[at - 1].span)));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// The text of a view's query that goes on calling a function which gets another name.
pub(crate) fn with_function_renamed(text: &str, key: &str, to: (&str, &str), tables: &Tables) -> Result<String> {
    let (query, source) = (parse_query(text, Places::Known)?, Source::new(text));
    let name = match to {
        (SCHEMA, name) => written(name),
        (schema, name) => format!("{}.{}", written(schema), written(name)),
    };
    let found = users::found(&query, tables, true).into_iter().filter(|found| found.key == key);
    let edits = found.filter_map(|found| Some((place(found.name, &source)?, name.clone()))).collect();
    Ok(edited(text, 0..text.len(), edits))
}

/// A part of a text with edits in it, which do not overlap.
fn edited(text: &str, part: Range<usize>, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let (mut written, mut at) = (String::with_capacity(part.len()), part.start);
    for (range, instead) in edits {
        debug_assert!(at <= range.start && range.end <= part.end, "edits of a view's text overlap");
        written.push_str(&text[at..range.start]);
        written.push_str(&instead);
        at = range.end;
    }
    written.push_str(&text[at..part.end]);
    written
}

/// The place of a part of a text.
fn place(span: Span, source: &Source) -> Option<Range<usize>> {
    Some(source.offset(span.start)?..source.offset(span.end)?)
}

/// A name as it has to be written where words of the language would be taken for themselves.
fn written(name: &str) -> String {
    let plain = quoted(name);
    match ALL_KEYWORDS.binary_search(&plain.to_uppercase().as_str()) {
        Ok(_) => format!("\"{name}\""),
        Err(_) => plain,
    }
}

/// Finds each `*` of select lists and each join that is NATURAL, and what they stand for.
struct Stars<'a> {
    source: &'a Source<'a>,
    scope: Scope<'a>,
    edits: Vec<Edit>,
}

impl Visitor for Stars<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scope.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.scope.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            let edit = self.edit(item, select);
            self.edits.extend(edit);
        }
        self.edits.extend(view_joins::edits(select, &mut self.scope, self.source, written));
        ControlFlow::Continue(())
    }
}

impl Stars<'_> {
    /// What takes the place of an item of a select list; nothing where it is no `*`, or of relations whose columns never change.
    fn edit(&mut self, item: &SelectItem, select: &Select) -> Option<Edit> {
        match item {
            SelectItem::Wildcard(options) => {
                let place = place(plain(options)?, self.source)?;
                let outputs = select.from.iter().map(|table| self.scope.joined(table)).collect::<Option<Vec<_>>>()?;
                let list = listed(outputs.iter().flatten().map(column));
                match self.source.text.get(place.clone())? {
                    "*" => Some((place, list)),
                    // The whole query is `TABLE t`.
                    _ => Some((place, format!("SELECT {list} FROM"))),
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                let [ObjectNamePart::Identifier(wanted)] = &name.0[..] else { return None };
                let place = place(wanted.span.union(&plain(options)?), self.source)?;
                let factors = select.from.iter().flat_map(|table| {
                    std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation))
                });
                let is_wanted = |factor: &&TableFactor| label(factor).is_some_and(|label| fold(&label) == fold(wanted));
                let factor = factors.into_iter().find(is_wanted)?;
                let outputs = self.scope.factor(factor)?;
                Some((place, listed(outputs.iter().map(column))))
            }
            _ => None,
        }
    }
}

/// Where a `*` stands of which nothing else is said.
fn plain(options: &WildcardAdditionalOptions) -> Option<Span> {
    (*options == WildcardAdditionalOptions::default()).then_some(options.wildcard_token.0.span)
}

fn listed(columns: impl Iterator<Item = String>) -> String {
    columns.collect::<Vec<_>>().join(", ")
}

/// A column that `*` stands for.
fn column(output: &Output) -> String {
    match &output.expr {
        Expr::CompoundIdentifier(parts) if !output.is_merged => match &parts[..] {
            [label, _] => format!("{label}.{}", quoted(&output.name)),
            _ => written(&output.name),
        },
        _ => written(&output.name),
    }
}

/// The name of a sequence as a call of a function says it.
fn in_quotes(sequence: &str) -> String {
    format!("'{}'", spelled(sequence).replace('\'', "''"))
}

/// The names of the tables, sequences and views that a query reads or draws from, and perhaps of relations of the catalog.
pub(crate) fn reads(query: &Query) -> Vec<String> {
    let mut found = Vec::new();
    let _ = each_table(query, |name, _| found.push(name.to_owned()));
    each_sequence(query, |name, _| found.push(name));
    found.sort();
    found.dedup();
    found
}

/// Looks at each name in FROM that may be a table's.
pub(crate) fn each_table(query: &Query, look: impl FnMut(&str, &TableFactor)) -> ControlFlow<()> {
    struct Each<F> {
        scope: WithScope,
        look: F,
    }

    impl<F: FnMut(&str, &TableFactor)> Visitor for Each<F> {
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
            if let TableFactor::Table { name, args: None, .. } = factor
                && !self.scope.has(name)
                && let Some(table) = own_name(name)
            {
                (self.look)(&table, factor);
            }
            ControlFlow::Continue(())
        }
    }

    query.walk(&mut Each { scope: WithScope::default(), look })
}

/// Whether a query reads a table as of a moment that it names.
pub(crate) fn names_past(query: &Query) -> bool {
    let mut found = false;
    let _ = each_table(query, |_, factor| {
        found |= matches!(factor, TableFactor::Table { version: Some(_), .. });
    });
    found
}

/// The name of what may be a table of the one schema.
fn own_name(name: &ObjectName) -> Option<String> {
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    match &parts[..] {
        [table] => Some(table.clone()),
        [schema, table] if schema == SCHEMA => Some(table.clone()),
        [catalog, schema, table] if catalog == CATALOG && schema == SCHEMA => Some(table.clone()),
        [schema, table] if !is_of_system(schema) => Some(name_in_schema(schema, table)),
        _ => None,
    }
}

fn is_of_system(schema: &str) -> bool {
    schema == "pg_catalog" || schema == "information_schema"
}

/// The text of a view's query that goes on reading a table which gets another name.
pub(crate) fn with_table_renamed(text: &str, from: &str, to: &str) -> Result<String> {
    let text = edited_tables(text, from, |name, alias, source| {
        let place = place(name.span(), source)?;
        let alias = if alias.is_none() { format!(" AS {}", written(local(from))) } else { String::new() };
        let to = match schema_and_name(to) {
            (SCHEMA, to) => written(to),
            (schema, to) => format!("{}.{}", written(schema), written(to)),
        };
        Some((place, format!("{to}{alias}")))
    })?;
    let (query, source) = (parse_query(&text, Places::Known)?, Source::new(&text));
    let mut edits = Vec::new();
    each_sequence(&*query, |name, span| {
        edits.extend(place(span, &source).filter(|_| name == from).map(|place| (place, in_quotes(to))));
    });
    Ok(edited(&text, 0..text.len(), edits))
}

/// The text of a view's query that goes on finding the columns of a table under the names that they have had so far.
pub(crate) fn with_columns_named(text: &str, table: &str, names: &[String]) -> Result<String> {
    edited_tables(text, table, |name, alias, source| {
        let list = listed(names.iter().map(|name| written(name)));
        match alias {
            None => {
                let end = place(name.span(), source)?.end;
                Some((end..end, format!(" AS {}({list})", written(local(table)))))
            }
            Some(alias) if alias.columns.is_empty() => {
                let end = place(alias.name.span, source)?.end;
                Some((end..end, format!("({list})")))
            }
            Some(alias) if alias.columns.len() < names.len() => {
                let end = place(alias.columns.last()?.name.span, source)?.end;
                let rest = listed(names[alias.columns.len()..].iter().map(|name| written(name)));
                Some((end..end, format!(", {rest}")))
            }
            Some(_) => None,
        }
    })
}

/// The text of a view's query without the name that it gives to a column of a table, which is gone.
pub(crate) fn without_column(text: &str, table: &str, column: usize) -> Result<String> {
    edited_tables(text, table, |_, alias, source| {
        let alias = alias.filter(|alias| column < alias.columns.len())?;
        let mut names: Vec<String> = alias.columns.iter().map(|column| column.name.to_string()).collect();
        names.remove(column);
        let start = place(alias.columns.first()?.name.span, source)?.start;
        let end = place(alias.columns.last()?.name.span, source)?.end;
        if names.is_empty() {
            let (from, to) = (source.text[..start].rfind('(')?, end + source.text[end..].find(')')?);
            return Some((from..to + 1, String::new()));
        }
        Some((start..end, names.join(", ")))
    })
}

/// A text with an edit at each place where a table is read.
fn edited_tables(
    text: &str,
    table: &str,
    edit: impl Fn(&ObjectName, Option<&TableAlias>, &Source) -> Option<Edit>,
) -> Result<String> {
    let (query, source) = (parse_query(text, Places::Known)?, Source::new(text));
    let mut edits = Vec::new();
    let _ = each_table(&query, |name, factor| {
        if let TableFactor::Table { name: written, alias, .. } = factor
            && name == table
        {
            edits.extend(edit(written, alias.as_ref(), &source));
        }
    });
    Ok(edited(text, 0..text.len(), edits))
}
