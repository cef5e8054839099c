//! Shapes: their text and bytes, and their relations against an exact model on whole numbers.
use proptest::prelude::*;

use super::*;

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        (-4i32..5).prop_map(f64::from),
        prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-7, 1e300]),
    ]
}

fn shapes() -> impl Strategy<Value = Geometry> {
    let kind = prop::sample::select(GeometryKind::ALL.to_vec());
    let radius = |kind: GeometryKind, mut numbers: [f64; 4]| {
        if kind == GeometryKind::Circle && numbers[2] < 0.0 {
            numbers[2] = -numbers[2];
        }
        Geometry::of_numbers(kind, numbers)
    };
    (kind, [floats(), floats(), floats(), floats()]).prop_map(move |(kind, numbers)| radius(kind, numbers))
}

fn bits(shape: &Geometry) -> Vec<u64> {
    let canonical = |number: f64| if number.is_nan() { f64::NAN } else { number };
    shape.numbers().into_iter().map(|number| canonical(number).to_bits()).collect()
}

/// A box of whole numbers with its columns and rows of points.
fn boxes() -> impl Strategy<Value = ([i32; 4], Rectangle)> {
    [-3i32..4, -3i32..4, -3i32..4, -3i32..4].prop_map(|[x1, y1, x2, y2]| {
        let corner = |x, y| Point::new(f64::from(x), f64::from(y));
        ([x1.min(x2), y1.min(y2), x1.max(x2), y1.max(y2)], Rectangle::of_corners(corner(x1, y1), corner(x2, y2)))
    })
}

fn points(of: [i32; 4]) -> Vec<(i32, i32)> {
    let all = (-3..4).flat_map(|x| (-3..4).map(move |y| (x, y)));
    all.filter(|(x, y)| (of[0]..=of[2]).contains(x) && (of[1]..=of[3]).contains(y)).collect()
}

proptest! {
    #[test]
    fn shapes_come_back_from_their_text_and_bytes(shape in shapes()) {
        let kind = shape.kind();
        let bytes = shape.to_bytes();
        prop_assert_eq!(bytes.len(), kind.width());
        prop_assert_eq!(bits(&Geometry::from_bytes(kind, &bytes)), bits(&shape));
        prop_assert_eq!(bits(&Geometry::parse(kind, &shape.to_string()).unwrap()), bits(&shape));
    }

    #[test]
    fn relations_of_boxes_are_those_of_their_points(left in boxes(), right in boxes()) {
        let ((own, first), (others, second)) = (left, right);
        let (mine, theirs) = (points(own), points(others));
        let xs = |points: &[(i32, i32)]| points.iter().map(|(x, _)| *x).collect::<Vec<_>>();
        let ys = |points: &[(i32, i32)]| points.iter().map(|(_, y)| *y).collect::<Vec<_>>();
        let all = |own: Vec<i32>, others: Vec<i32>| own.iter().max() < others.iter().min();
        let expected = [
            (Relation::Same, mine == theirs),
            (Relation::Overlaps, mine.iter().any(|point| theirs.contains(point))),
            (Relation::Contains, theirs.iter().all(|point| mine.contains(point))),
            (Relation::Within, mine.iter().all(|point| theirs.contains(point))),
            (Relation::Left, all(xs(&mine), xs(&theirs))),
            (Relation::Right, all(xs(&theirs), xs(&mine))),
            (Relation::Below, all(ys(&mine), ys(&theirs))),
            (Relation::Above, all(ys(&theirs), ys(&mine))),
            (Relation::NotRightOf, own[2] <= others[2]),
            (Relation::NotLeftOf, own[0] >= others[0]),
            (Relation::NotAboveOf, own[3] <= others[3]),
            (Relation::NotBelowOf, own[1] >= others[1]),
        ];
        for (relation, expected) in expected {
            prop_assert_eq!(first.is(relation, &second), expected, "{:?}", relation);
        }
        let common = first.intersection(&second).map(|common| {
            (-3i32..4).flat_map(|x| (-3i32..4).map(move |y| (x, y)))
                .filter(|(x, y)| common.has(Point::new(f64::from(*x), f64::from(*y))))
                .collect::<Vec<_>>()
        });
        let expected: Vec<(i32, i32)> = mine.iter().filter(|point| theirs.contains(point)).copied().collect();
        prop_assert_eq!(common.unwrap_or_default(), expected);
        prop_assert!(first.hull(&second).is(Relation::Contains, &first));
    }

    #[test]
    fn no_text_is_a_panic(text in "[-+0-9.,()<>einfa ]{0,20}", bytes: Vec<u8>) {
        for kind in GeometryKind::ALL {
            let _ = Geometry::parse(kind, &text);
            let _ = Geometry::from_bytes(kind, &bytes).to_string();
        }
    }
}

fn read(kind: GeometryKind, text: &str) -> std::result::Result<String, GeometryFault> {
    Geometry::parse(kind, text).map(|shape| shape.to_string())
}

