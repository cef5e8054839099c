//! Steps into a value: `.key`, `.*`, `[*]`, `[1 to last]`, `.**`, `?(...)`.
use engine::json::Json;

use super::arithmetic::whole_of;
use super::conditions::Truth;
use super::items::Item;
use super::{Failure, Found, Outcome, Run};
use crate::functions::json::path::tree::{LAST_LEVEL, Node};

/// What of a value's parts is wanted.
#[derive(Clone, Copy)]
struct Levels {
    first: u32,
    last: u32,
    /// whether the structure matters to the steps behind
    ignores_structure: bool,
    /// whether these open arrays
    opens: bool,
}

impl<'a> Run<'a> {
    /// Applies a step to each item of an array; those that are arrays are not opened.
    pub(super) fn each(
        &mut self,
        node: &'a Node,
        at: usize,
        array: &Item<'a>,
        mut found: Found<'_, 'a>,
    ) -> Outcome<bool> {
        let mut is_any = false;
        for item in (0..array.len()).filter_map(|at| array.part(at)) {
            is_any = self.step(node, at, item, found.as_deref_mut(), false)?;
            if is_any && found.is_none() {
                break;
            }
        }
        Ok(is_any)
    }

    pub(super) fn key(
        &mut self,
        node: &'a Node,
        at: usize,
        key: &str,
        item: Item<'a>,
        found: Found<'_, 'a>,
        opens: bool,
    ) -> Outcome<bool> {
        match item.json() {
            Json::Object(_) => match item.field(key) {
                Some(value) => self.next(node, at, value, found),
                None => self.missing("2203A", || format!("JSON object does not contain key \"{key}\"")),
            },
            Json::Array(_) if opens => self.each(node, at, &item, found),
            _ => self.missing("2203A", || "jsonpath member accessor can only be applied to an object".to_owned()),
        }
    }

    pub(super) fn any_key(
        &mut self,
        node: &'a Node,
        at: usize,
        item: Item<'a>,
        found: Found<'_, 'a>,
        opens: bool,
    ) -> Outcome<bool> {
        match item.json() {
            Json::Object(_) => self.children(node, at, &item, found),
            Json::Array(_) if opens => self.each(node, at, &item, found),
            _ => {
                let message = "jsonpath wildcard member accessor can only be applied to an object";
                self.missing("2203C", || message.to_owned())
            }
        }
    }

    pub(super) fn any_item(
        &mut self,
        node: &'a Node,
        at: usize,
        item: Item<'a>,
        found: Found<'_, 'a>,
    ) -> Outcome<bool> {
        if item.is_array() {
            return self.children(node, at, &item, found);
        }
        if self.is_lax() {
            return self.next(node, at, item, found);
        }
        self.missing("22039", || "jsonpath wildcard array accessor can only be applied to an array".to_owned())
    }

    /// Gives all parts of an item to the steps behind.
    fn children(&mut self, node: &'a Node, at: usize, item: &Item<'a>, found: Found<'_, 'a>) -> Outcome<bool> {
        let levels = Levels { first: 1, last: 1, ignores_structure: false, opens: self.is_lax() };
        self.parts(node, at, item, found, 1, levels)
    }

    pub(super) fn any(
        &mut self,
        node: &'a Node,
        at: usize,
        (first, last): (u32, u32),
        item: Item<'a>,
        mut found: Found<'_, 'a>,
    ) -> Outcome<bool> {
        let mut given = Ok(false);
        if first == 0 {
            let before = std::mem::replace(&mut self.ignores_structure, true);
            given = self.next(node, at, item.clone(), found.as_deref_mut());
            self.ignores_structure = before;
        }
        match given {
            // What the item itself fails with is forgotten over its parts.
            Err(Failure::OfPath(None)) | Ok(false) if item.has_parts() => {}
            Ok(true) if item.has_parts() && found.is_some() => {}
            given => return given,
        }
        let levels = Levels { first, last, ignores_structure: true, opens: self.is_lax() };
        self.parts(node, at, &item, found, 1, levels)
    }

