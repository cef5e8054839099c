//! `SEARCH` and `CYCLE` of a recursive query, which the parser's library does not read.
//!
//! Among the tokens a clause goes into the name of its query, spelled as no statement can spell it; in the tree it becomes columns of the
//! query, as in PostgreSQL:
//!
//! ```text
//! s(a) AS (l UNION ALL r) SEARCH DEPTH FIRST BY a SET o
//!   ->  s(a, o) AS (SELECT a, ARRAY[ROW(a)] FROM (l) AS l(a)
//!                   UNION ALL SELECT a, array_append(o, ROW(a)) FROM (r with s.o) AS r(a, o))
//! s(a) AS (l UNION ALL r) CYCLE a SET c USING p
//!   ->  s(a, c, p) AS (SELECT a, false, ARRAY[ROW(a)] FROM (l) AS l(a)
//!                      UNION ALL SELECT a, p holds ROW(a), array_append(p, ROW(a)) FROM (r with s.p, of rows without s.c) AS r(a, p))
//! ```
use std::fmt::Write;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Cte, Expr, Ident, ObjectNamePart, Query, Select, SelectItem, SetExpr, SetOperator,
    TableAliasColumnDef, TableFactor, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::names::headings::heading;
use crate::syntax::template::template;
use crate::syntax::tokens::{following, is_sign, keyword};
use crate::syntax::walk::WalkMut;

/// The function that tells whether a list has an item.
pub(crate) const HOLDS: &str = "\0holds";

/// What stands between a name and its clauses, and between the parts of these.
const MARK: char = '\0';

/// Changes the tokens of a statement.
pub(super) fn mark(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| keyword(token) == Keyword::RECURSIVE) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].token == Token::RParen
            && let Some(name) = name_before(tokens, at)
            && let Some((clauses, end)) = clauses_behind(tokens, at)
            && let Token::Word(word) = &tokens[name].token
        {
            let own = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
            tokens[name].token = Token::make_word(&format!("{own}{MARK}{clauses}"), Some('"'));
            tokens.drain(at + 1..=end);
        }
        at += 1;
    }
}

/// The name of the query of `WITH` that ends with this parenthesis.
fn name_before(tokens: &[TokenWithSpan], close: usize) -> Option<usize> {
    let mut before = opening(tokens, close)?;
    let mut back = || {
        before = (0..before).rev().find(|at| is_sign(&tokens[*at]))?;
        Some(before)
    };
    let mut at = back()?;
    if keyword(&tokens[at]) == Keyword::MATERIALIZED {
        at = back()?;
        if keyword(&tokens[at]) == Keyword::NOT {
            at = back()?;
        }
    }
    if keyword(&tokens[at]) != Keyword::AS {
        return None;
    }
    at = back()?;
    if tokens[at].token == Token::RParen {
        let open = opening(tokens, at)?;
        at = (0..open).rev().find(|at| is_sign(&tokens[*at]))?;
    }
    matches!(tokens[at].token, Token::Word(_)).then_some(at)
}

