//! `JOIN ... USING (a, b) AS j`: the columns that a join merges, under a name of their own.
//!
//! Among the tokens the name becomes one more column of the list, which no statement can spell; in the tree `j.a` becomes `a`, and
//! `j.*` the columns of the list.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, ObjectName, ObjectNamePart, OrderBy, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, VisitMut,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::syntax::identifiers::fold;
use crate::syntax::tokens::{following, keyword};
use crate::syntax::visit::{constraint_mut, own};

/// How the column begins that stands for a name.
const MARK: &str = "\0join\0";

/// Changes the tokens of a statement.
pub(super) fn mark(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if keyword(&tokens[at]) == Keyword::USING
            && let Some((close, name)) = named(tokens, at)
            && let Token::Word(word) = &tokens[name].token
        {
            let name_of = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
            let span = tokens[name].span;
            let column = Token::make_word(&format!("{MARK}{name_of}"), Some('"'));
            let made = [Token::Comma, column, Token::RParen].map(|token| TokenWithSpan { token, span });
            tokens.splice(close..=name, made);
        }
        at += 1;
    }
}

/// The places of the parenthesis that ends a list of columns and of the name behind it.
fn named(tokens: &[TokenWithSpan], using: usize) -> Option<(usize, usize)> {
    let mut next = following(tokens, using);
    if tokens[next.next()?].token != Token::LParen {
        return None;
    }
    let close = loop {
        let (column, end) = (next.next()?, next.next()?);
        match (&tokens[column].token, &tokens[end].token) {
            (Token::Word(_), Token::Comma) => {}
            (Token::Word(_), Token::RParen) => break end,
            _ => return None,
        }
    };
    let (said, name) = (next.next()?, next.next()?);
    (keyword(&tokens[said]) == Keyword::AS && matches!(tokens[name].token, Token::Word(_))).then_some((close, name))
}

/// A name and the columns that it has.
struct Alias {
    name: String,
    columns: Vec<Ident>,
}

/// Writes the names out in a query.
pub(super) fn spell_out(select: &mut Select, order: Option<&mut OrderBy>) {
    let mut aliases = Vec::new();
    select.from.iter_mut().for_each(|table| take(table, &mut aliases));
    if aliases.is_empty() {
        return;
    }
    let items = std::mem::take(&mut select.projection);
    select.projection =
        items.into_iter().flat_map(|item| columns_of(&item, &aliases).unwrap_or_else(|| vec![item])).collect();
    replace(select, &aliases);
    if let Some(order) = order {
        replace(order, &aliases);
    }
}

/// Takes the names out of joins.
fn take(table: &mut TableWithJoins, aliases: &mut Vec<Alias>) {
    let within = |factor: &mut TableFactor, aliases: &mut Vec<Alias>| {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            take(table_with_joins, aliases);
        }
    };
    within(&mut table.relation, aliases);
    for join in &mut table.joins {
        within(&mut join.relation, aliases);
        let Some(JoinConstraint::Using(names)) = constraint_mut(&mut join.join_operator) else { continue };
        let last = |name: &ObjectName| name.0.last().and_then(ObjectNamePart::as_ident).cloned();
        let marked = names.last().and_then(last).and_then(|name| name.value.strip_prefix(MARK).map(str::to_owned));
        if let Some(name) = marked {
            names.pop();
            aliases.push(Alias { name, columns: names.iter().filter_map(last).collect() });
        }
    }
}

/// What `j.*` stands for.
fn columns_of(item: &SelectItem, aliases: &[Alias]) -> Option<Vec<SelectItem>> {
    let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item else { return None };
    let [ObjectNamePart::Identifier(label)] = &name.0[..] else { return None };
    let alias = aliases.iter().find(|alias| alias.name == fold(label))?;
    Some(alias.columns.iter().map(|column| SelectItem::UnnamedExpr(Expr::Identifier(column.clone()))).collect())
}

fn replace(part: &mut impl VisitMut, aliases: &[Alias]) {
    let _ = own(part, |expr| {
        if let Expr::CompoundIdentifier(parts) = &*expr
            && let [label, column] = &parts[..]
            && let Some(alias) = aliases.iter().find(|alias| alias.name == fold(label))
            && alias.columns.iter().any(|known| fold(known) == fold(column))
        {
            *expr = Expr::Identifier(column.clone());
        }
        ControlFlow::<()>::Continue(())
    });
}
