//! Conditions, which are true, false or unknown.
use std::cmp::Ordering;

use engine::json::Json;

use super::items::Item;
use super::{Failure, Outcome, Run};
use crate::functions::json::path::datetimes;
use crate::functions::json::path::tree::{Head, Node, Operator};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Truth {
    False,
    True,
    Unknown,
}

impl From<bool> for Truth {
    fn from(is_true: bool) -> Truth {
        if is_true { Truth::True } else { Truth::False }
    }
}

impl<'a> Run<'a> {
    /// What a condition is for an item.
    pub(super) fn truth(&mut self, node: &'a Node, item: &Item<'a>) -> Outcome<Truth> {
        self.within(|run| match &node.head {
            Head::Binary(Operator::And, sides) => Ok(match run.truth(&sides[0], item)? {
                Truth::False => Truth::False,
                left => match run.truth(&sides[1], item)? {
                    Truth::True => left,
                    right => right,
                },
            }),
            Head::Binary(Operator::Or, sides) => Ok(match run.truth(&sides[0], item)? {
                Truth::True => Truth::True,
                left => match run.truth(&sides[1], item)? {
                    Truth::False => left,
                    right => right,
                },
            }),
            Head::Unary(Operator::Not, of) => Ok(match run.truth(of, item)? {
                Truth::Unknown => Truth::Unknown,
                truth => Truth::from(truth == Truth::False),
            }),
            Head::Unary(Operator::IsUnknown, of) => Ok(Truth::from(run.truth(of, item)? == Truth::Unknown)),
            Head::Unary(Operator::Exists, of) => run.exists(of, item),
            Head::Binary(op, sides) => {
                let (opens_right, uses_zone) = (*op != Operator::StartsWith, run.subject.uses_zone);
                run.pairs(&sides[0], Some((&sides[1], opens_right)), item, |left, right| {
                    right.map_or(Ok(Truth::Unknown), |right| compared(*op, left, right, uses_zone))
                })
            }
            Head::Like(like) => run.pairs(&like.value, None, item, |value, _| match value.text() {
                Some(text) => Ok(Truth::from(like.matcher.is_in(text)?)),
                None => Ok(Truth::Unknown),
            }),
            _ => Ok(Truth::Unknown),
        })
    }

    fn exists(&mut self, of: &'a Node, item: &Item<'a>) -> Outcome<Truth> {
        let mut all = Vec::new();
        let found = (!self.is_lax()).then_some(&mut all);
        match self.quietly(of, item, found, false) {
            Ok(is_any) if self.is_lax() => Ok(Truth::from(is_any)),
            Ok(_) => Ok(Truth::from(!all.is_empty())),
            Err(Failure::OfPath(_)) => Ok(Truth::Unknown),
            Err(other) => Err(other),
        }
    }

    /// A test of all pairs of what two paths give, or of all that one gives. A lax path is true for any pair that is; a strict one
    /// knows nothing where it does not know one.
    fn pairs(
        &mut self,
        left: &'a Node,
        right: Option<(&'a Node, bool)>,
        item: &Item<'a>,
        test: impl Fn(&Item<'a>, Option<&Item<'a>>) -> Outcome<Truth>,
    ) -> Outcome<Truth> {
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        for (node, opens, given) in [
            (Some(left), true, &mut lefts),
            (right.map(|right| right.0), right.is_some_and(|right| right.1), &mut rights),
        ] {
            let Some(node) = node else { continue };
            match self.quietly(node, item, Some(given), opens) {
                Err(Failure::OfPath(_)) => return Ok(Truth::Unknown),
                given => given?,
            };
        }
        let rights: Vec<Option<&Item<'a>>> = match right {
            Some(_) => rights.iter().map(Some).collect(),
            None => vec![None],
        };
        let (mut is_unknown, mut is_true) = (false, false);
        for left in &lefts {
            for right in &rights {
                match (test(left, *right)?, self.is_lax()) {
                    (Truth::Unknown, true) => is_unknown = true,
                    (Truth::Unknown, false) => return Ok(Truth::Unknown),
                    (Truth::True, true) => return Ok(Truth::True),
                    (Truth::True, false) => is_true = true,
                    (Truth::False, _) => {}
                }
            }
        }
        Ok(if is_true {
            Truth::True
        } else if is_unknown {
            Truth::Unknown
        } else {
            Truth::False
        })
    }
}

/// Two values compared; those of different kinds are not, unless one is `null`.
fn compared(op: Operator, left: &Item<'_>, right: &Item<'_>, uses_zone: bool) -> Outcome<Truth> {
    if op == Operator::StartsWith {
        let texts = left.text().zip(right.text());
        return Ok(texts.map_or(Truth::Unknown, |(left, right)| Truth::from(left.starts_with(right))));
    }
    let order = match (left.datetime(), right.datetime()) {
        (Some(left), Some(right)) => match datetimes::compare(left, right, uses_zone)? {
            Some(order) => order,
            None => return Ok(Truth::Unknown),
        },
        (None, None) => return Ok(compared_json(op, left.json(), right.json())),
        _ if matches!((left.json(), right.json()), (Json::Null, _) | (_, Json::Null)) => {
            return Ok(Truth::from(op == Operator::NotEqual));
        }
        _ => return Ok(Truth::Unknown),
    };
    Ok(in_order(op, order))
}

fn compared_json(op: Operator, left: &Json, right: &Json) -> Truth {
    let order = match (left, right) {
        (Json::Null, Json::Null) => Ordering::Equal,
        (Json::Boolean(left), Json::Boolean(right)) => left.cmp(right),
        (Json::Number(left), Json::Number(right)) => left.compare(right),
        (Json::Text(left), Json::Text(right)) => left.cmp(right),
        (Json::Null, _) | (_, Json::Null) => return Truth::from(op == Operator::NotEqual),
        _ => return Truth::Unknown,
    };
    in_order(op, order)
}

fn in_order(op: Operator, order: Ordering) -> Truth {
    Truth::from(match op {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        _ => order.is_ge(),
    })
}
