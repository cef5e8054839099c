//! What a statement may be at most, told before anything costly is done with it.
//!
//! Trees are walked by recursion, so that their depth needs stack, and the planner's time grows faster than the number of
//! some things in a statement. Both are counted beforehand: depth in the tokens, the rest in the syntax tree. Whatever
//! is within these limits can be stopped while it is planned.
//!
//! ```text
//! nesting   parentheses, brackets and CASE within each other            NESTING_MAX
//! depth     operators in a row, added up along the nesting              DEPTH_MAX
//!           (AND, OR, UNION and their like are put in balance, so       CHAIN_MAX
//!           that a row of them is not deep: `chains`)
//! readings  how often the parser comes to the tokens: it tries `((SELECT` in FROM as a query
//!           first and as a join then                   `dialect::steps_of`
//! numbers   tables, members of set operations, CTEs, subqueries, ...    `NUMBERS`
//!           (windows that part or order rows differently are worked out one above the other, and the planner's time grows
//!           with the cube of their number)
//! ```
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArguments, Query, Select, SetExpr, Statement, TableFactor, Visitor, WindowType,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::interrupt;
use crate::syntax::dialect::{SqlDialect, steps_of};
use crate::syntax::walk::Walk;

/// How many tokens are looked at without a look at whether the statement is to stop.
const TOKENS_BETWEEN_LOOKS: usize = 4_096;

/// How many levels of operators a statement may have. Every level costs stack in the planner, and time for each level
/// above it.
const DEPTH_MAX: usize = 2_000;

/// How many levels of parentheses, brackets and `CASE` there may be.
const NESTING_MAX: usize = 200;

/// How many levels the parser may go down for one level of parentheses.
const LEVELS_OF_NESTING: usize = 4;

/// How many conditions may stand between `AND` and `OR`, and how many queries between `UNION` and its like, in one row.
const CHAIN_MAX: usize = 20_000;

/// What may be there so and so many times, with its name.
const NUMBERS: [(usize, &str); 6] = [
    (500, "tables and subqueries in FROM"),
    (2_500, "queries, those of set operations among them"),
    (1_000, "queries in WITH"),
    (2_000, "branches of one CASE"),
    (20_000, "elements of one ARRAY[...] or arguments of one function"),
    (200, "different windows in one query"),
];

/// Refuses statements whose tree would be deeper than the planner's stack. The depth of an expression is at most the
/// number of its operators: counted between commas, and added up along open parentheses.
pub(crate) fn guard_depth(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut open = vec![Level::default()];
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        if at % TOKENS_BETWEEN_LOOKS == 0 {
            interrupt::check()?;
        }
        match &token.token {
            Token::LParen | Token::LBracket => open.push(Level::default()),
            Token::RParen | Token::RBracket => depth -= close(&mut open),
            Token::Comma => depth -= end_of_row(&mut open),
            Token::Word(word) if word.keyword == Keyword::CASE => open.push(Level::default()),
            Token::Word(word) if word.keyword == Keyword::END => depth -= close(&mut open),
            Token::Word(word) if matches!(word.keyword, Keyword::WHEN | Keyword::THEN | Keyword::ELSE) => {
                depth -= end_of_row(&mut open);
            }
            Token::Word(word) if is_chained(word.keyword) => {
                let chain = open.last_mut().map_or(0, |top| {
                    top.chain += 1;
                    top.chain
                });
                if chain > CHAIN_MAX {
                    return Err(too_deep(format!("A row of more than {CHAIN_MAX} AND, OR or UNION is too long.")));
                }
                depth -= open.last_mut().map_or(0, |top| std::mem::take(&mut top.operators));
            }
            operator if is_operator(operator) => {
                depth += 1;
                if let Some(top) = open.last_mut() {
                    top.operators += 1;
                }
            }
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(too_deep(format!("It has more than {DEPTH_MAX} operators in a row or within each other.")));
        }
        if open.len() > NESTING_MAX + 1 {
            return Err(too_deep(format!("It has more than {NESTING_MAX} levels of parentheses, brackets or CASE.")));
        }
    }
    Ok(())
}

