//! The functions and operators of points, boxes and circles.
use std::cmp::Ordering;

use arrow_array::Array;
use datafusion::logical_expr::Operator;
use engine::geometry::{Circle, Geometry, GeometryFault, GeometryKind, Point, Rectangle, Relation, order_of_areas};
use engine::{DataType, Value};

use super::form::{Form, PART, strict};
use crate::error::SqlError;
use crate::values::single::value_at;
use crate::values::space_input::fault_of_geometry;

type Computed<T> = Result<T, GeometryFault>;

const POINT: DataType = DataType::Geometry(GeometryKind::Point);
const BOX: DataType = DataType::Geometry(GeometryKind::Box);
const CIRCLE: DataType = DataType::Geometry(GeometryKind::Circle);

/// A value among the arguments of a function or among its results.
trait Argument: Sized {
    const TYPE: DataType;

    fn of(value: &Value) -> Option<Self>;
    fn value(self) -> Value;
}

macro_rules! arguments {
    ($($of:ty: $data_type:expr, $pattern:pat => $take:expr, $give:expr;)*) => {
        $(impl Argument for $of {
            const TYPE: DataType = $data_type;

            fn of(value: &Value) -> Option<$of> {
                match value {
                    $pattern => Some($take),
                    _ => None,
                }
            }

            fn value(self) -> Value {
                ($give)(self)
            }
        })*
    };
}

arguments! {
    f64: DataType::Double, Value::Double(number) => *number, Value::Double;
    bool: DataType::Boolean, Value::Boolean(truth) => *truth, Value::Boolean;
    Point: POINT, Value::Geometry(Geometry::Point(point)) => *point, |point| Value::Geometry(Geometry::Point(point));
    Rectangle: BOX, Value::Geometry(Geometry::Box(shape)) => *shape, |shape| Value::Geometry(Geometry::Box(shape));
    Circle: CIRCLE, Value::Geometry(Geometry::Circle(shape)) => *shape, |shape| Value::Geometry(Geometry::Circle(shape));
}

fn answer<T: Argument>(computed: Option<Computed<T>>) -> Result<Value, SqlError> {
    let computed = computed.transpose().map_err(|fault| fault_of_geometry(&fault))?;
    Ok(computed.map_or(Value::Null, T::value))
}

/// A form of one argument.
fn of_one<A: Argument, T: Argument>(compute: impl Fn(A) -> Computed<T> + Send + Sync + 'static) -> Form {
    strict([A::TYPE], T::TYPE, move |row| answer(row.first().and_then(A::of).map(&compute)))
}

/// A form of two arguments.
fn of_two<A: Argument, B: Argument, T: Argument>(
    compute: impl Fn(A, B) -> Computed<T> + Send + Sync + 'static,
) -> Form {
    strict([A::TYPE, B::TYPE], T::TYPE, move |row| {
        let pair = row.first().and_then(A::of).zip(row.get(1).and_then(B::of));
        answer(pair.map(|(left, right)| compute(left, right)))
    })
}

/// The functions under their names in SQL.
pub(super) fn named() -> Vec<(&'static str, Vec<Form>)> {
    let circle_of = |center: Point, radius: f64| Ok(Circle { center, radius });
    vec![
        (
            "point",
            vec![
                of_two(|x: f64, y: f64| Ok(Point::new(x, y))),
                of_one(|shape: Rectangle| shape.center()),
                of_one(|shape: Circle| Ok(shape.center)),
            ],
        ),
        (
            "box",
            vec![
                of_two(|first: Point, second: Point| Ok(Rectangle::of_corners(first, second))),
                of_one(|point: Point| Ok(Rectangle::of_corners(point, point))),
                of_one(|shape: Circle| shape.square()),
            ],
        ),
        ("circle", vec![of_two(circle_of), of_one(|shape: Rectangle| shape.circle())]),
        ("area", vec![of_one(|shape: Rectangle| shape.area()), of_one(|shape: Circle| shape.area())]),
        ("center", vec![of_one(|shape: Rectangle| shape.center()), of_one(|shape: Circle| Ok(shape.center))]),
        ("width", vec![of_one(|shape: Rectangle| shape.width())]),
        ("height", vec![of_one(|shape: Rectangle| shape.height())]),
        ("radius", vec![of_one(|shape: Circle| Ok(shape.radius))]),
        ("diameter", vec![of_one(|shape: Circle| Ok(shape.radius * 2.0))]),
        ("bound_box", vec![of_two(|first: Rectangle, second: Rectangle| Ok(first.hull(&second)))]),
        ("slope", vec![of_two(|first: Point, second: Point| first.slope(second))]),
        ("isvertical", vec![of_two(|first: Point, second: Point| Ok(first.is_upright_to(second)))]),
        ("ishorizontal", vec![of_two(|first: Point, second: Point| Ok(first.is_level_to(second)))]),
    ]
}