/// The parenthesis that the one at this place closes.
fn opening(tokens: &[TokenWithSpan], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 1 => return Some(at),
            Token::LParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The clauses that follow a place, spelled with marks, and where they end.
fn clauses_behind(tokens: &[TokenWithSpan], place: usize) -> Option<(String, usize)> {
    let mut reader = Reader { tokens, at: place };
    let mut spelled = String::new();
    if let Some(order) = reader.word("search") {
        let way = reader.word("depth").or_else(|| reader.word("breadth"))?;
        let (_, _) = (reader.word("first")?, reader.word("by")?);
        let columns = reader.columns()?;
        reader.word("set")?;
        let _ = write!(spelled, "{order}{MARK}{way}{MARK}{columns}{MARK}{}", reader.name()?);
    }
    if reader.word("cycle").is_some() {
        let columns = reader.columns()?;
        reader.word("set")?;
        let column = reader.name()?;
        let (value, default) = match reader.word("to") {
            Some(_) => (reader.until("default")?, reader.until("using")?),
            None => {
                reader.word("using")?;
                ("true".to_owned(), "false".to_owned())
            }
        };
        if !spelled.is_empty() {
            spelled.push(MARK);
        }
        let _ =
            write!(spelled, "cycle{MARK}{columns}{MARK}{column}{MARK}{value}{MARK}{default}{MARK}{}", reader.name()?);
    }
    (!spelled.is_empty()).then_some((spelled, reader.at))
}

/// The tokens behind a place.
struct Reader<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl Reader<'_> {
    fn next(&self) -> Option<usize> {
        following(self.tokens, self.at).next()
    }

    /// This word, if it is the next.
    fn word(&mut self, word: &str) -> Option<String> {
        let next = self.next()?;
        let Token::Word(found) = &self.tokens[next].token else { return None };
        if found.quote_style.is_some() || !found.value.eq_ignore_ascii_case(word) {
            return None;
        }
        self.at = next;
        Some(word.to_owned())
    }

    /// The next name, in quotes.
    fn name(&mut self) -> Option<String> {
        let next = self.next()?;
        let Token::Word(found) = &self.tokens[next].token else { return None };
        self.at = next;
        Some(match found.quote_style {
            Some(_) => quoted(&found.value),
            None => quoted(&found.value.to_lowercase()),
        })
    }

    /// Names with commas between them.
    fn columns(&mut self) -> Option<String> {
        let mut columns = self.name()?;
        while let Some(comma) = self.next().filter(|next| self.tokens[*next].token == Token::Comma) {
            self.at = comma;
            let _ = write!(columns, ", {}", self.name()?);
        }
        Some(columns)
    }

    /// What stands before a word, which is passed.
    fn until(&mut self, word: &str) -> Option<String> {
        let mut text = String::new();
        while self.word(word).is_none() {
            self.at = self.next()?;
            let _ = write!(text, "{} ", self.tokens[self.at].token);
        }
        Some(text)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Writes the clauses of a statement's queries out.
///
/// # Errors
/// PostgreSQL's, where the query is not of the form that these clauses are for.
pub(super) fn spell_out(part: &mut impl VisitMut) -> Result<()> {
    match part.walk_mut(&mut Queries) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Queries;

impl VisitorMut for Queries {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            if let Err(error) = write_out(cte) {
                return ControlFlow::Break(Box::new(error));
            }
        }
        ControlFlow::Continue(())
    }
}

/// A column that a clause adds: its name, what it is in the first rows, and what it becomes.
struct Added {
    name: String,
    first: String,
    next: String,
}

/// The column that tells a cycle, and its value there.
struct Mark {
    column: String,
    value: String,
}

fn write_out(cte: &mut Cte) -> Result<()> {
    let Some((own, clauses)) = cte.alias.name.value.split_once(MARK) else { return Ok(()) };
    // A reserved word, which is refused later.
    if own.is_empty() {
        return Ok(());
    }
    let (own, clauses) = (own.to_owned(), clauses.to_owned());
    cte.alias.name.value.clone_from(&own);
    let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = cte.query.body.as_mut() else {
        return Err(SqlError::syntax("WITH query is not recursive"));
    };
    let is_left = matches!(left.as_ref(), SetExpr::Select(_) | SetExpr::Values(_));
    let (true, SetExpr::Select(next)) = (is_left, right.as_mut()) else {
        let side = if is_left { "right" } else { "left" };
        let message = format!("with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT");
        return Err(SqlError::new("0A000", message));
    };
    let mut columns: Vec<String> = cte.alias.columns.iter().map(|column| quoted(&fold(&column.name))).collect();
    if columns.is_empty() {
        let name = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => heading(expr).map(|name| quoted(&name)),
            SelectItem::ExprWithAlias { alias, .. } => Some(quoted(&fold(alias))),
            _ => None,
        };
        let named: Option<Vec<String>> = match left.as_ref() {
            SetExpr::Select(first) => first.projection.iter().map(name).collect(),
            SetExpr::Values(values) => {
                let width = values.rows.first().map_or(0, |row| row.len());
                Some((1..=width).map(|at| quoted(&format!("column{at}"))).collect())
            }
            _ => None,
        };
        let unnamed = || SqlError::unsupported("SEARCH or CYCLE of a query whose columns have no names");
        columns = named.ok_or_else(|| unnamed().hint("Name the columns behind the name of the query."))?;
    }
    let Some(label) = label_of(next, &own) else { return Err(SqlError::syntax("WITH query is not recursive")) };
    let (added, mark) = added(&clauses)?;
    check(&added, &columns, &clauses)?;
    let label = quoted(&label.value);
    for column in &added {
        next.projection.push(item(&format!("{label}.{}", column.name))?);
    }
    if let Some(Mark { column, value }) = mark {
        let open = expression(&format!("({label}.{column} <> {value})"))?;
        next.selection = Some(match next.selection.take() {
            None => open,
            Some(condition) => and(condition, open),
        });
    }
    let (list, names) = (columns.join(", "), |part: fn(&Added) -> &String| {
        added.iter().map(part).fold(String::new(), |all, one| all + ", " + one)
    });
    let (firsts, nexts, all) = (names(|of| &of.first), names(|of| &of.next), names(|of| &of.name));
    let around_first = format!("SELECT {list}{firsts} FROM (SELECT 1) AS \"{MARK}first\" ({list})");
    put_around(left, &around_first)?;
    let around_next = format!("SELECT {list}{nexts} FROM (SELECT 1) AS \"{MARK}next\" ({list}{all})");
    put_around(right, &around_next)?;
    let names = columns.iter().chain(added.iter().map(|column| &column.name));
    let named = |name: &String| TableAliasColumnDef {
        name: Ident::with_quote('"', name[1..name.len() - 1].replace("\"\"", "\"")),
        data_type: None,
    };
    cte.alias.columns = names.map(named).collect();
    Ok(())
}

