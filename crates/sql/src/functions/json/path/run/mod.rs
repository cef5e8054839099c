//! A path walked through a value.
//!
//! Each part of a path is applied to one item and gives any number of items, to a list if somebody wants them, or else only whether
//! there are any. Where there is no part that a path asks for, it gives nothing if it is lax, and an error if it is strict; a lax
//! path opens arrays where a step or an operator takes no array, and takes any other item for an array of one.
//!
//! | file | subject |
//! |---|---|
//! | `items` | items and their parts |
//! | `steps` | what follows a point or stands in brackets |
//! | `conditions` | comparisons and what joins them, with an unknown truth |
//! | `arithmetic` | `+ - * / %` |
//! | `methods` | `.size()` and its like |
//! | `layout` | where PostgreSQL would keep an object, which `.keyvalue()` tells |
mod arithmetic;
mod conditions;
mod items;
mod layout;
mod methods;
mod steps;

use engine::json::{Json, JsonNumber};

use self::conditions::Truth;
use self::items::Item;
use super::tree::{Head, JsonPath, Node, Operator, Step};
use crate::error::SqlError;
use crate::interrupt;

/// How deep parts may be within each other, steps behind each other among them.
const DEPTH_MAX: usize = 5_000;

/// So many parts are worked on between two looks whether the statement is to stop.
const PARTS_AT_ONCE: u32 = 1_024;

/// What a path is applied to.
pub(super) struct Subject<'a> {
    pub(super) root: &'a Json,
    pub(super) variables: Option<&'a Json>,
    /// Whether errors of the path are none of the statement.
    pub(super) is_silent: bool,
    /// Whether dates and times may be compared by the session's zone.
    pub(super) uses_zone: bool,
}

/// Why there is no answer.
pub(super) enum Failure {
    /// An error of the path, which conditions take for unknown, and silent callers for no answer. Nobody makes its words if nobody
    /// reads them.
    OfPath(Option<SqlError>),
    /// Any other.
    Other(SqlError),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Other(error)
    }
}

type Outcome<T> = Result<T, Failure>;

/// Where items go, if somebody wants them; else the first of them is enough.
type Found<'f, 'a> = Option<&'f mut Vec<Item<'a>>>;

struct Run<'a> {
    path: &'a JsonPath,
    subject: Subject<'a>,
    /// `@`
    current: Item<'a>,
    /// the object from whose place `.keyvalue()` counts, and its number
    base: (Item<'a>, i64),
    objects: i64,
    /// the length of the innermost array that subscripts are of
    length: Option<usize>,
    ignores_structure: bool,
    is_silent: bool,
    depth: usize,
    parts: u32,
}

impl JsonPath {
    /// The items that it gives, and whether these are all: those before an error that nobody wants to know.
    pub(super) fn items(&self, subject: Subject<'_>) -> Result<(Vec<Json>, bool), SqlError> {
        let mut run = Run::new(self, subject);
        let mut found = Vec::new();
        let root = Item::Part(run.subject.root);
        let outcome = run.node(&self.root, root, Some(&mut found));
        let is_whole = ended(outcome)?.is_some();
        Ok((found.into_iter().map(Item::into_json).collect(), is_whole))
    }

    /// Whether it gives items; `None` where it fails and nobody wants to know.
    pub(super) fn has_items(&self, subject: Subject<'_>) -> Result<Option<bool>, SqlError> {
        if self.is_strict {
            // All of them are looked at, as one may be an error.
            let (items, is_whole) = self.items(subject)?;
            return Ok(is_whole.then_some(!items.is_empty()));
        }
        let mut run = Run::new(self, subject);
        let root = Item::Part(run.subject.root);
        let outcome = run.node(&self.root, root, None);
        ended(outcome)
    }
}

fn ended<T>(outcome: Outcome<T>) -> Result<Option<T>, SqlError> {
    match outcome {
        Ok(done) => Ok(Some(done)),
        Err(Failure::OfPath(Some(error)) | Failure::Other(error)) => Err(error),
        Err(Failure::OfPath(None)) => Ok(None),
    }
}