/// Refuses statements that the parser would read again and again. It tries what stands in several parentheses at once,
/// `((SELECT ... ) x JOIN y)`, as a query at each of them before it takes it for a join, and what is nested in that as often
/// each time.
pub(crate) fn guard_readings(tokens: &[TokenWithSpan]) -> Result<()> {
    let most = steps_of(tokens.len());
    let (mut open, mut done) = (vec![1u64], 0u64);
    // The parentheses that stand directly before the token, if what stands before them lets a table follow.
    let (mut row, mut is_table) = (0u64, false);
    for (at, token) in tokens.iter().enumerate() {
        if at % TOKENS_BETWEEN_LOOKS == 0 {
            interrupt::check()?;
        }
        let top = open.last().copied().unwrap_or(1);
        done = done.saturating_add(top);
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => {
                open.push(top);
                row += 1;
                continue;
            }
            Token::RParen if open.len() > 1 => drop(open.pop()),
            Token::Word(word) if is_table && row > 1 && begins_query(word.keyword) => {
                open.last_mut().into_iter().for_each(|top| *top = top.saturating_mul(row));
            }
            _ => {}
        }
        (row, is_table) = (0, comes_before_table(&token.token));
        if done > most {
            return Err(too_many_readings());
        }
    }
    Ok(())
}

fn begins_query(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE)
}

/// What the parser takes for a table, or else for something else, follows these. It also looks twice behind `IN`, but begins an
/// expression each time, which is counted.
fn comes_before_table(token: &Token) -> bool {
    match token {
        Token::Comma => true,
        Token::Word(word) => matches!(word.keyword, Keyword::FROM | Keyword::JOIN | Keyword::USING),
        _ => false,
    }
}

/// What was counted within one pair of parentheses.
#[derive(Default)]
struct Level {
    operators: usize,
    chain: usize,
}

/// The operators that are counted no more.
fn end_of_row(open: &mut [Level]) -> usize {
    open.last_mut().map_or(0, |top| std::mem::take(top).operators)
}

fn close(open: &mut Vec<Level>) -> usize {
    if open.len() > 1 { open.pop().map_or(0, |level| level.operators) } else { 0 }
}

fn is_chained(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::AND | Keyword::OR | Keyword::UNION | Keyword::INTERSECT)
}

fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::NOT
                | Keyword::EXCEPT
                | Keyword::JOIN
                | Keyword::IS
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::COLLATE
        ),
        Token::Number(..) | Token::Whitespace(_) | Token::SingleQuotedString(_) | Token::Period => false,
        Token::SemiColon | Token::EOF => false,
        _ => true,
    }
}

/// What the stack does not suffice for.
pub(crate) fn too_deep(detail: String) -> SqlError {
    let hint = "Split the statement, or use IN (...) or VALUES instead of long chains of operators.";
    SqlError::new("54001", "stack depth limit exceeded").detail(detail).hint(hint)
}

/// What the parser has tried, or would try, too many readings of.
pub(crate) fn too_many_readings() -> SqlError {
    too_complex("It can be read in too many ways.".to_owned())
}

/// What would take too long.
pub(crate) fn too_complex(detail: String) -> SqlError {
    let hint = "Split the statement, or put the values into a table and join that.";
    SqlError::new("54000", "statement is too complex").detail(detail).hint(hint)
}