/// The operators under their names in SQL.
pub(super) fn operators() -> Vec<(&'static str, Vec<Form>)> {
    let relations = [
        ("~=", Relation::Same),
        ("&&", Relation::Overlaps),
        ("@>", Relation::Contains),
        ("<@", Relation::Within),
        ("<<", Relation::Left),
        (">>", Relation::Right),
        ("&<", Relation::NotRightOf),
        ("&>", Relation::NotLeftOf),
        ("<<|", Relation::Below),
        ("|>>", Relation::Above),
        ("&<|", Relation::NotAboveOf),
        ("|&>", Relation::NotBelowOf),
    ];
    let mut operators: Vec<(&str, Vec<Form>)> = relations.map(|(op, relation)| (op, related(relation))).into();
    operators.extend([("+", moved(Geometry::plus)), ("-", moved(Geometry::minus))]);
    operators.extend([("*", moved(Geometry::times)), ("/", moved(Geometry::over))]);
    operators.extend([
        ("<->", distances()),
        (PART, parts()),
        (
            "#",
            vec![strict([BOX, BOX], BOX, |row| {
                let pair = row.first().and_then(Rectangle::of).zip(row.get(1).and_then(Rectangle::of));
                Ok(pair.and_then(|(left, right)| left.intersection(&right)).map_or(Value::Null, Rectangle::value))
            })],
        ),
        ("?#", vec![of_two(|left: Rectangle, right: Rectangle| Ok(left.is(Relation::Overlaps, &right)))]),
        ("?-", vec![of_two(|left: Point, right: Point| Ok(left.is_level_to(right)))]),
        ("?|", vec![of_two(|left: Point, right: Point| Ok(left.is_upright_to(right)))]),
        ("<^", vertical(Relation::Below, Relation::NotAboveOf)),
        (">^", vertical(Relation::Above, Relation::NotBelowOf)),
        ("=", areas(Ordering::is_eq)),
        ("<", areas(Ordering::is_lt)),
        ("<=", areas(Ordering::is_le)),
        (">", areas(Ordering::is_gt)),
        (">=", areas(Ordering::is_ge)),
        (
            "<>",
            vec![
                of_two(|left: Point, right: Point| Ok(!left.is_same(right))),
                of_two(|left: Circle, right: Circle| areas_are(left.area()?, right.area()?, Ordering::is_ne)),
            ],
        ),
    ]);
    operators
}

/// A relation, of the shapes that are asked for it.
fn related(relation: Relation) -> Vec<Form> {
    let boxes = of_two(move |left: Rectangle, right: Rectangle| Ok(left.is(relation, &right)));
    let circles = of_two(move |left: Circle, right: Circle| left.is(relation, &right));
    let mut forms = vec![boxes, circles];
    match relation {
        Relation::Same | Relation::Left | Relation::Right | Relation::Below | Relation::Above => {
            forms.push(of_two(move |left: Point, right: Point| Ok(left.is(relation, right))));
        }
        Relation::Contains => {
            forms.push(of_two(|shape: Rectangle, point: Point| Ok(shape.has(point))));
            forms.push(of_two(|shape: Circle, point: Point| shape.has(point)));
        }
        Relation::Within => {
            forms.push(of_two(|point: Point, shape: Rectangle| Ok(shape.has(point))));
            forms.push(of_two(|point: Point, shape: Circle| shape.has(point)));
        }
        _ => {}
    }
    forms
}

/// Above or below: of points strictly, of boxes as far as their borders may meet.
fn vertical(of_points: Relation, of_borders: Relation) -> Vec<Form> {
    let line = |y: f64| Point::new(0.0, y);
    vec![
        of_two(move |left: Point, right: Point| Ok(left.is(of_points, right))),
        of_two(move |left: Rectangle, right: Rectangle| {
            let (own, other) = match of_points {
                Relation::Below => (left.high.y, right.low.y),
                _ => (left.low.y, right.high.y),
            };
            Ok(line(own).is(of_borders, line(other)))
        }),
    ]
}

