//! What indexes of space are asked for in the model, and which keys are to be found.
use std::ops::Bound;

use engine::{DataType, Extent, Index, IndexDefinition, IndexPart, IndexRange, IndexWindow, Value};

/// A key: whether a part is NULL, and its number or its text.
type ModelKey = Vec<(bool, i64, String)>;
/// A range, and the keys that are in it.
type Asked = (IndexRange, Box<dyn Fn(&ModelKey) -> bool>);

fn types_of(definition: &IndexDefinition) -> Vec<DataType> {
    let of = |part: &IndexPart| match part {
        IndexPart::Column(2) => DataType::TEXT,
        IndexPart::Column(_) => DataType::BigInt,
        IndexPart::Expression(expression) => expression.data_type,
    };
    definition.parts.iter().map(of).collect()
}

/// Windows to ask an index of whole numbers for, at the edges of a key.
pub fn between(definition: &IndexDefinition, values: &[Value], key: &ModelKey) -> Vec<Asked> {
    let mut windows: Vec<Asked> = Vec::new();
    let mut ask = |bounds: Vec<(Bound<Value>, Bound<Value>)>, is_in: Box<dyn Fn(&ModelKey) -> bool>| {
        windows.push((IndexRange::within(IndexWindow::Between(bounds)), is_in));
    };
    let open = || vec![(Bound::Unbounded, Bound::Unbounded); definition.parts.len()];
    ask(open(), Box::new(|_| true));
    for (part, (value, at)) in values.iter().zip(key.clone()).enumerate() {
        let [mut from, mut below] = [open(), open()];
        from[part].0 = Bound::Included(value.clone());
        below[part].1 = Bound::Excluded(value.clone());
        let (is_null, number, _) = at;
        ask(from, Box::new(move |key| !key[part].0 && !is_null && key[part].1 >= number));
        ask(below, Box::new(move |key| !key[part].0 && !is_null && key[part].1 < number));
    }
    let point = values.iter().map(|value| (Bound::Included(value.clone()), Bound::Included(value.clone()))).collect();
    let key = key.clone();
    let has_place = key.iter().all(|(is_null, ..)| !is_null);
    ask(point, Box::new(move |other| has_place && *other == key));
    windows
}

/// What to ask an index of extents for, around a key.
pub fn overlapping(index: &Index, values: &[Value], key: &ModelKey) -> Vec<Asked> {
    let definition = index.definition();
    let types = types_of(definition);
    let mut windows: Vec<Asked> = Vec::new();
    let mut ask = |extents: Vec<Option<Extent>>, takes_others: bool, is_in: Box<dyn Fn(&ModelKey) -> bool>| {
        windows.push((IndexRange::within(IndexWindow::Overlapping { extents, takes_others }), is_in));
    };
    let has_place = |key: &ModelKey| key.iter().all(|(is_null, ..)| !is_null);
    ask(vec![None; definition.parts.len()], true, Box::new(|_| true));
    ask(vec![None; definition.parts.len()], false, Box::new(has_place));
    let extents: Vec<_> = values.iter().enumerate().map(|(part, value)| index.extent_of(part, value)).collect();
    if has_place(key) {
        let same = key.clone();
        ask(extents.clone(), false, Box::new(move |other| *other == same));
        if let (DataType::BigInt, Some(mut above), number) = (types[0], extents[0], key[0].1) {
            above.high[0] = f64::INFINITY;
            let mut extents = vec![None; definition.parts.len()];
            extents[0] = Some(above);
            ask(extents, true, Box::new(move |key| !has_place(key) || key[0].1 >= number));
        }
    }
    windows
}
