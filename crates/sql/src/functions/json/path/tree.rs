//! A path of SQL/JSON as a tree, and the text in which PostgreSQL shows it.
use std::fmt::{self, Write};

use engine::json::Json;

use crate::functions::texts::regexp::matcher::Matcher;

/// A path.
pub(crate) struct JsonPath {
    pub(super) is_strict: bool,
    pub(super) root: Node,
}

/// What a path begins with, and the steps from there.
pub(super) struct Node {
    pub(super) head: Head,
    pub(super) steps: Vec<Step>,
}

pub(super) enum Head {
    Value(Json),
    Variable(String),
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    Binary(Operator, Box<[Node; 2]>),
    Unary(Operator, Box<Node>),
    Like(Box<Like>),
}

/// `like_regex`.
pub(super) struct Like {
    pub(super) value: Node,
    pub(super) pattern: String,
    pub(super) flags: String,
    pub(super) matcher: Matcher,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    StartsWith,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Plus,
    Minus,
    Not,
    IsUnknown,
    Exists,
}

pub(super) enum Step {
    /// `.key`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyItem,
    /// `[1, 2 to 3]`
    Items(Vec<(Node, Option<Node>)>),
    /// `.**{1 to 2}`
    Any {
        first: u32,
        last: u32,
    },
    /// `?(...)`
    Filter(Node),
    Method(Method),
    /// `.datetime(...)`
    Datetime(Option<String>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Abs,
    Size,
    Type,
    Floor,
    Double,
    Ceiling,
    KeyValue,
}

/// The level of `last` behind `**`.
pub(super) const LAST_LEVEL: u32 = u32::MAX;

impl Method {
    pub(super) const ALL: [Method; 7] =
        [Method::Abs, Method::Size, Method::Type, Method::Floor, Method::Double, Method::Ceiling, Method::KeyValue];

    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Abs => "abs",
            Method::Size => "size",
            Method::Type => "type",
            Method::Floor => "floor",
            Method::Double => "double",
            Method::Ceiling => "ceiling",
            Method::KeyValue => "keyvalue",
        }
    }
}

impl Operator {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Operator::Or => "||",
            Operator::And => "&&",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::StartsWith => "starts with",
            Operator::Add | Operator::Plus => "+",
            Operator::Subtract | Operator::Minus => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Modulo => "%",
            Operator::Not => "!",
            Operator::IsUnknown => "is unknown",
            Operator::Exists => "exists",
        }
    }

    fn rank(self) -> u8 {
        match self {
            Operator::Or => 0,
            Operator::And => 1,
            Operator::Add | Operator::Subtract => 3,
            Operator::Multiply | Operator::Divide | Operator::Modulo => 4,
            Operator::Plus | Operator::Minus => 5,
            Operator::Not | Operator::IsUnknown | Operator::Exists => 6,
            _ => 2,
        }
    }

    pub(super) fn is_arithmetic(self) -> bool {
        matches!(self.rank(), 3..=5)
    }
}

impl Node {
    pub(super) fn of(head: Head) -> Node {
        Node { head, steps: Vec::new() }
    }

    fn rank(&self) -> u8 {
        match &self.head {
            Head::Binary(op, _) | Head::Unary(op, _) => op.rank(),
            _ => 6,
        }
    }

    fn write(&self, out: &mut impl Write, in_brackets: bool) -> fmt::Result {
        self.write_head(out, in_brackets)?;
        self.steps.iter().try_for_each(|step| step.write(out))
    }

    fn write_head(&self, out: &mut impl Write, in_brackets: bool) -> fmt::Result {
        let (open, close) = if in_brackets { ("(", ")") } else { ("", "") };
        match &self.head {
            // A point behind it would be one of the number.
            Head::Value(Json::Number(number)) if !self.steps.is_empty() => write!(out, "({number})"),
            Head::Value(value) => write!(out, "{value}"),
            Head::Variable(name) => write!(out, "${}", Json::quote(name)),
            Head::Root => out.write_char('$'),
            Head::Current => out.write_char('@'),
            Head::Last => out.write_str("last"),
            Head::Binary(op, sides) => {
                let [left, right] = &**sides;
                out.write_str(open)?;
                left.write(out, left.rank() <= op.rank())?;
                write!(out, " {} ", op.sign())?;
                right.write(out, right.rank() <= op.rank())?;
                out.write_str(close)
            }
            Head::Unary(op @ (Operator::Plus | Operator::Minus), of) => {
                write!(out, "{open}{}", op.sign())?;
                of.write(out, of.rank() <= op.rank())?;
                out.write_str(close)
            }
            Head::Unary(op, of) => {
                let (before, behind) = match op {
                    Operator::Not => ("!(", ")"),
                    Operator::IsUnknown => ("(", ") is unknown"),
                    _ => ("exists (", ")"),
                };
                out.write_str(before)?;
                of.write(out, false)?;
                out.write_str(behind)
            }
            Head::Like(like) => {
                out.write_str(open)?;
                like.value.write(out, true)?;
                write!(out, " like_regex {}", Json::quote(&like.pattern))?;
                if !like.flags.is_empty() {
                    write!(out, " flag \"{}\"", like.flags)?;
                }
                out.write_str(close)
            }
        }
    }
}

impl Step {
    fn write(&self, out: &mut impl Write) -> fmt::Result {
        match self {
            Step::Key(key) => write!(out, ".{}", Json::quote(key)),
            Step::AnyKey => out.write_str(".*"),
            Step::AnyItem => out.write_str("[*]"),
            Step::Items(items) => {
                for (at, (from, to)) in items.iter().enumerate() {
                    out.write_char(if at == 0 { '[' } else { ',' })?;
                    from.write(out, false)?;
                    if let Some(to) = to {
                        out.write_str(" to ")?;
                        to.write(out, false)?;
                    }
                }
                out.write_char(']')
            }
            Step::Any { first: 0, last: LAST_LEVEL } => out.write_str(".**"),
            Step::Any { first, last } if first == last => write!(out, ".**{{{}}}", Level(*first)),
            Step::Any { first, last } => write!(out, ".**{{{} to {}}}", Level(*first), Level(*last)),
            Step::Filter(condition) => {
                out.write_str("?(")?;
                condition.write(out, false)?;
                out.write_char(')')
            }
            Step::Method(method) => write!(out, ".{}()", method.name()),
            Step::Datetime(None) => out.write_str(".datetime()"),
            Step::Datetime(Some(template)) => write!(out, ".datetime({})", Json::quote(template)),
        }
    }
}

/// A level of `**`.
struct Level(u32);

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            LAST_LEVEL => f.write_str("last"),
            level => write!(f, "{level}"),
        }
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_strict { "strict " } else { "" })?;
        self.root.write(f, true)
    }
}
