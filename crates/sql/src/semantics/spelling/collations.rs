//! `COLLATE`. Texts are ordered by their bytes, which is PostgreSQL's collation `"C"`, so `"C"` and its other names stand for what is
//! done anyhow. A collation of a language (`"de-x-icu"`, `"en_US"`) counts where texts are ordered and compared: there a key of the text
//! takes its place, whose bytes have the language's order (`functions::texts::collation`).
//!
//! ```text
//! ORDER BY name COLLATE "sv-x-icu"     becomes    ORDER BY key(name, 'sv')
//! a < b COLLATE "sv-x-icu"             becomes    key(a, 'sv') < key(b, 'sv')
//! ```
//!
//! Equal texts are those of the same bytes in any of them, so that elsewhere, as in `=` and `GROUP BY`, a collation says nothing.
//!
//! A column may have the collation of a language by its definition, which only the planner sees (`adapting::collated`). Where there is
//! one, what says the order by bytes is marked by a call, which that rule takes away.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Ident,
    NamedWindowExpr, ObjectName, ObjectNamePart, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Statement,
    Value, VisitorMut, WindowSpec, WindowType,
};

use engine::{Collation, DataType};

use super::spellings::calling_quoted;
use crate::error::{Result, SqlError};
use crate::functions::texts::collation::COLLATION_KEY;
use crate::interrupt::made_types;
use crate::syntax::identifiers::{BY_BYTES, TEXT_OF_KEY, fold, last_part};
use crate::syntax::source::Source;
use crate::syntax::tokens::EXCLUSION;
use crate::syntax::visit::replace;
use crate::syntax::walk::WalkMut;
use crate::values::collated::{BYTE_ORDERS, DEFAULT, is_built_in, is_collatable, locale_named};
use crate::values::pg_types::shown_name;

/// Spells the collations out.
///
/// # Errors
/// 42704 where a collation has another name, 42P21 where two are to order the same texts, 0A000 where one stands in a place in which its
/// order would not be kept.
pub(crate) fn spell_out(statement: &mut Statement, source: &Source, has_languages: &dyn Fn() -> bool) -> Result<()> {
    if let ControlFlow::Break(error) = statement.walk_mut(&mut Ordered { source }) {
        return Err(*error);
    }
    replace(statement, |expr| {
        let (mut inner, mut is_by_bytes) = (expr, None);
        while let Expr::Collate { expr, collation } = inner
            && !marks_exclusion(collation)
        {
            let is_plain = locale(collation, source)?.is_none();
            is_by_bytes.get_or_insert(is_plain);
            inner = expr;
        }
        Ok(match is_by_bytes {
            None => None,
            Some(true) if has_languages() => Some(calling_quoted(BY_BYTES, vec![inner.clone()])),
            Some(_) => Some(inner.clone()),
        })
    })
}

/// The collation of a column, a domain or an index that has this name; none if that is the default.
///
/// # Errors
/// 42704 where there is no such collation, 42804 where values of the type have none.
pub(crate) fn of_type(collation: &ObjectName, data_type: DataType, source: &Source) -> Result<Option<Collation>> {
    let found = found(collation, source)?;
    match is_collatable(data_type) {
        true => Ok(found),
        false => {
            let message = format!("collations are not supported by type {}", shown_name(data_type));
            Err(SqlError::new("42804", message).at(position(collation, source)))
        }
    }
}

/// The locale of a collation; `None` of the order by bytes.
fn locale(collation: &ObjectName, source: &Source) -> Result<Option<String>> {
    Ok(found(collation, source)?.and_then(|found| found.locale))
}