    /// Gives the parts of an item that are of these levels to the steps behind; those of the item itself are of level `level`.
    fn parts(
        &mut self,
        node: &'a Node,
        at: usize,
        item: &Item<'a>,
        mut found: Found<'_, 'a>,
        level: u32,
        levels: Levels,
    ) -> Outcome<bool> {
        if level > levels.last {
            return Ok(false);
        }
        let mut is_any = false;
        for part in (0..item.len()).filter_map(|at| item.part(at)) {
            let is_leaf = !part.has_parts();
            let wants_leaves = levels.first == LAST_LEVEL && levels.last == LAST_LEVEL;
            if level >= levels.first || (wants_leaves && is_leaf) {
                is_any = self.of_level(node, at, part.clone(), found.as_deref_mut(), levels)?;
                if is_any && found.is_none() {
                    return Ok(true);
                }
            }
            if level < levels.last && !is_leaf {
                let found = found.as_deref_mut();
                let is_wanted = found.is_some();
                is_any = self.within(|run| run.parts(node, at, &part, found, level + 1, levels))?;
                if is_any && !is_wanted {
                    return Ok(true);
                }
            }
        }
        Ok(is_any)
    }

    fn of_level(
        &mut self,
        node: &'a Node,
        at: usize,
        part: Item<'a>,
        found: Found<'_, 'a>,
        levels: Levels,
    ) -> Outcome<bool> {
        if at == node.steps.len() {
            return self.next(node, at, part, found);
        }
        let before = self.ignores_structure;
        self.ignores_structure |= levels.ignores_structure;
        let given = self.step(node, at + 1, part, found, levels.opens);
        self.ignores_structure = before;
        given
    }

    pub(super) fn items(
        &mut self,
        node: &'a Node,
        at: usize,
        ranges: &'a [(Node, Option<Node>)],
        item: Item<'a>,
        found: Found<'_, 'a>,
    ) -> Outcome<bool> {
        if !item.is_array() && !self.is_lax() {
            return self.missing("22039", || "jsonpath array accessor can only be applied to an array".to_owned());
        }
        let length = if item.is_array() { item.len() } else { 1 };
        let before = self.length.replace(length);
        let given = self.ranges(node, at, ranges, &item, found, length);
        self.length = before;
        given
    }

    fn ranges(
        &mut self,
        node: &'a Node,
        at: usize,
        ranges: &'a [(Node, Option<Node>)],
        item: &Item<'a>,
        mut found: Found<'_, 'a>,
        length: usize,
    ) -> Outcome<bool> {
        let mut is_any = false;
        for (from, to) in ranges {
            let from = self.subscript(from, item)?;
            let to = to.as_ref().map_or(Ok(from), |to| self.subscript(to, item))?;
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            if !self.ignores_structure && (from < 0 || from > to || to >= length) {
                return Err(self.failed("22033", || "jsonpath array subscript is out of bounds".to_owned()));
            }
            is_any = false;
            for place in from.max(0)..=to.min(length - 1) {
                let part = match item.is_array() {
                    true => usize::try_from(place).ok().and_then(|place| item.part(place)),
                    false => Some(item.clone()),
                };
                let Some(part) = part else { continue };
                is_any = self.next(node, at, part, found.as_deref_mut())?;
                if is_any && found.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(is_any)
    }

    /// The place that a subscript says.
    fn subscript(&mut self, node: &'a Node, item: &Item<'a>) -> Outcome<i64> {
        let mut given = Vec::new();
        self.node(node, item.clone(), Some(&mut given))?;
        let [one] = &given[..] else { return Err(self.no_subscript()) };
        let Json::Number(number) = one.json() else { return Err(self.no_subscript()) };
        let place = whole_of(number).and_then(|place| i32::try_from(place).ok());
        let out_of_range = || "jsonpath array subscript is out of integer range".to_owned();
        place.map(i64::from).ok_or_else(|| self.failed("22033", out_of_range))
    }

    fn no_subscript(&self) -> Failure {
        self.failed("22033", || "jsonpath array subscript is not a single numeric value".to_owned())
    }

    pub(super) fn filter(
        &mut self,
        node: &'a Node,
        at: usize,
        condition: &'a Node,
        item: Item<'a>,
        found: Found<'_, 'a>,
        opens: bool,
    ) -> Outcome<bool> {
        if opens && item.is_array() {
            return self.each(node, at, &item, found);
        }
        let before = std::mem::replace(&mut self.current, item.clone());
        let truth = self.truth(condition, &item);
        self.current = before;
        if truth? == Truth::True { self.next(node, at, item, found) } else { Ok(false) }
    }
}