/// Refuses what the planner would take too long for.
pub(crate) fn check(statement: &Statement) -> Result<()> {
    match statement.walk(&mut Count::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

#[derive(Default)]
struct Count {
    found: [usize; NUMBERS.len()],
    /// The windows of the queries around a place, the innermost last; of each its hash.
    windows: Vec<HashSet<u64>>,
}

impl Count {
    fn add(&mut self, what: usize, count: usize) -> ControlFlow<Box<SqlError>> {
        self.found[what] += count;
        self.compare(what, self.found[what])
    }

    fn compare(&self, what: usize, count: usize) -> ControlFlow<Box<SqlError>> {
        match NUMBERS[what] {
            (most, name) if count > most => {
                ControlFlow::Break(Box::new(too_complex(format!("It has more than {most} {name}."))))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// How many queries a set operation puts together; a tree of them may be deep.
fn members(body: &SetExpr) -> usize {
    let (mut count, mut rest) = (0, vec![body]);
    while let Some(body) = rest.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => rest.extend([&**left, &**right]),
            _ => count += 1,
        }
    }
    count
}

/// The hash of what parts and orders the rows of a window.
fn hash_of(window: &WindowType) -> u64 {
    let mut hasher = DefaultHasher::new();
    match window {
        WindowType::WindowSpec(spec) => (&spec.window_name, &spec.partition_by, &spec.order_by).hash(&mut hasher),
        WindowType::NamedWindow(name) => name.hash(&mut hasher),
    }
    hasher.finish()
}

impl Visitor for Count {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        interrupt::check().map_or_else(|error| ControlFlow::Break(Box::new(error)), ControlFlow::Continue)?;
        self.windows.push(HashSet::new());
        self.add(1, members(&query.body))?;
        self.add(2, query.with.as_ref().map_or(0, |with| with.cte_tables.len()))
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.windows.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<Self::Break> {
        self.windows.push(HashSet::new());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<Self::Break> {
        self.windows.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<Self::Break> {
        self.add(0, 1)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Case { conditions, .. } => self.compare(3, conditions.len()),
            Expr::Array(array) => self.compare(4, array.elem.len()),
            Expr::Function(function) => {
                if let (Some(window), Some(known)) = (&function.over, self.windows.last_mut()) {
                    known.insert(hash_of(window));
                    let count = known.len();
                    self.compare(5, count)?;
                }
                match &function.args {
                    FunctionArguments::List(list) => self.compare(4, list.args.len()),
                    _ => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A parser of these tokens that goes as deep as statements may.
pub(crate) fn parser<'a>(dialect: &'a SqlDialect, tokens: Vec<TokenWithSpan>) -> Parser<'a> {
    let parser = Parser::new(dialect).with_recursion_limit(NESTING_MAX * LEVELS_OF_NESTING);
    parser.with_tokens_with_locations(tokens)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::interrupt::cancel::{Reason, Token as StopToken};
    use crate::parsing::ParsedStatement;
    use crate::parsing::parse::parse;

    fn refused(text: &str) -> Option<&'static str> {
        let checked = parse(text).and_then(|parsed| match parsed {
            ParsedStatement::Statement(statement) => check(&statement),
            _ => Ok(()),
        });
        checked.err().map(|error| error.sqlstate)
    }

    fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
        format!("SELECT {}{inner}{}", open.repeat(depth), close.repeat(depth))
    }

    #[test]
    fn depth_is_counted_along_one_chain() {
        let many = DEPTH_MAX + 1;
        assert_eq!(refused(&format!("SELECT 1{}", "+1".repeat(many))), Some("54001"));
        assert_eq!(refused(&nested("(", "", "", NESTING_MAX * 2)), Some("54001"));
        assert_eq!(refused(&format!("SELECT 1{}", ", 1 + 1".repeat(many))), None);
        let row = ", (1, 2 + 3, CASE WHEN 1 = 1 THEN 2 END)";
        assert_eq!(refused(&format!("VALUES (1, 2, 3){}", row.repeat(DEPTH_MAX))), None);
        assert_eq!(refused(&format!("SELECT a = 1{}", " OR a = 1".repeat(DEPTH_MAX * 4))), None);
        assert_eq!(refused(&format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(DEPTH_MAX))), None);
    }

    #[test]
    fn whatever_nests_is_parsed_or_refused_but_not_tried_for_ever() {
        let nesting = [
            ("abs(", "1", ")"),
            ("coalesce(1, ", "1", ")"),
            ("(", "1", ")"),
            ("ARRAY[", "1", "]"),
            ("CASE WHEN true THEN ", "1", " END"),
            ("CASE 1 WHEN ", "1", " THEN 1 END"),
            ("cast(", "1", " AS int)"),
            ("1 IN (1, ", "1", ")"),
            ("position('a' IN ", "'a'", ")::text"),
            ("substring(", "'a'", " FROM 1)"),
            ("extract(year FROM ", "now()", ")"),
            ("trim(", "'a'", ")"),
            ("EXISTS (SELECT ", "1", ")"),
            ("(SELECT ", "1", ")"),
            ("array(SELECT ", "1", ")"),
            ("a[", "1", "]"),
        ];
        for (open, inner, close) in nesting {
            for depth in [20, 45, NESTING_MAX - 1] {
                assert_eq!(refused(&nested(open, inner, close, depth)), None, "{open} {depth} times");
            }
            for depth in [NESTING_MAX + 1, 20_000] {
                assert_eq!(refused(&nested(open, inner, close, depth)), Some("54001"), "{open} {depth} times");
            }
            // An error in the middle has the parser try whatever else each level might be.
            for wrong in [" 1 1", ")", "]", ", ,"] {
                assert!(refused(&nested(open, wrong, close, 60)).is_some(), "{open} {wrong}");
            }
        }
    }

    #[test]
    fn tables_that_nest_are_parsed_or_refused_but_not_tried_for_ever() {
        let from = |open: &str, inner: &str, close: &str, depth| {
            nested(open, inner, close, depth).replacen("SELECT ", "SELECT * FROM ", 1)
        };
        for (open, inner, close) in [
            ("(", "t CROSS JOIN t", ")"),
            ("(", "SELECT 1", ")"),
            ("(", "(SELECT 1) UNION SELECT 1", ")"),
            ("(SELECT * FROM ", "t", ") x"),
            ("(SELECT 1 IN (", "SELECT 1", "))"),
            ("(t CROSS JOIN ", "t", ")"),
            ("(", "t", " CROSS JOIN t)"),
            ("(", "(SELECT 1) y", " CROSS JOIN t)"),
        ] {
            for depth in [12, 40] {
                assert_eq!(refused(&from(open, inner, close, depth)), None, "{open} {depth} times");
            }
        }
        for (open, inner, close) in [
            ("((SELECT * FROM ", "t", ") x CROSS JOIN t)"),
            ("(((SELECT * FROM ", "t", ") x CROSS JOIN t) CROSS JOIN t)"),
            ("t, ((VALUES ((SELECT * FROM ", "t", "))) x CROSS JOIN t)"),
            ("((WITH a AS (SELECT * FROM ", "t", ") SELECT 1) x CROSS JOIN t)"),
            ("t JOIN ((SELECT * FROM ", "t", ") x CROSS JOIN t) ON true"),
            ("(SELECT 1 IN ((SELECT * FROM ", "t", "))) x"),
        ] {
            assert_eq!(refused(&from(open, inner, close, 6)), None, "{open}");
            assert!(matches!(refused(&from(open, inner, close, 40)), None | Some("54000")), "{open}");
            for wrong in ["+", "t t t", ")", ""] {
                assert!(refused(&from(open, wrong, close, 40)).is_some(), "{open} {wrong}");
            }
        }
        let queries = "SELECT ((SELECT ".to_owned() + &"((SELECT ".repeat(40) + "1" + &"))".repeat(41);
        assert_eq!(refused(&queries), None);
    }

    #[test]
    fn numbers_are_limited() {
        let row = |item: &str, count: usize| vec![item; count].join(", ");
        for (of, with) in [
            ("SELECT 1 FROM ", "t"),
            ("SELECT ARRAY[", "1"),
            ("SELECT greatest(", "1"),
            ("WITH ", "a AS (SELECT 1)"),
            ("SELECT CASE", " WHEN true THEN 1"),
            ("SELECT 1", " UNION SELECT 1 EXCEPT SELECT 1"),
        ] {
            let few = if with == "t" { 500 } else { 900 };
            let text = |count| match with.starts_with(' ') {
                true => format!("{of}{}", with.repeat(count)),
                false => format!("{of}{}", row(with, count)),
            };
            let close = match of {
                "SELECT ARRAY[" => "]",
                "SELECT greatest(" => ")",
                "WITH " => " SELECT 1",
                "SELECT CASE" => " END",
                _ => "",
            };
            assert_eq!(refused(&(text(few) + close)), None, "{of}");
            assert!(matches!(refused(&(text(20_001) + close)), Some("54000" | "54001")), "{of}");
        }
    }

    #[test]
    fn windows_are_counted_that_differ() {
        let query = |count: usize, window: &dyn Fn(usize) -> String| {
            let calls: Vec<String> = (0..count).map(|at| format!("sum(a + {at}) OVER ({})", window(at))).collect();
            format!("SELECT {} FROM t", calls.join(", "))
        };
        let differ = |at: usize| format!("PARTITION BY a % {at}");
        assert_eq!(refused(&query(200, &differ)), None);
        assert_eq!(refused(&query(201, &differ)), Some("54000"));
        assert_eq!(refused(&query(1_000, &|at| format!("ORDER BY a ROWS {at} PRECEDING"))), None);
        let (some, others) = (query(150, &differ), query(150, &|at| format!("ORDER BY a % {at}")));
        assert_eq!(refused(&format!("{some} UNION ALL {others}")), None);
        assert_eq!(refused(&format!("SELECT * FROM ({some}) x, ({others}) y")), None);
    }

    #[test]
    fn a_parser_stops_when_its_statement_does() {
        let token = Arc::new(StopToken::default());
        let _scope = interrupt::enter(&token);
        for text in ["SELECT 1".to_owned(), nested("abs(", "1", ")", 100), format!("SELECT 1{}", ", 1".repeat(10_000))]
        {
            assert_eq!(refused(&text), None);
            let stopped = Arc::new(StopToken::default());
            stopped.cancel(Reason::User);
            let _scope = interrupt::enter(&stopped);
            assert_eq!(refused(&text), Some("57014"));
        }
    }
}