/// A shape that is changed by a point.
fn moved(change: fn(Geometry, Point) -> Computed<Geometry>) -> Vec<Form> {
    let form = |of: DataType| {
        strict([of, POINT], of, move |row| match (row.first(), row.get(1).and_then(Point::of)) {
            (Some(Value::Geometry(shape)), Some(by)) => {
                change(*shape, by).map(Value::Geometry).map_err(|fault| fault_of_geometry(&fault))
            }
            _ => Ok(Value::Null),
        })
    };
    [POINT, BOX, CIRCLE].map(form).into()
}

fn distances() -> Vec<Form> {
    vec![
        of_two(|left: Point, right: Point| left.distance(right)),
        of_two(|left: Rectangle, right: Rectangle| left.center()?.distance(right.center()?)),
        of_two(|left: Circle, right: Circle| left.distance(&right)),
        of_two(|point: Point, shape: Rectangle| shape.distance(point)),
        of_two(|shape: Rectangle, point: Point| shape.distance(point)),
        of_two(|point: Point, shape: Circle| shape.distance_to_point(point)),
        of_two(|shape: Circle, point: Point| shape.distance_to_point(point)),
    ]
}

fn areas_are(left: f64, right: f64, ask: fn(Ordering) -> bool) -> Computed<bool> {
    Ok(order_of_areas(left, right).is_some_and(ask))
}

/// How two boxes or two circles are compared that have these areas, by an operator; `None` where there is none.
pub(crate) fn compare_areas(left: f64, op: Operator, right: f64) -> Option<bool> {
    let ask = match op {
        Operator::Eq => Ordering::is_eq,
        Operator::NotEq => Ordering::is_ne,
        Operator::Lt => Ordering::is_lt,
        Operator::LtEq => Ordering::is_le,
        Operator::Gt => Ordering::is_gt,
        Operator::GtEq => Ordering::is_ge,
        _ => return None,
    };
    areas_are(left, right, ask).ok()
}

/// The areas of an array of boxes or circles, NULL for NULL; `None` of other values.
///
/// # Errors
/// Where one is out of range.
pub(crate) fn areas_of(shapes: &dyn Array) -> Result<Option<Vec<Option<f64>>>, SqlError> {
    let kind = match DataType::from_arrow(shapes.data_type()) {
        Some(DataType::Geometry(kind @ (GeometryKind::Box | GeometryKind::Circle))) => kind,
        _ => return Ok(None),
    };
    let area = |row: usize| match value_at(shapes, row, DataType::Geometry(kind)) {
        Some(Value::Geometry(Geometry::Box(area))) => area.area().map(Some),
        Some(Value::Geometry(Geometry::Circle(area))) => area.area().map(Some),
        _ => Ok(None),
    };
    let areas = (0..shapes.len()).map(area).collect::<Computed<Vec<_>>>();
    areas.map(Some).map_err(|fault| fault_of_geometry(&fault))
}

/// A comparison, which is one of areas.
fn areas(ask: fn(Ordering) -> bool) -> Vec<Form> {
    vec![
        of_two(move |left: Rectangle, right: Rectangle| areas_are(left.area()?, right.area()?, ask)),
        of_two(move |left: Circle, right: Circle| areas_are(left.area()?, right.area()?, ask)),
    ]
}

/// The coordinate of a point, or the corner of a box, at a place; NULL where there is none.
fn parts() -> Vec<Form> {
    let at = |row: &[Value]| match row.get(1) {
        Some(Value::BigInt(at)) => Some(*at),
        _ => None,
    };
    vec![
        strict([POINT, DataType::BigInt], DataType::Double, move |row| {
            Ok(match (row.first().and_then(Point::of), at(row)) {
                (Some(point), Some(0)) => Value::Double(point.x),
                (Some(point), Some(1)) => Value::Double(point.y),
                _ => Value::Null,
            })
        }),
        strict([BOX, DataType::BigInt], POINT, move |row| {
            Ok(match (row.first().and_then(Rectangle::of), at(row)) {
                (Some(shape), Some(0)) => shape.high.value(),
                (Some(shape), Some(1)) => shape.low.value(),
                _ => Value::Null,
            })
        }),
    ]
}
