//! Searches for many boxes, points and ranges at once, against a list that is asked one by one: at snapshots, under changes, merges and
//! rollbacks, and within serializable transactions.
use std::collections::{BTreeMap, BTreeSet};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use engine::geometry::{Point, Rectangle};
use engine::network::Family;
use engine::{
    Column, Comparison, DataType, Database, Error, Geometry, GeometryKind, Index, IndexDefinition, IndexMethod,
    Isolation, Network, NetworkKind, RangeKind, RangeValue, ScanOptions, Schema, SpaceRelation, Table, Test,
    TransactionOptions, Value, space_array,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const BOX: DataType = DataType::Geometry(GeometryKind::Box);
const POINT: DataType = DataType::Geometry(GeometryKind::Point);
const RANGE: DataType = DataType::Range(RangeKind::Int4);
const RELATIONS: [SpaceRelation; 3] = [SpaceRelation::Overlaps, SpaceRelation::Contains, SpaceRelation::Within];

/// From the first number to the second in each dimension, ends included; of ranges there is one, and the empty one ends before it begins.
type Ends<const D: usize> = [(i32, i32); D];

/// A row without its id.
type Row = (Option<Ends<2>>, Option<Ends<1>>);

fn holds<const D: usize>(relation: SpaceRelation, row: &Ends<D>, asked: &Ends<D>) -> bool {
    let is_empty = |ends: &Ends<D>| ends.iter().any(|(low, high)| low > high);
    let within = |one: &Ends<D>, other: &Ends<D>| {
        is_empty(one) || one.iter().zip(other).all(|(one, other)| other.0 <= one.0 && one.1 <= other.1)
    };
    match relation {
        SpaceRelation::Overlaps => {
            let meets = |(one, other): (&(i32, i32), &(i32, i32))| one.0 <= other.1 && other.0 <= one.1;
            !is_empty(row) && !is_empty(asked) && row.iter().zip(asked).all(meets)
        }
        SpaceRelation::Contains => within(asked, row),
        SpaceRelation::Within => within(row, asked),
    }
}

fn box_value(ends: Option<Ends<2>>) -> Value {
    ends.map_or(Value::Null, |[x, y]| {
        let corner = |x: i32, y: i32| Point::new(f64::from(x), f64::from(y));
        Value::Geometry(Geometry::Box(Rectangle::of_corners(corner(x.0, y.0), corner(x.1, y.1))))
    })
}

fn point_value(ends: Option<Ends<2>>) -> Value {
    ends.map_or(Value::Null, |[x, y]| Value::Geometry(Geometry::Point(Point::new(f64::from(x.0), f64::from(y.0)))))
}

fn range_value(ends: Option<Ends<1>>) -> Value {
    let range = |[(low, high)]: Ends<1>| match low > high {
        true => RangeValue::empty(RangeKind::Int4),
        false => RangeValue::new(RangeKind::Int4, Some((low.into(), true)), Some((high.into(), true))).unwrap(),
    };
    ends.map_or(Value::Null, |ends| Value::Range(Box::new(range(ends))))
}

fn ends(random: &mut StdRng, shortest: i32) -> (i32, i32) {
    let low = random.random_range(0..90);
    (low, low + random.random_range(shortest..7))
}

fn some<T>(random: &mut StdRng, value: impl FnOnce(&mut StdRng) -> T) -> Option<T> {
    (random.random_range(0..12) > 0).then(|| value(random))
}

fn row(random: &mut StdRng) -> Row {
    let area = some(random, |random| [ends(random, 0), ends(random, 0)]);
    (area, some(random, |random| [ends(random, -1)]))
}

struct Places {
    db: Database,
    table: Table,
    areas: Index,
    rooms: Index,
}

fn places() -> Places {
    let db = Database::in_memory();
    let columns = vec![
        Column::new("id", DataType::BigInt),
        Column::new("area", BOX),
        Column::new("room", DataType::Integer),
        Column::new("during", RANGE),
    ];
    let table = db.create_table("places", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let areas = db.create_index("places", IndexDefinition::new("areas", &[1]).using(IndexMethod::Gist)).unwrap();
    let rooms = db.create_index("places", IndexDefinition::new("rooms", &[2, 3]).using(IndexMethod::Gist)).unwrap();
    Places { db, table, areas, rooms }
}

fn values(id: i64, (area, during): Row) -> [Value; 4] {
    [Value::from(id), box_value(area), Value::from((id % 3) as i32), range_value(during)]
}

/// Changes the table and the list alike; one transaction in four is rolled back.
fn change(places: &Places, rows: &mut BTreeMap<i64, Row>, random: &mut StdRng, next_id: &mut i64) {
    let (mut transaction, before) = (places.db.begin().unwrap(), rows.clone());
    for _ in 0..random.random_range(1..30) {
        let (id, new) = (random.random_range(0..*next_id + 1), row(random));
        match random.random_range(0..6) {
            0 => assert_eq!(transaction.delete(&places.table, &[Value::from(id)]).unwrap(), rows.remove(&id).is_some()),
            1 => {
                let changes = [("area", box_value(new.0)), ("during", range_value(new.1))];
                let is_there = transaction.update(&places.table, &[Value::from(id)], &changes).unwrap();
                assert_eq!(is_there, rows.contains_key(&id));
                rows.entry(id).and_modify(|row| *row = new);
            }
            _ => {
                transaction.insert(&places.table, &values(*next_id, new)).unwrap();
                rows.insert(*next_id, new);
                *next_id += 1;
            }
        }
    }
    match random.random_range(0..4) {
        0 => {
            transaction.rollback();
            *rows = before;
        }
        _ => drop(transaction.commit().unwrap()),
    }
    if random.random_range(0..3) == 0 {
        places.db.merge_now();
    }
}

/// The pairs (place of a value, id) that a search finds, after a look at their order.
fn pairs(batches: impl Iterator<Item = Result<arrow_array::RecordBatch, Error>>) -> BTreeSet<(u64, i64)> {
    let (mut pairs, mut last) = (BTreeSet::new(), 0);
    for batch in batches.map(Result::unwrap) {
        let queries = batch.column(0).as_primitive::<UInt64Type>().values();
        let ids = batch.column(1).as_primitive::<Int64Type>().values();
        assert!(batch.num_rows() <= 8192 && queries.iter().all(|query| *query >= std::mem::replace(&mut last, *query)));
        for (query, id) in queries.iter().zip(ids) {
            assert!(pairs.insert((*query, *id)), "{query} and {id} come twice");
        }
    }
    pairs
}

fn expected<const D: usize>(
    rows: &BTreeMap<i64, Row>,
    asked: &[Option<Ends<D>>],
    of: impl Fn(&Row) -> Option<Ends<D>>,
    relation: SpaceRelation,
) -> BTreeSet<(u64, i64)> {
    let mut pairs = BTreeSet::new();
    for (at, asked) in asked.iter().enumerate() {
        let meets = |row: &Row| asked.as_ref().zip(of(row)).is_some_and(|(asked, row)| holds(relation, &row, asked));
        pairs.extend(rows.iter().filter(|(_, row)| meets(row)).map(|(id, _)| (at as u64, *id)));
    }
    pairs
}

fn ids() -> ScanOptions {
    ScanOptions { columns: vec![0], ..ScanOptions::default() }
}

#[test]
fn many_values_at_once_find_what_each_finds_alone() {
    let (places, mut random) = (places(), StdRng::seed_from_u64(5));
    let (mut rows, mut next_id, mut found) = (BTreeMap::new(), 0, 0);
    for round in 0..30 {
        (0..6).for_each(|_| change(&places, &mut rows, &mut random, &mut next_id));
        let (view, seen) = (places.db.read_view().unwrap(), rows.clone());
        // What comes later is not seen.
        change(&places, &mut rows, &mut random, &mut next_id);
        let count = random.random_range(0..300);
        let boxes: Vec<_> =
            (0..count).map(|_| some(&mut random, |random| [ends(random, 0), ends(random, 0)])).collect();
        let points: Vec<_> = boxes.iter().map(|ends| ends.map(|ends| ends.map(|(low, _)| (low, low)))).collect();
        let ranges: Vec<_> = (0..count).map(|_| some(&mut random, |random| [ends(random, -1)])).collect();
        let array = |of, values: Vec<Value>| space_array(of, &values).unwrap();
        let of_boxes = array(BOX, boxes.iter().map(|ends| box_value(*ends)).collect());
        let of_points = array(POINT, points.iter().map(|ends| point_value(*ends)).collect());
        let of_ranges = array(RANGE, ranges.iter().map(|ends| range_value(*ends)).collect());
        let search = |index: &Index, asked: &ArrayRef, relation| {
            pairs(places.table.search_batch(&view, index, asked, relation, &ids()).unwrap())
        };
        let relation = RELATIONS[round % 3];
        let of_areas = search(&places.areas, &of_boxes, relation);
        assert_eq!(of_areas, expected(&seen, &boxes, |row| row.0, relation), "round {round}: {relation:?}");
        let at_points = search(&places.areas, &of_points, SpaceRelation::Contains);
        assert_eq!(at_points, expected(&seen, &points, |row| row.0, SpaceRelation::Contains), "round {round}");
        let in_ranges = search(&places.rooms, &of_ranges, relation);
        assert_eq!(in_ranges, expected(&seen, &ranges, |row| row.1, relation), "round {round}: {relation:?}");
        found += of_areas.len() + at_points.len() + in_ranges.len();
    }
    assert!(found > 20_000, "{found} pairs");
}

#[test]
fn rows_come_as_they_are_asked_for_and_values_as_scans_give_them() {
    let places = places();
    let mut transaction = places.db.begin().unwrap();
    for id in 0..200 {
        let at = id as i32;
        transaction.insert(&places.table, &values(id, (Some([(at, at + 1), (0, 1)]), Some([(at, at)])))).unwrap();
    }
    transaction.commit().unwrap();
    let view = places.db.read_view().unwrap();
    // Every row's own area, as a scan gives it: binary views, in which two neighbours overlap each.
    let columns = ScanOptions { columns: vec![1], ..ScanOptions::default() };
    let batches: Vec<_> = places.table.scan(&view, columns).unwrap().flat_map(Result::unwrap).collect();
    let areas: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
    let areas = arrow_select::concat::concat(&areas).unwrap();
    let options = ScanOptions {
        columns: vec![2, 0],
        tests: vec![(2, Test::Compare(Comparison::Eq, Value::from(1)))],
        with_rid: true,
    };
    let search = places.table.search_batch(&view, &places.areas, &areas, SpaceRelation::Overlaps, &options).unwrap();
    let names: Vec<_> = search.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["query", "room", "id", "__rid"]);
    let (mut pairs, mut rids) = (0, BTreeSet::<u64>::new());
    for batch in search.map(Result::unwrap) {
        let queries = batch.column(0).as_primitive::<UInt64Type>().values();
        let ids = batch.column(2).as_primitive::<Int64Type>().values();
        assert!(queries.iter().zip(ids).all(|(query, id)| id % 3 == 1 && (*query as i64 - id).abs() <= 1));
        rids.extend(batch.column(3).as_primitive::<UInt64Type>().values().iter().copied());
        pairs += batch.num_rows();
    }
    // 67 rows of room 1, each found by itself and both neighbours, but for the last one, which has one.
    assert_eq!((pairs, rids.len()), (67 * 3 - usize::from(199 % 3 == 1), 67));
}

#[test]
fn what_an_index_can_not_answer_is_refused() {
    let places = places();
    let plain = places.db.create_index("places", IndexDefinition::new("plain", &[2])).unwrap();
    let rooms = IndexDefinition::new("only_rooms", &[2]).using(IndexMethod::Gist);
    let only_rooms = places.db.create_index("places", rooms).unwrap();
    let view = places.db.read_view().unwrap();
    let refused = |index: &Index, asked: &ArrayRef, relation, why: &str| {
        let error = places.table.search_batch(&view, index, asked, relation, &ids()).map(drop).unwrap_err();
        assert!(error.sqlstate() == "0A000" && error.to_string().contains(why), "{error}");
    };
    let (boxes, points) = (space_array(BOX, &[]).unwrap(), space_array(POINT, &[]).unwrap());
    refused(&plain, &boxes, SpaceRelation::Overlaps, "gist");
    refused(&only_rooms, &boxes, SpaceRelation::Overlaps, "has none");
    refused(&places.areas, &points, SpaceRelation::Overlaps, "not related");
    refused(&places.rooms, &boxes, SpaceRelation::Overlaps, "is of int4range");
    let numbers: ArrayRef = std::sync::Arc::new(arrow_array::Int64Array::from(vec![1]));
    refused(&places.areas, &numbers, SpaceRelation::Contains, "not related");
    // Bytes that are no box.
    let bytes: ArrayRef = std::sync::Arc::new(arrow_array::BinaryViewArray::from(vec![&b"short"[..]]));
    let mut search = places.table.search_batch(&view, &places.areas, &bytes, SpaceRelation::Overlaps, &ids()).unwrap();
    assert!(search.next().is_some_and(|batch| batch.unwrap_err().to_string().contains("at 0")));
    assert!(search.next().is_none());
    assert!(space_array(BOX, &[Value::from(1)]).is_none() && space_array(DataType::Integer, &[]).is_none());
}

#[test]
fn a_serializable_transaction_has_read_what_it_searched_for() {
    for (meets, other) in [(true, [(5, 6), (5, 6)]), (false, [(50, 60), (5, 6)])] {
        let places = places();
        let mut reader = places.db.begin_with(TransactionOptions::at(Isolation::Serializable)).unwrap();
        let asked = space_array(BOX, &[box_value(Some([(0, 9), (0, 9)]))]).unwrap();
        let view = reader.view().unwrap();
        let search = places.table.search_batch(&view, &places.areas, &asked, SpaceRelation::Overlaps, &ids()).unwrap();
        assert!(pairs(search).is_empty());
        drop(view);
        let mut writer = places.db.begin_with(TransactionOptions::at(Isolation::Serializable)).unwrap();
        writer.insert(&places.table, &values(1, (Some(other), None))).unwrap();
        writer.commit().unwrap();
        reader.insert(&places.table, &values(2, (None, None))).unwrap();
        assert_eq!(reader.commit().is_err(), meets, "{other:?}");
    }
}

#[test]
fn many_networks_at_once_find_what_each_finds() {
    const INET: DataType = DataType::Network(NetworkKind::Inet);
    let network = |text: &str| Network::parse(NetworkKind::Inet, text).unwrap();
    let db = Database::in_memory();
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("address", INET)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let index = db.create_index("t", IndexDefinition::new("i", &[1]).using(IndexMethod::Gist)).unwrap();
    let mut random = StdRng::seed_from_u64(5);
    let mut any = || {
        let bytes: [u8; 16] = std::array::from_fn(|_| if random.random_bool(0.7) { 0 } else { random.random() });
        let length: u8 = random.random_range(0..=128);
        let family = if random.random_bool(0.5) { Family::V4 } else { Family::V6 };
        Network::new(NetworkKind::Inet, family, &bytes[..family.bytes()], length.min(family.bits())).unwrap()
    };
    let rows: Vec<Network> = (0..500).map(|_| any()).chain([network("::/0"), network("0.0.0.0/0")]).collect();
    let mut transaction = db.begin().unwrap();
    for (id, row) in (0i64..).zip(&rows) {
        transaction.insert(&table, &[Value::from(id), Value::Network(*row)]).unwrap();
    }
    transaction.insert(&table, &[Value::from(-1i64), Value::Null]).unwrap();
    transaction.commit().unwrap();
    let asked: Vec<Network> = (0..100).map(|_| any()).collect();
    let values: Vec<Value> = asked.iter().map(|of| Value::Network(*of)).collect();
    let array = space_array(INET, &values).unwrap();
    for relation in RELATIONS {
        let holds = |row: &Network, asked: &Network| match relation {
            SpaceRelation::Overlaps => row.is_within(*asked, true) || asked.is_within(*row, true),
            SpaceRelation::Contains => asked.is_within(*row, true),
            SpaceRelation::Within => row.is_within(*asked, true),
        };
        let of = |at: usize| {
            let holds = |(_, row): &(usize, &Network)| holds(row, &asked[at]);
            rows.iter().enumerate().filter(holds).map(move |(id, _)| (at as u64, id as i64)).collect::<Vec<_>>()
        };
        let expected: BTreeSet<(u64, i64)> = (0..asked.len()).flat_map(of).collect();
        let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
        let view = db.read_view().unwrap();
        let mut found = BTreeSet::new();
        for pairs in table.search_batch(&view, &index, &array, relation, &options).unwrap() {
            let pairs = pairs.unwrap();
            let (queries, ids) =
                (pairs.column(0).as_primitive::<UInt64Type>(), pairs.column(1).as_primitive::<Int64Type>());
            found.extend(queries.values().iter().copied().zip(ids.values().iter().copied()));
        }
        assert_eq!(found, expected, "{relation:?}");
    }
}
