//! Methods of items: `.type()`, `.size()`, `.double()`, `.abs()`, `.floor()`, `.ceiling()`, `.keyvalue()`, `.datetime()`.
use engine::json::{Json, JsonNumber};

use super::arithmetic::rounded;
use super::items::Item;
use super::layout::place_in;
use super::{Found, Outcome, Run};
use crate::functions::json::path::datetimes;
use crate::functions::json::path::tree::{Method, Node};
use crate::values::input;

/// How far the places in one object are from those in the next.
const PLACES_OF_OBJECT: i64 = 10_000_000_000;

impl<'a> Run<'a> {
    pub(super) fn method(
        &mut self,
        node: &'a Node,
        at: usize,
        method: Method,
        item: Item<'a>,
        found: Found<'_, 'a>,
        opens: bool,
    ) -> Outcome<bool> {
        let is_wanted = found.is_some() || at < node.steps.len();
        if opens && item.is_array() && !matches!(method, Method::Type | Method::Size) {
            return self.each(node, at, &item, found);
        }
        let given = match method {
            Method::Type => Item::made(Json::Text(item.kind().to_owned())),
            Method::Size => {
                if !item.is_array() && !self.is_lax() {
                    return self.missing("22039", || refused(method, "an array"));
                }
                let length = if item.is_array() { item.len() } else { 1 };
                Item::number(JsonNumber::from(i64::try_from(length).unwrap_or(i64::MAX)))
            }
            Method::Double => self.double(item)?,
            Method::KeyValue => return self.key_values(node, at, &item, found),
            Method::Abs | Method::Floor | Method::Ceiling => {
                let Json::Number(number) = item.json() else {
                    return Err(self.failed("22036", || refused(method, "a numeric value")));
                };
                if !is_wanted {
                    return Ok(true);
                }
                Item::number(match method {
                    Method::Abs if number.is_negative() => number.negated(),
                    Method::Abs => number.clone(),
                    other => rounded(number, other == Method::Ceiling)?,
                })
            }
        };
        self.next(node, at, given, found)
    }

    /// `.datetime()`, with a template or in one of the forms that are known.
    pub(super) fn datetime(
        &mut self,
        node: &'a Node,
        at: usize,
        template: Option<&str>,
        item: Item<'a>,
        found: Found<'_, 'a>,
        opens: bool,
    ) -> Outcome<bool> {
        if opens && item.is_array() {
            return self.each(node, at, &item, found);
        }
        let Some(text) = item.text() else {
            let message = "jsonpath item method .datetime() can only be applied to a string";
            return Err(self.failed("22031", || message.to_owned()));
        };
        let datetime = datetimes::read(text, template).map_err(|error| self.failed_with(error))?;
        self.next(node, at, Item::of_datetime(datetime), found)
    }

    fn double(&self, item: Item<'a>) -> Outcome<Item<'a>> {
        match item.json() {
            Json::Number(number) => match input::double(&number.to_string()) {
                Ok(value) if value.is_finite() => Ok(item),
                _ => Err(self.failed("22036", || {
                    "numeric argument of jsonpath item method .double() is out of range for type double precision"
                        .to_owned()
                })),
            },
            Json::Text(text) if item.datetime().is_none() => {
                let value = input::double(text).ok().filter(|value| value.is_finite());
                let number = value.and_then(of_double);
                number.map(Item::number).ok_or_else(|| {
                    self.failed("22036", || {
                        "string argument of jsonpath item method .double() is not a valid representation of a double \
                         precision number"
                            .to_owned()
                    })
                })
            }
            _ => Err(self.failed("22036", || refused(Method::Double, "a string or numeric value"))),
        }
    }

    /// An object for each member of an object: its key, its value, and where the object is.
    fn key_values(&mut self, node: &'a Node, at: usize, item: &Item<'a>, mut found: Found<'_, 'a>) -> Outcome<bool> {
        let Json::Object(members) = item.json() else {
            return Err(self.failed("2203C", || refused(Method::KeyValue, "an object")));
        };
        if !members.is_empty() && found.is_none() && at == node.steps.len() {
            return Ok(true);
        }
        let place = i64::try_from(place_in(self.base.0.json(), item.json())).unwrap_or(i64::MAX);
        let place = place.saturating_add(self.base.1.saturating_mul(PLACES_OF_OBJECT));
        let mut is_any = false;
        for (key, value) in members.clone() {
            let triple = vec![
                ("key".to_owned(), Json::Text(key)),
                ("value".to_owned(), value),
                ("id".to_owned(), Json::Number(JsonNumber::from(place))),
            ];
            let triple = Item::made(Json::object(triple));
            let base = (triple.clone(), self.objects);
            self.objects += 1;
            is_any = self.with_base(base, |run| run.next(node, at, triple, found.as_deref_mut()))?;
            if is_any && found.is_none() {
                break;
            }
        }
        Ok(is_any)
    }
}

fn refused(method: Method, to: &str) -> String {
    format!("jsonpath item method .{}() can only be applied to {to}", method.name())
}

/// The number that a float is, to fifteen digits.
fn of_double(value: f64) -> Option<JsonNumber> {
    let shown = format!("{value:.14e}");
    let (mantissa, exponent) = shown.split_once('e')?;
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    JsonNumber::read(&format!("{mantissa}e{exponent}"))
}