/// The collation of a name; none of the default.
///
/// # Errors
/// 42704 where there is no such collation.
pub(crate) fn found(collation: &ObjectName, source: &Source) -> Result<Option<Collation>> {
    let parts: Vec<_> = collation.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let name = match &parts[..] {
        [name] => fold(name),
        [schema, name] if fold(schema) == "pg_catalog" => fold(name),
        _ => collation.to_string(),
    };
    if name == DEFAULT {
        return Ok(None);
    }
    if BYTE_ORDERS.contains(&name.as_str()) {
        return Ok(Some(Collation { name, locale: None }));
    }
    let made = match &parts[..] {
        [_] => made_types::collation(None, &name),
        [schema, local] if fold(schema) != "pg_catalog" => made_types::collation(Some(&fold(schema)), &fold(local)),
        _ => None,
    };
    if made.is_some() {
        return Ok(made);
    }
    let locale = locale_named(&name).ok_or_else(|| {
        let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
        let hint = "\"C\" orders by bytes, \"und-x-icu\", \"en-x-icu\", \"de-AT-x-icu\" and the like as languages do.";
        SqlError::new("42704", message).hint(hint).at(position(collation, source))
    })?;
    Ok(Some(Collation { name, locale: Some(locale) }))
}

/// Puts the names of collations that each database has in the places of those that users have made, in what the catalog keeps: it is read
/// again when no statement runs.
///
/// # Errors
/// 0A000 where no such name says what the collation does.
pub(crate) fn name_built_in(expr: &mut Expr) -> Result<()> {
    struct Names;
    impl VisitorMut for Names {
        type Break = Box<SqlError>;

        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
            let Expr::Collate { collation, .. } = expr else { return ControlFlow::Continue(()) };
            let parts: Vec<String> = collation.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
            let made = match &parts[..] {
                [name] if !is_built_in(name) => made_types::collation(None, name),
                [schema, name] if schema != "pg_catalog" => made_types::collation(Some(schema), name),
                _ => None,
            };
            let Some(made) = made else { return ControlFlow::Continue(()) };
            let name = made.locale.map_or_else(|| BYTE_ORDERS[0].to_owned(), |locale| format!("{locale}-x-icu"));
            if !is_built_in(&name) {
                let what = format!("collation \"{}\" in an expression that the catalog keeps", made.name);
                let hint = "Give it to a column, or name a collation of a language there.";
                return ControlFlow::Break(Box::new(SqlError::unsupported(what).hint(hint)));
            }
            *collation = ObjectName::from(vec![Ident::with_quote('"', name)]);
            ControlFlow::Continue(())
        }
    }
    match expr.walk_mut(&mut Names) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn position(collation: &ObjectName, source: &Source) -> Option<usize> {
    collation.0.first().and_then(ObjectNamePart::as_ident).and_then(|part| source.start(part.span))
}

/// Whether the name stands for a part of a window's frame.
fn marks_exclusion(collation: &ObjectName) -> bool {
    let name = collation.0.first().and_then(ObjectNamePart::as_ident);
    name.is_some_and(|name| name.value.starts_with(EXCLUSION))
}

/// Puts keys in the places of texts that are ordered by the rules of a language.
struct Ordered<'s> {
    source: &'s Source<'s>,
}

impl VisitorMut for Ordered<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        done(self.query(query))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        done(self.expr(expr))
    }
}

fn done(result: Result<()>) -> ControlFlow<Box<SqlError>> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Box::new(error)),
    }
}