impl<'a> Run<'a> {
    fn new(path: &'a JsonPath, subject: Subject<'a>) -> Run<'a> {
        let root = Item::Part(subject.root);
        let (is_silent, has_variables) = (subject.is_silent, subject.variables.is_some());
        Run {
            path,
            subject,
            current: root.clone(),
            base: (root, 0),
            objects: 1 + i64::from(has_variables),
            length: None,
            ignores_structure: !path.is_strict,
            is_silent,
            depth: 0,
            parts: 0,
        }
    }

    /// Whether the path is lax.
    fn is_lax(&self) -> bool {
        !self.path.is_strict
    }

    /// An error of the path.
    fn failed(&self, sqlstate: &'static str, message: impl FnOnce() -> String) -> Failure {
        Failure::OfPath((!self.is_silent).then(|| SqlError::new(sqlstate, message())))
    }

    /// Likewise, with its words made.
    fn failed_with(&self, error: SqlError) -> Failure {
        Failure::OfPath((!self.is_silent).then_some(error))
    }

    /// A part that is not there: an error where the structure matters.
    fn missing(&self, sqlstate: &'static str, message: impl FnOnce() -> String) -> Outcome<bool> {
        if self.ignores_structure { Ok(false) } else { Err(self.failed(sqlstate, message)) }
    }

    /// Does what is a level further in.
    fn within<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.parts += 1;
        if self.parts.is_multiple_of(PARTS_AT_ONCE) {
            interrupt::check()?;
        }
        if self.depth >= DEPTH_MAX {
            return Err(SqlError::new("54001", "stack depth limit exceeded").into());
        }
        self.depth += 1;
        let done = stacker::maybe_grow(128 << 10, 4 << 20, || work(self));
        self.depth -= 1;
        done
    }

    /// Applies a path to an item; whether it gave anything.
    fn node(&mut self, node: &'a Node, item: Item<'a>, found: Found<'_, 'a>) -> Outcome<bool> {
        let opens = self.is_lax();
        self.step(node, 0, item, found, opens)
    }

    /// Applies the rest of a path, from its head, which is number 0, or from a step on. `opens` where an array is opened for a step
    /// that takes none.
    fn step(&mut self, node: &'a Node, at: usize, item: Item<'a>, found: Found<'_, 'a>, opens: bool) -> Outcome<bool> {
        self.within(|run| match at.checked_sub(1).and_then(|at| node.steps.get(at)) {
            None => run.head(node, item, found),
            Some(Step::Key(key)) => run.key(node, at, key, item, found, opens),
            Some(Step::AnyKey) => run.any_key(node, at, item, found, opens),
            Some(Step::AnyItem) => run.any_item(node, at, item, found),
            Some(Step::Items(items)) => run.items(node, at, items, item, found),
            Some(Step::Any { first, last }) => run.any(node, at, (*first, *last), item, found),
            Some(Step::Filter(condition)) => run.filter(node, at, condition, item, found, opens),
            Some(Step::Method(method)) => run.method(node, at, *method, item, found, opens),
            Some(Step::Datetime(template)) => run.datetime(node, at, template.as_deref(), item, found, opens),
        })
    }

    /// Gives an item to the steps behind number `at`.
    fn next(&mut self, node: &'a Node, at: usize, item: Item<'a>, found: Found<'_, 'a>) -> Outcome<bool> {
        if at < node.steps.len() {
            let opens = self.is_lax();
            return self.step(node, at + 1, item, found, opens);
        }
        if let Some(found) = found {
            found.push(item);
        }
        Ok(true)
    }

    fn head(&mut self, node: &'a Node, item: Item<'a>, found: Found<'_, 'a>) -> Outcome<bool> {
        // A value that nobody wants is not worked out.
        let is_wanted = found.is_some() || !node.steps.is_empty();
        match &node.head {
            Head::Root => {
                let root = Item::Part(self.subject.root);
                self.with_base((root.clone(), 0), |run| run.next(node, 0, root, found))
            }
            Head::Current => {
                let current = self.current.clone();
                self.next(node, 0, current, found)
            }
            Head::Last => {
                let Some(length) = self.length else {
                    let message = "evaluating jsonpath LAST outside of array subscript";
                    return Err(SqlError::new("XX000", message).into());
                };
                if !is_wanted {
                    return Ok(true);
                }
                let last = i64::try_from(length).unwrap_or(i64::MAX) - 1;
                self.next(node, 0, Item::number(JsonNumber::from(last)), found)
            }
            Head::Value(_) if !is_wanted => Ok(true),
            Head::Value(value) => self.next(node, 0, Item::Part(value), found),
            Head::Variable(name) => self.variable(node, name, found),
            Head::Binary(op, sides) if op.is_arithmetic() => self.operation(node, *op, sides, item, found),
            Head::Unary(op, of) if op.is_arithmetic() => self.sign(node, *op, of, item, found),
            Head::Binary(..) | Head::Unary(..) | Head::Like(_) => {
                let truth = self.truth(node, &item)?;
                if !is_wanted {
                    return Ok(true);
                }
                let value = match truth {
                    Truth::Unknown => Json::Null,
                    truth => Json::Boolean(truth == Truth::True),
                };
                self.next(node, 0, Item::made(value), found)
            }
        }
    }

    fn variable(&mut self, node: &'a Node, name: &str, found: Found<'_, 'a>) -> Outcome<bool> {
        let value = self.subject.variables.and_then(|variables| Some((variables, variables.field(name)?)));
        let Some((variables, value)) = value else {
            return Err(SqlError::new("42704", format!("could not find jsonpath variable \"{name}\"")).into());
        };
        self.with_base((Item::Part(variables), 1), |run| run.next(node, 0, Item::Part(value), found))
    }

    fn with_base<T>(&mut self, base: (Item<'a>, i64), work: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.base, base);
        let done = work(self);
        self.base = before;
        done
    }

    /// Applies a path to an item where errors of the path are no errors; arrays among what it gives are opened if the path is lax
    /// and `opens`.
    fn quietly(&mut self, node: &'a Node, item: &Item<'a>, found: Found<'_, 'a>, opens: bool) -> Outcome<bool> {
        let before = std::mem::replace(&mut self.is_silent, true);
        let done = self.opened(node, item, found, opens);
        self.is_silent = before;
        done
    }

    /// Applies a path to an item; arrays among what it gives are opened if the path is lax and `opens`.
    fn opened(&mut self, node: &'a Node, item: &Item<'a>, found: Found<'_, 'a>, opens: bool) -> Outcome<bool> {
        let found = match found {
            Some(found) if opens && self.is_lax() => found,
            found => return self.node(node, item.clone(), found),
        };
        let mut given = Vec::new();
        self.node(node, item.clone(), Some(&mut given))?;
        for item in given {
            match item.json() {
                Json::Array(_) => found.extend((0..item.len()).filter_map(|at| item.part(at))),
                _ => found.push(item),
            }
        }
        Ok(true)
    }
}

/// What an operator is called in errors.
fn named(op: Operator) -> &'static str {
    op.sign()
}
