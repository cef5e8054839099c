//! PostgreSQL's dialect, and the standard's `FOR SYSTEM_TIME AS OF` after a table's name, which PostgreSQL has not.
use std::any::TypeId;
use std::cell::Cell;

use datafusion::sql::sqlparser::ast::{Expr, Statement};
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::interrupt;
use crate::syntax::{infix, operators, reserved, set_queries};

/// How many steps the parser may take for a statement, and how many more for each of its tokens. It tries one reading after
/// the other, and where these are within each other each level may double its work.
const STEPS: u64 = 200_000;
const STEPS_OF_TOKEN: u64 = 32;

/// How many steps the parser may take for a statement of so many tokens.
pub(crate) fn steps_of(tokens: usize) -> u64 {
    STEPS + STEPS_OF_TOKEN * u64::try_from(tokens).unwrap_or(u64::MAX / STEPS_OF_TOKEN / 2)
}

/// What statements are written in.
#[derive(Debug, Default)]
pub(crate) struct SqlDialect {
    postgres: PostgreSqlDialect,
    /// How many steps may be taken yet; as many as are needed where nobody counts.
    steps: Option<Cell<u64>>,
    /// Only where a statement says SYSTEM_TIME does the parser look for it: along with it, it would take names such as
    /// `at` and `changes` after a table for clauses of other systems.
    reads_past: bool,
    /// `a JOIN b JOIN c ON ... ON ...` puts `b` and `c` together first. Beside a NATURAL join, which has no ON, the parser would take
    /// every join after it for one of these, so that parentheses are needed there.
    nests_joins: bool,
}

impl SqlDialect {
    /// The dialect for a statement of these tokens.
    pub(crate) fn of(tokens: &[TokenWithSpan]) -> SqlDialect {
        let has = |wanted: Keyword| {
            tokens.iter().any(|token| matches!(&token.token, Token::Word(word) if word.keyword == wanted))
        };
        SqlDialect {
            postgres: PostgreSqlDialect {},
            steps: Some(Cell::new(steps_of(tokens.len()))),
            reads_past: has(Keyword::SYSTEM_TIME),
            nests_joins: !has(Keyword::NATURAL),
        }
    }

    /// Whether the parser has given up.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps.as_ref().is_some_and(|steps| steps.get() == 0)
    }

    /// A step of the parser. The error is the one after which it tries nothing else.
    fn step(&self) -> Result<(), ParserError> {
        let Some(steps) = &self.steps else { return Ok(()) };
        match steps.get() {
            0 => Err(ParserError::RecursionLimitExceeded),
            left => {
                steps.set(if interrupt::check().is_ok() { left - 1 } else { 0 });
                Ok(())
            }
        }
    }
}

macro_rules! as_postgres {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            self.postgres.$name()
        })*
    };
}

/// Everything that PostgreSQL's dialect decides, but for the past, and for the names of arguments: with expressions as names
/// the parser would read each argument twice, and what is nested in it twice at each level.
impl Dialect for SqlDialect {
    fn dialect(&self) -> TypeId {
        self.postgres.dialect()
    }

    fn supports_table_versioning(&self) -> bool {
        self.reads_past
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        !self.nests_joins
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.postgres.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        self.postgres.is_delimited_identifier_start(letter)
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        self.postgres.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        self.postgres.is_identifier_part(letter)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.postgres.is_reserved_for_identifier(keyword)
    }

    fn is_custom_operator_part(&self, letter: char) -> bool {
        self.postgres.is_custom_operator_part(letter)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        if let Err(error) = self.step() {
            return Some(Err(error));
        }
        match operators::precedence(self, &parser.peek_token_ref().token) {
            Some(precedence) => Some(Ok(precedence)),
            None => self.postgres.get_next_precedence(parser),
        }
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match self.step() {
            Ok(()) => match reserved::expression(parser) {
                Ok(None) => match set_queries::expression(parser) {
                    Ok(None) => operators::prefixed(self, parser).transpose(),
                    read => read.transpose(),
                },
                read => read.transpose(),
            },
            Err(error) => Some(Err(error)),
        }
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        let read = infix::parse(self, parser, left)?;
        if let (Ok((_, cost)), Some(steps)) = (&read, &self.steps) {
            steps.set(steps.get().saturating_sub(*cost));
        }
        Some(read.map(|(expr, _)| expr))
    }

    fn is_select_item_alias(&self, explicit: bool, word: &Keyword, _: &mut Parser) -> bool {
        explicit || reserved::is_bare_label(*word)
    }

    fn is_table_factor_alias(&self, explicit: bool, word: &Keyword, _: &mut Parser) -> bool {
        explicit || reserved::is_bare_alias(*word)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.postgres.prec_value(precedence)
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        self.postgres.parse_statement(parser)
    }

    as_postgres!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_comment_optimizer_hint,
    );
}
