//! Items: parts of the value, of the variables or of the path, and what was made of them.
use std::rc::Rc;

use engine::json::{Json, JsonNumber};

use crate::functions::json::path::datetimes::{self, type_name};
use crate::functions::times::templates::standard::Datetime;

#[derive(Clone, Debug)]
pub(super) enum Item<'a> {
    Part(&'a Json),
    Made(Rc<Json>),
    /// A date or a time, with its text.
    Datetime(Datetime, Rc<Json>),
}

impl<'a> Item<'a> {
    pub(super) fn made(json: Json) -> Item<'a> {
        Item::Made(Rc::new(json))
    }

    pub(super) fn number(number: JsonNumber) -> Item<'a> {
        Item::made(Json::Number(number))
    }

    pub(super) fn of_datetime(datetime: Datetime) -> Item<'a> {
        Item::Datetime(datetime, Rc::new(Json::Text(datetimes::text(datetime))))
    }

    pub(super) fn json(&self) -> &Json {
        match self {
            Item::Part(json) => json,
            Item::Made(json) | Item::Datetime(_, json) => json,
        }
    }

    pub(super) fn into_json(self) -> Json {
        match self {
            Item::Part(json) => json.clone(),
            Item::Made(json) | Item::Datetime(_, json) => Rc::unwrap_or_clone(json),
        }
    }

    /// The date or time that it is.
    pub(super) fn datetime(&self) -> Option<Datetime> {
        match self {
            Item::Datetime(datetime, _) => Some(*datetime),
            _ => None,
        }
    }

    /// The text that it is; a date or a time is none.
    pub(super) fn text(&self) -> Option<&str> {
        match self.json() {
            Json::Text(text) if self.datetime().is_none() => Some(text),
            _ => None,
        }
    }

    /// How many parts it has.
    pub(super) fn len(&self) -> usize {
        match self.json() {
            Json::Array(items) => items.len(),
            Json::Object(members) => members.len(),
            _ => 0,
        }
    }

    fn of_part(&self, part: impl for<'j> Fn(&'j Json) -> Option<&'j Json>) -> Option<Item<'a>> {
        match self {
            Item::Part(json) => part(json).map(Item::Part),
            Item::Made(json) | Item::Datetime(_, json) => part(json).cloned().map(Item::made),
        }
    }

    /// The item or member at a place.
    pub(super) fn part(&self, at: usize) -> Option<Item<'a>> {
        self.of_part(|json| match json {
            Json::Array(items) => items.get(at),
            Json::Object(members) => members.get(at).map(|(_, value)| value),
            _ => None,
        })
    }

    /// The member of this name.
    pub(super) fn field(&self, key: &str) -> Option<Item<'a>> {
        self.of_part(|json| json.field(key))
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.json(), Json::Array(_))
    }

    /// Whether it may have parts.
    pub(super) fn has_parts(&self) -> bool {
        matches!(self.json(), Json::Array(_) | Json::Object(_))
    }

    /// PostgreSQL's name of what it is.
    pub(super) fn kind(&self) -> &'static str {
        if let Some(datetime) = self.datetime() {
            return type_name(datetime);
        }
        match self.json() {
            Json::Null => "null",
            Json::Boolean(_) => "boolean",
            Json::Number(_) => "number",
            Json::Text(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }
}
