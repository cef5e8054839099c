//! The tokens of a path as a tree: PostgreSQL's grammar, by recursive descent.
//!
//! What stands in parentheses may be a value or a condition, and which of both it is decides what may follow. So each part is read
//! with its kind, and what takes a part of the other kind takes nothing: the token behind the part is then the one that is wrong.
use engine::json::{Json, JsonNumber};

use super::lexer::{Token, TokenKind, tokens, wrong};
use super::tree::{Head, JsonPath, LAST_LEVEL, Like, Method, Node, Operator, Step};
use crate::error::SqlError;
use crate::functions::texts::regexp::matcher::Matcher;
use crate::functions::texts::regexp::syntax::Flags;

/// How many levels a tree has at most. Each takes a part of the stack, also when it is walked through and given up.
const LEVELS_MAX: usize = 500;

type Parsed<T> = Result<T, SqlError>;

/// A part, and whether it is a condition.
struct Part {
    node: Node,
    is_condition: bool,
    levels: usize,
}

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// PostgreSQL's of a text that is none.
    pub(crate) fn parse(text: &str) -> Parsed<JsonPath> {
        let mut parser =
            Parser { text, tokens: tokens(text), at: 0, levels: 0, filters: 0, subscripts: 0, misplaced: None };
        if let [Token { kind: TokenKind::End, .. }] = &parser.tokens[..] {
            return Err(SqlError::new("22P02", format!("invalid input syntax for type jsonpath: \"{text}\"")));
        }
        let is_strict = parser.take_word("strict");
        if !is_strict {
            parser.take_word("lax");
        }
        let root = parser.part()?.node;
        match (parser.kind() == &TokenKind::End, parser.misplaced) {
            (false, _) => Err(parser.wrong()),
            (true, Some(what)) => Err(SqlError::syntax(what)),
            (true, None) => Ok(JsonPath { is_strict, root }),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    levels: usize,
    filters: usize,
    subscripts: usize,
    /// What stands where it has no meaning, which is told once the grammar is content.
    misplaced: Option<&'static str>,
}

fn too_deep() -> SqlError {
    SqlError::new("54001", "stack depth limit exceeded").detail(format!("A path has at most {LEVELS_MAX} levels."))
}

/// A part that joins others.
fn joined(head: Head, is_condition: bool, levels: usize) -> Parsed<Part> {
    match levels < LEVELS_MAX {
        true => Ok(Part { node: Node::of(head), is_condition, levels: levels + 1 }),
        false => Err(too_deep()),
    }
}

fn two(op: Operator, left: Part, right: Part, is_condition: bool) -> Parsed<Part> {
    let levels = left.levels.max(right.levels);
    joined(Head::Binary(op, Box::new([left.node, right.node])), is_condition, levels)
}

impl Parser<'_> {
    fn kind(&self) -> &TokenKind {
        self.peek(0)
    }

    fn peek(&self, ahead: usize) -> &TokenKind {
        self.tokens.get(self.at + ahead).map_or(&TokenKind::End, |token| &token.kind)
    }

    /// The error at the next token.
    fn wrong(&self) -> SqlError {
        if let TokenKind::Wrong(error) = self.kind() {
            return error.as_ref().clone();
        }
        let place = self.tokens.get(self.at).map(|token| token.place.clone()).unwrap_or_default();
        wrong("syntax error", self.text.get(place).unwrap_or_default())
    }

    fn is_sign(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.peek(ahead), TokenKind::Sign(found) if *found == sign)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is_there = self.is_sign(0, sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.wrong()) }
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        match self.peek(ahead) {
            // These have no capital letters.
            TokenKind::Word(found) if matches!(word, "null" | "true" | "false") => found == word,
            TokenKind::Word(found) => found.eq_ignore_ascii_case(word),
            _ => false,
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(0, word);
        self.at += usize::from(is_there);
        is_there
    }

    fn take_text(&mut self) -> Parsed<String> {
        match self.kind() {
            TokenKind::Text(text) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.wrong()),
        }
    }

    /// Reads what is a level further in.
    fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.levels >= LEVELS_MAX {
            return Err(too_deep());
        }
        self.levels += 1;
        let done = stacker::maybe_grow(256 << 10, 4 << 20, || read(self));
        self.levels -= 1;
        done
    }

    /// A part of either kind.
    fn part(&mut self) -> Parsed<Part> {
        let mut left = self.conjunction()?;
        while left.is_condition && self.take_sign("||") {
            let right = self.conjunction()?;
            left = two(Operator::Or, left, self.condition_of(right)?, true)?;
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Parsed<Part> {
        let mut left = self.comparison()?;
        while left.is_condition && self.take_sign("&&") {
            let right = self.comparison()?;
            left = two(Operator::And, left, self.condition_of(right)?, true)?;
        }
        Ok(left)
    }

    fn condition_of(&self, part: Part) -> Parsed<Part> {
        if part.is_condition { Ok(part) } else { Err(self.wrong()) }
    }

    fn value_of(&self, part: Part) -> Parsed<Part> {
        if part.is_condition { Err(self.wrong()) } else { Ok(part) }
    }

    /// A condition in parentheses.
    fn enclosed(&mut self) -> Parsed<Part> {
        self.expect("(")?;
        let part = self.within(Self::part)?;
        let part = self.condition_of(part)?;
        self.expect(")")?;
        Ok(part)
    }

    fn comparison(&mut self) -> Parsed<Part> {
        if self.take_sign("!") {
            let of = if self.is_word(0, "exists") { self.exists()? } else { self.enclosed()? };
            return joined(Head::Unary(Operator::Not, Box::new(of.node)), true, of.levels);
        }
        if self.is_word(0, "exists") {
            return self.exists();
        }
        let left = self.sum()?;
        if left.is_condition {
            return Ok(left);
        }
        const COMPARISONS: [Operator; 6] = [
            Operator::Equal,
            Operator::NotEqual,
            Operator::LessOrEqual,
            Operator::GreaterOrEqual,
            Operator::Less,
            Operator::Greater,
        ];
        if let Some(op) = COMPARISONS.into_iter().find(|op| self.is_sign(0, op.sign())) {
            self.at += 1;
            let right = self.sum()?;
            return two(op, left, self.value_of(right)?, true);
        }
        if self.take_word("starts") {
            return self.starts_with(left);
        }
        if self.take_word("like_regex") {
            return self.like(left);
        }
        Ok(left)
    }

    fn exists(&mut self) -> Parsed<Part> {
        self.at += 1;
        self.expect("(")?;
        let of = self.within(Self::sum)?;
        let of = self.value_of(of)?;
        self.expect(")")?;
        joined(Head::Unary(Operator::Exists, Box::new(of.node)), true, of.levels)
    }

    fn starts_with(&mut self, left: Part) -> Parsed<Part> {
        if !self.take_word("with") {
            return Err(self.wrong());
        }
        let head = match self.kind() {
            TokenKind::Text(text) => Head::Value(Json::Text(text.clone())),
            TokenKind::Variable(name) => Head::Variable(name.clone()),
            _ => return Err(self.wrong()),
        };
        self.at += 1;
        let right = Part { node: Node::of(head), is_condition: false, levels: 1 };
        two(Operator::StartsWith, left, right, true)
    }

    fn like(&mut self, left: Part) -> Parsed<Part> {
        let pattern = self.take_text()?;
        let letters = if self.take_word("flag") { self.take_text()? } else { String::new() };
        if let Some(letter) = letters.chars().find(|letter| !"ismxq".contains(*letter)) {
            let detail = format!("Unrecognized flag character \"{letter}\" in LIKE_REGEX predicate.");
            return Err(SqlError::syntax("invalid input syntax for type jsonpath").detail(detail));
        }
        let has = |letter: char| letters.contains(letter);
        if has('x') && !has('q') {
            let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
            return Err(SqlError::new("0A000", message));
        }
        let newlines = match (has('s'), has('m')) {
            (false, false) => "p",
            (true, false) => "s",
            (false, true) => "n",
            (true, true) => "w",
        };
        let others: String = letters.chars().filter(|letter| "iq".contains(*letter)).collect();
        let matcher = Matcher::new(&pattern, Flags::read(&format!("{newlines}{others}"), false)?)?;
        let flags = "ismxq".chars().filter(|letter| has(*letter)).collect();
        joined(Head::Like(Box::new(Like { value: left.node, pattern, flags, matcher })), true, left.levels)
    }

    fn sum(&mut self) -> Parsed<Part> {
        let mut left = self.product()?;
        while !left.is_condition {
            let op = match self.kind() {
                TokenKind::Sign("+") => Operator::Add,
                TokenKind::Sign("-") => Operator::Subtract,
                _ => break,
            };
            self.at += 1;
            let right = self.product()?;
            left = two(op, left, self.value_of(right)?, false)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Parsed<Part> {
        let mut left = self.signed()?;
        while !left.is_condition {
            let op = match self.kind() {
                TokenKind::Sign("*") => Operator::Multiply,
                TokenKind::Sign("/") => Operator::Divide,
                TokenKind::Sign("%") => Operator::Modulo,
                _ => break,
            };
            self.at += 1;
            let right = self.signed()?;
            left = two(op, left, self.value_of(right)?, false)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Parsed<Part> {
        let op = match self.kind() {
            TokenKind::Sign("+") => Operator::Plus,
            TokenKind::Sign("-") => Operator::Minus,
            _ => return self.path(),
        };
        self.at += 1;
        let of = self.within(Self::signed)?;
        let of = self.value_of(of)?;
        match (&of.node.head, op) {
            (Head::Value(Json::Number(_)), Operator::Plus) if of.node.steps.is_empty() => Ok(of),
            (Head::Value(Json::Number(number)), _) if of.node.steps.is_empty() => {
                let negated = number.negated();
                Ok(Part { node: Node::of(Head::Value(Json::Number(negated))), ..of })
            }
            _ => joined(Head::Unary(op, Box::new(of.node)), false, of.levels),
        }
    }

    /// What steps begin with, and the steps.
    fn path(&mut self) -> Parsed<Part> {
        let mut part = match self.take_sign("(") {
            true => {
                let part = self.within(Self::part)?;
                self.expect(")")?;
                if part.is_condition && self.is_word(0, "is") {
                    self.at += 1;
                    if !self.take_word("unknown") {
                        return Err(self.wrong());
                    }
                    return joined(Head::Unary(Operator::IsUnknown, Box::new(part.node)), true, part.levels);
                }
                part
            }
            false => Part { node: Node::of(self.head()?), is_condition: false, levels: 1 },
        };
        while let Some((step, levels)) = self.step()? {
            part.node.steps.push(step);
            part.is_condition = false;
            part.levels = part.levels.max(levels + 1);
        }
        if part.levels > LEVELS_MAX { Err(too_deep()) } else { Ok(part) }
    }

    fn head(&mut self) -> Parsed<Head> {
        let head = match self.kind() {
            TokenKind::Text(text) => Head::Value(Json::Text(text.clone())),
            TokenKind::Variable(name) => Head::Variable(name.clone()),
            TokenKind::Number(digits) => {
                let number = JsonNumber::read(digits);
                let number = number.ok_or_else(|| SqlError::new("22003", "value overflows numeric format"))?;
                Head::Value(Json::Number(number))
            }
            TokenKind::Sign("$") => Head::Root,
            TokenKind::Sign("@") => {
                if self.filters == 0 {
                    self.misplaced = self.misplaced.or(Some("@ is not allowed in root expressions"));
                }
                Head::Current
            }
            _ if self.is_word(0, "null") => Head::Value(Json::Null),
            _ if self.is_word(0, "true") => Head::Value(Json::Boolean(true)),
            _ if self.is_word(0, "false") => Head::Value(Json::Boolean(false)),
            _ if self.is_word(0, "last") => {
                if self.subscripts == 0 {
                    self.misplaced = self.misplaced.or(Some("LAST is allowed only in array subscripts"));
                }
                Head::Last
            }
            _ => return Err(self.wrong()),
        };
        self.at += 1;
        Ok(head)
    }

    /// A step and how many levels it has, if one follows.
    fn step(&mut self) -> Parsed<Option<(Step, usize)>> {
        if self.take_sign(".") {
            return Ok(Some((self.member()?, 0)));
        }
        if self.take_sign("?") {
            self.filters += 1;
            let condition = self.enclosed()?;
            self.filters -= 1;
            return Ok(Some((Step::Filter(condition.node), condition.levels)));
        }
        if !self.take_sign("[") {
            return Ok(None);
        }
        if self.take_sign("*") {
            self.expect("]")?;
            return Ok(Some((Step::AnyItem, 0)));
        }
        let (mut items, mut levels) = (Vec::new(), 0);
        self.subscripts += 1;
        loop {
            let from = self.subscript(&mut levels)?;
            let to = if self.take_word("to") { Some(self.subscript(&mut levels)?) } else { None };
            items.push((from, to));
            if !self.take_sign(",") {
                break;
            }
        }
        self.subscripts -= 1;
        self.expect("]")?;
        Ok(Some((Step::Items(items), levels)))
    }

    fn subscript(&mut self, levels: &mut usize) -> Parsed<Node> {
        let part = self.within(Self::sum)?;
        let part = self.value_of(part)?;
        *levels = part.levels.max(*levels);
        Ok(part.node)
    }

    /// What follows a point.
    fn member(&mut self) -> Parsed<Step> {
        if self.take_sign("*") {
            return Ok(Step::AnyKey);
        }
        if self.take_sign("**") {
            return self.levels_of_any();
        }
        let is_call = self.is_sign(1, "(");
        let step = match self.kind() {
            TokenKind::Text(key) => Step::Key(key.clone()),
            TokenKind::Word(_) if is_call && self.is_word(0, "datetime") => {
                self.at += 2;
                let template = if self.is_sign(0, ")") { None } else { Some(self.take_text()?) };
                self.expect(")")?;
                return Ok(Step::Datetime(template));
            }
            TokenKind::Word(word) => {
                let method = Method::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(word));
                if let Some(method) = method.filter(|_| is_call) {
                    self.at += 2;
                    self.expect(")")?;
                    return Ok(Step::Method(method));
                }
                Step::Key(word.clone())
            }
            _ => return Err(self.wrong()),
        };
        self.at += 1;
        Ok(step)
    }

    fn levels_of_any(&mut self) -> Parsed<Step> {
        if !self.take_sign("{") {
            return Ok(Step::Any { first: 0, last: LAST_LEVEL });
        }
        let first = self.level()?;
        let last = if self.take_word("to") { self.level()? } else { first };
        self.expect("}")?;
        Ok(Step::Any { first, last })
    }

    fn level(&mut self) -> Parsed<u32> {
        if self.take_word("last") {
            return Ok(LAST_LEVEL);
        }
        let TokenKind::Number(digits) = self.kind() else { return Err(self.wrong()) };
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(self.wrong());
        }
        let level = digits.parse::<i32>().ok().and_then(|level| u32::try_from(level).ok());
        let out_of_range = || SqlError::new("22003", format!("value \"{digits}\" is out of range for type integer"));
        let level = level.ok_or_else(out_of_range)?;
        self.at += 1;
        Ok(level)
    }
}