impl Ordered<'_> {
    fn query(&self, query: &mut Query) -> Result<()> {
        let items: &[SelectItem] = match query.body.as_ref() {
            SetExpr::Select(select) => &select.projection,
            _ => &[],
        };
        if let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(keys) = &mut order.kind
        {
            for key in keys.iter_mut() {
                if let Some(item) = named(&key.expr, items)
                    && self.collated(item)?.is_some()
                {
                    key.expr = item.clone();
                }
            }
            self.keys(keys)?;
        }
        if let SetExpr::Select(select) = query.body.as_mut() {
            for window in &mut select.named_window {
                if let NamedWindowExpr::WindowSpec(window) = &mut window.1 {
                    self.keys(&mut window.order_by)?;
                }
            }
        }
        Ok(())
    }

    fn expr(&self, expr: &mut Expr) -> Result<()> {
        use BinaryOperator::{Gt, GtEq, Lt, LtEq};
        match expr {
            Expr::BinaryOp { left, op: Lt | LtEq | Gt | GtEq, right } => self.compared(vec![left, right]).map(drop),
            Expr::Between { expr, low, high, .. } => self.compared(vec![expr, low, high]).map(drop),
            Expr::Function(function) => {
                if self.function(function)? {
                    *expr = calling_quoted(TEXT_OF_KEY, vec![expr.clone()]);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Has a call put texts into the order of a language; returns whether it gives a key in place of a text now.
    fn function(&self, function: &mut Function) -> Result<bool> {
        if let Some(WindowType::WindowSpec(WindowSpec { order_by, .. })) = &mut function.over {
            self.keys(order_by)?;
        }
        self.keys(&mut function.within_group)?;
        let FunctionArguments::List(list) = &mut function.args else { return Ok(false) };
        for clause in &mut list.clauses {
            if let FunctionArgumentClause::OrderBy(keys) = clause {
                self.keys(keys)?;
            }
        }
        let name = function.name.0.last().and_then(ObjectNamePart::as_ident).map(fold).unwrap_or_default();
        if !["min", "max", "greatest", "least"].contains(&name.as_str()) {
            return Ok(false);
        }
        let texts = list.args.iter_mut().filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(text)) => Some(text),
            _ => None,
        });
        self.compared(texts.collect())
    }

    fn keys(&self, keys: &mut [OrderByExpr]) -> Result<()> {
        for key in keys {
            if let Some(locale) = self.collated(&key.expr)? {
                wrap(&mut key.expr, &locale);
            }
        }
        Ok(())
    }

    /// Texts that are compared, if the collation of one of them is of a language; returns whether it is.
    fn compared(&self, texts: Vec<&mut Expr>) -> Result<bool> {
        let mut found: Option<(ObjectName, String)> = None;
        for text in &texts {
            let (Some(locale), Some(name)) = (self.collated(text)?, name_of(text)) else { continue };
            match &found {
                Some((other, by)) if *by != locale => {
                    let [one, two] = [other, name].map(|of| last_part(of).unwrap_or_default());
                    let message = format!("collation mismatch between explicit collations \"{one}\" and \"{two}\"");
                    return Err(SqlError::new("42P21", message).at(position(name, self.source)));
                }
                _ => found = Some((name.clone(), locale)),
            }
        }
        let Some((_, locale)) = found else { return Ok(false) };
        texts.into_iter().for_each(|text| wrap(text, &locale));
        Ok(true)
    }

    /// The locale by which an expression says that it is ordered.
    fn collated(&self, expr: &Expr) -> Result<Option<String>> {
        match expr {
            Expr::Nested(inner) => self.collated(inner),
            Expr::Collate { collation, .. } if !marks_exclusion(collation) => locale(collation, self.source),
            _ => Ok(None),
        }
    }
}

/// The collation that an expression says.
fn name_of(expr: &Expr) -> Option<&ObjectName> {
    match expr {
        Expr::Nested(inner) => name_of(inner),
        Expr::Collate { collation, .. } => Some(collation),
        _ => None,
    }
}

/// The expression of a select list that a key of an order names, or stands for by its number.
fn named<'e>(key: &Expr, items: &'e [SelectItem]) -> Option<&'e Expr> {
    let expr_of = |item: &'e SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    };
    match key {
        Expr::Identifier(name) => items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if fold(alias) == fold(name) => Some(expr),
            _ => None,
        }),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => {
                let at = number.to_string().parse::<usize>().ok()?.checked_sub(1)?;
                items.get(at).and_then(expr_of)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Puts the key of a text in its place. What says its own collation loses it.
fn wrap(expr: &mut Expr, locale: &str) {
    let mut text = std::mem::replace(expr, Expr::Value(Value::Null.into()));
    loop {
        text = match text {
            Expr::Nested(inner) => *inner,
            Expr::Collate { expr, collation } if !marks_exclusion(&collation) => *expr,
            other => {
                let locale = Expr::Value(Value::SingleQuotedString(locale.to_owned()).into());
                *expr = calling_quoted(COLLATION_KEY, vec![other, locale]);
                return;
            }
        };
    }
}
