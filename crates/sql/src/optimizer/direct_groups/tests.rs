//! Numbers of groups beside a map of whole keys, on random rows.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Int16Array, Int32Array, Int64Array, StringViewArray,
    UInt32Array,
};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::take::take;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::dense::DenseKeys;
use super::runs::RunKeys;
use super::words::WordKeys;

/// The values of a row as texts, by which rows are equal.
fn row(columns: &[ArrayRef], at: usize) -> Vec<Option<String>> {
    let text = |column: &ArrayRef| {
        let texts = cast(column, &DataType::Utf8).unwrap();
        let texts = texts.as_any().downcast_ref::<arrow_array::StringArray>().unwrap();
        texts.is_valid(at).then(|| texts.value(at).to_owned())
    };
    columns.iter().map(text).collect()
}

/// The model: equal rows have equal numbers, counted from the first one on.
#[derive(Default)]
struct Model {
    known: HashMap<Vec<Option<String>>, usize>,
    in_order: Vec<Vec<Option<String>>>,
}

impl Model {
    fn number(&mut self, columns: &[ArrayRef]) -> Vec<usize> {
        let texts: Vec<ArrayRef> = columns.iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
        let rows = (0..columns[0].len()).map(|at| {
            let row = row(&texts, at);
            *self.known.entry(row.clone()).or_insert_with(|| {
                self.in_order.push(row);
                self.in_order.len() - 1
            })
        });
        rows.collect()
    }

    fn check(&self, columns: &[ArrayRef]) {
        assert_eq!(columns[0].len(), self.in_order.len());
        let texts: Vec<ArrayRef> = columns.iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
        self.in_order.iter().enumerate().for_each(|(at, expected)| assert_eq!(row(&texts, at), *expected));
    }
}

/// Keys of a type: near each other or from all over, some of them NULL.
fn keys(random: &mut StdRng, data_type: &DataType, rows: usize) -> ArrayRef {
    let is_wide = random.random_range(0..3) == 0;
    let has_nulls = random.random_range(0..2) == 0;
    let span = [3, 200, 20_000][random.random_range(0..3)];
    let numbers: Vec<Option<i64>> = (0..rows)
        .map(|_| {
            let number = if is_wide { random.random::<i64>() } else { random.random_range(-span..span) };
            (!has_nulls || random.random_range(0..10) > 0).then_some(number)
        })
        .collect();
    let each = || numbers.iter().copied();
    match data_type {
        DataType::Int16 => Arc::new(each().map(|key| Some(key? as i16)).collect::<Int16Array>()),
        DataType::Int32 => Arc::new(each().map(|key| Some(key? as i32)).collect::<Int32Array>()),
        DataType::Int64 => Arc::new(each().collect::<Int64Array>()),
        DataType::Date32 => Arc::new(each().map(|key| Some((key? % 100_000) as i32)).collect::<Date32Array>()),
        DataType::Boolean => Arc::new(each().map(|key| Some(key? & 1 == 1)).collect::<BooleanArray>()),
        DataType::Decimal128(digits, scale) => {
            let keys: Decimal128Array = each().map(|key| Some(i128::from(key?))).collect();
            Arc::new(keys.with_precision_and_scale(*digits, *scale).unwrap())
        }
        _ => {
            let text = |key: i64| format!("{key}{}", "x".repeat(if key % 3 == 0 { 14 } else { 0 }));
            Arc::new(each().map(|key| Some(text(key?))).collect::<StringViewArray>())
        }
    }
}

const TYPES: [DataType; 7] = [
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::Date32,
    DataType::Boolean,
    DataType::Decimal128(30, 2),
    DataType::Utf8View,
];

#[test]
fn one_integer_key_is_numbered_as_a_map_does() {
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let data_type = TYPES[seed as usize % 4].clone();
        let (mut dense, mut model) = (DenseKeys::new(data_type.clone()), Model::default());
        for _ in 0..4 {
            let rows = random.random_range(1..3_000);
            let column = keys(&mut random, &data_type, rows);
            let mut groups = Vec::new();
            dense.number(&column, &mut groups);
            assert_eq!(groups, model.number(&[column]), "seed {seed}");
            assert_eq!(dense.len(), model.in_order.len());
        }
        model.check(&[dense.take()]);
        assert_eq!(dense.len(), 0);
    }
}

#[test]
fn keys_far_from_each_other_do_not_fill_the_memory() {
    let keys: Int64Array = (0..50_000i64).map(|key| Some(key * 100_003)).collect();
    let column: ArrayRef = Arc::new(keys);
    let (mut dense, mut model, mut groups) = (DenseKeys::new(DataType::Int64), Model::default(), Vec::new());
    for _ in 0..2 {
        groups.clear();
        dense.number(&column, &mut groups);
        assert_eq!(groups, model.number(std::slice::from_ref(&column)));
    }
    assert!(dense.size() < 8 << 20, "{} bytes", dense.size());
}

#[test]
fn several_keys_are_numbered_as_a_map_does() {
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let types: Vec<DataType> =
            (0..random.random_range(1..=4)).map(|_| TYPES[random.random_range(0..TYPES.len())].clone()).collect();
        assert!(WordKeys::takes(&types));
        let (mut words, mut model) = (WordKeys::new(types.clone()), Model::default());
        for _ in 0..3 {
            let rows = random.random_range(1..800);
            let columns: Vec<ArrayRef> = types.iter().map(|data_type| keys(&mut random, data_type, rows)).collect();
            let mut groups = Vec::new();
            words.number(&columns, &mut groups);
            assert_eq!(groups, model.number(&columns), "seed {seed}, {types:?}");
        }
        model.check(&words.take());
        assert_eq!(words.len(), 0);
    }
}

#[test]
fn runs_of_equal_keys_are_groups() {
    for seed in 0..30 {
        let mut random = StdRng::seed_from_u64(seed);
        let types: Vec<DataType> =
            (0..random.random_range(1..=3)).map(|_| TYPES[random.random_range(0..TYPES.len())].clone()).collect();
        let (mut runs, mut firsts) = (RunKeys::default(), Vec::new());
        for _ in 0..3 {
            let rows = random.random_range(1..400);
            let columns: Vec<ArrayRef> = types.iter().map(|data_type| keys(&mut random, data_type, rows)).collect();
            // Each row some times, one after the other.
            let places: UInt32Array = (0..rows as u32).flat_map(|at| vec![at; 1 + at as usize % 4]).collect();
            let columns: Vec<ArrayRef> = columns.iter().map(|column| take(column, &places, None).unwrap()).collect();
            let texts: Vec<ArrayRef> = columns.iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
            let (before, mut groups) = (firsts.len(), Vec::new());
            runs.number(&columns, &mut groups).unwrap();
            for (at, group) in groups.iter().enumerate() {
                let key = row(&texts, at);
                if firsts.len() == before || firsts.last() != Some(&key) {
                    firsts.push(key);
                }
                assert_eq!(*group, firsts.len() - 1, "seed {seed}, row {at}");
            }
            assert_eq!(groups.len(), places.len());
        }
        assert_eq!(runs.len(), firsts.len());
        let taken = runs.take().unwrap();
        let texts: Vec<ArrayRef> = taken.iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
        assert!((0..firsts.len()).all(|at| row(&texts, at) == firsts[at]), "seed {seed}");
        assert_eq!((runs.len(), taken[0].len()), (0, firsts.len()));
    }
}