/// The columns that clauses add, and of a cycle that which tells one, with its value.
fn added(clauses: &str) -> Result<(Vec<Added>, Option<Mark>)> {
    let parts: Vec<&str> = clauses.split(MARK).collect();
    let (mut added, mut cycle, mut rest) = (Vec::new(), None, &parts[..]);
    if let ["search", way, columns, name, others @ ..] = rest {
        let (first, next) = match *way {
            "depth" => (format!("ARRAY[ROW({columns})]"), format!("array_append({name}, ROW({columns}))")),
            _ => (format!("ROW(0, {columns})"), format!("ROW(({name}).c0 + 1, {columns})")),
        };
        added.push(Added { name: (*name).to_owned(), first, next });
        rest = others;
    }
    if let ["cycle", columns, mark, value, default, path] = rest {
        let found = format!("CASE WHEN \"{HOLDS}\"({path}, ROW({columns})) THEN {value} ELSE {default} END");
        added.push(Added { name: (*mark).to_owned(), first: (*default).to_owned(), next: found });
        let (first, next) = (format!("ARRAY[ROW({columns})]"), format!("array_append({path}, ROW({columns}))"));
        added.push(Added { name: (*path).to_owned(), first, next });
        cycle = Some(Mark { column: (*mark).to_owned(), value: (*value).to_owned() });
    }
    match added.is_empty() {
        true => Err(SqlError::new("XX000", "a clause of a recursive query that is none")),
        false => Ok((added, cycle)),
    }
}

/// Refuses columns that are there, or are not.
fn check(added: &[Added], columns: &[String], clauses: &str) -> Result<()> {
    let clause = if clauses.starts_with("search") { "search" } else { "cycle" };
    for by in clauses.split(MARK).skip(if clause == "search" { 2 } else { 1 }).take(1).flat_map(|list| list.split(", "))
    {
        if !columns.iter().any(|column| column == by) {
            let message = format!("{clause} column {by} not in WITH query column list");
            return Err(SqlError::syntax(message));
        }
    }
    match added.iter().find(|new| columns.contains(&new.name)) {
        Some(new) => Err(SqlError::syntax(format!("column name {} already used in WITH query column list", new.name))),
        None => Ok(()),
    }
}

/// What a query calls the one of `WITH` that it reads.
fn label_of(select: &Select, own: &str) -> Option<Ident> {
    let factors = select.from.iter();
    let mut factors =
        factors.flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    factors.find_map(|factor| match factor {
        TableFactor::Table { name, alias, args: None, .. } => match &name.0[..] {
            [ObjectNamePart::Identifier(name)] if fold(name) == own => {
                let label = alias.as_ref().map_or(name, |alias| &alias.name);
                Some(Ident::with_quote('"', fold(label)))
            }
            _ => None,
        },
        _ => None,
    })
}

/// Puts a query over a part of one, in the place of `SELECT 1` in its text.
fn put_around(part: &mut Box<SetExpr>, text: &str) -> Result<()> {
    let mut outer = template(text)?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|table| &mut table.relation)
    {
        std::mem::swap(subquery.body.as_mut(), part.as_mut());
    }
    *part = outer.body;
    Ok(())
}

fn item(text: &str) -> Result<SelectItem> {
    Ok(SelectItem::UnnamedExpr(expression(text)?))
}

fn expression(text: &str) -> Result<Expr> {
    let query = template(&format!("SELECT {text}"))?;
    match *query.body {
        SetExpr::Select(mut select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
            _ => Err(SqlError::new("XX000", "the template is no expression")),
        },
        _ => Err(SqlError::new("XX000", "the template is no SELECT")),
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    let left = Box::new(Expr::Nested(Box::new(left)));
    Expr::BinaryOp { left, op: BinaryOperator::And, right: Box::new(right) }
}