#[test]
fn texts_are_read_with_the_brackets_that_postgresql_lets_them_have() {
    let texts = [
        (GeometryKind::Point, " ( 1.5 , -2 ) ", "(1.5,-2)"),
        (GeometryKind::Point, "1,2", "(1,2)"),
        (GeometryKind::Point, "(1e+15,-.5e-7)", "(1e+15,-5e-08)"),
        (GeometryKind::Point, "(inf,NaN)", "(Infinity,NaN)"),
        (GeometryKind::Box, "1,2,3,4", "(3,4),(1,2)"),
        (GeometryKind::Box, "((1,4), (3,2))", "(3,4),(1,2)"),
        (GeometryKind::Box, "(1,2),(3,4)", "(3,4),(1,2)"),
        (GeometryKind::Box, "(1,2,3,4)", "(3,4),(1,2)"),
        (GeometryKind::Circle, "<(1,2),3>", "<(1,2),3>"),
        (GeometryKind::Circle, "((1,2),3)", "<(1,2),3>"),
        (GeometryKind::Circle, "(1,2),3", "<(1,2),3>"),
        (GeometryKind::Circle, " 1 , 2 , 3 ", "<(1,2),3>"),
    ];
    for (kind, text, shown) in texts {
        assert_eq!(read(kind, text).as_deref(), Ok(shown), "{text}");
    }
}

#[test]
fn texts_that_are_none_are_refused() {
    let texts = [
        (GeometryKind::Point, "asdfasdf"),
        (GeometryKind::Point, "(10.0 10.0)"),
        (GeometryKind::Point, "(10.0, 10.0) x"),
        (GeometryKind::Point, "(10.0, 10.0"),
        (GeometryKind::Point, "(10,10.0,5)"),
        (GeometryKind::Point, ""),
        (GeometryKind::Box, "(2.3, 4.5)"),
        (GeometryKind::Box, "[1, 2, 3, 4)"),
        (GeometryKind::Box, "(1, 2, 3, 4) x"),
        (GeometryKind::Circle, "<(-100,0),-100>"),
        (GeometryKind::Circle, "<(100,200),10"),
        (GeometryKind::Circle, "<(100,200),10> x"),
        (GeometryKind::Circle, "1abc,3,5"),
    ];
    for (kind, text) in texts {
        assert_eq!(read(kind, text), Err(GeometryFault::Syntax), "{text}");
    }
    assert_eq!(read(GeometryKind::Point, "(1e+500,1)"), Err(GeometryFault::Number("1e+500".to_owned())));
    assert_eq!(read(GeometryKind::Point, "(1e-500,1)"), Err(GeometryFault::Number("1e-500".to_owned())));
}

#[test]
fn coordinates_are_equal_within_the_tolerance() {
    let near = Point::new(1.000_000_9, 1.0);
    let (one, far) = (Point::new(1.0, 1.0), Point::new(1.000_001_2, 1.0));
    assert!(one.is_same(near) && !one.is(Relation::Left, near) && one.is(Relation::Left, far) && !one.is_same(far));
    let nan = Point::new(f64::NAN, 1.0);
    assert!(nan.is_same(nan) && !nan.is_same(one));
    assert!(!Rectangle::of_corners(one, one).has(near));
    assert_eq!(order_of_areas(1.0, 1.000_000_5), Some(std::cmp::Ordering::Equal));
}

#[test]
fn points_are_turned_and_moved_as_complex_numbers() {
    let (first, second) = (Point::new(1.0, 2.0), Point::new(3.0, -1.0));
    assert_eq!(first.times(second), Ok(Point::new(5.0, 5.0)));
    assert_eq!(first.times(second).and_then(|product| product.over(second)), Ok(first));
    assert_eq!(first.over(Point::new(0.0, 0.0)), Err(GeometryFault::DivisionByZero));
    assert_eq!(Point::new(1e300, 0.0).times(Point::new(1e300, 0.0)), Err(GeometryFault::Overflow));
    assert_eq!(first.distance(Point::new(4.0, 6.0)), Ok(5.0));
    let round = Circle { center: first, radius: 1.0 };
    assert_eq!(round.distance_to_point(Point::new(1.0, 5.0)), Ok(2.0));
    assert_eq!(round.distance(&Circle { center: Point::new(1.0, 6.0), radius: 2.0 }), Ok(1.0));
    assert_eq!((first.slope(second), first.slope(first)), (Ok(-1.5), Ok(f64::INFINITY)));
    let square = Rectangle::of_corners(Point::new(0.0, 0.0), Point::new(2.0, 4.0));
    assert_eq!((square.distance(Point::new(5.0, 8.0)), square.distance(Point::new(1.0, 1.0))), (Ok(5.0), Ok(0.0)));
    assert_eq!((square.area(), square.center()), (Ok(8.0), Ok(first)));
}
