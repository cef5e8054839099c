//! Points, boxes and circles in the plane, as PostgreSQL's geometric types have them.
//!
//! ```text
//! point    x | y                                  box    upper right corner | lower left corner    circle    centre | radius
//! ```
//!
//! Each number is kept as the eight bytes of its float, the most significant first. A zero follows the last one, so that a shape has
//! a number of bytes that few other things have; see [`GeometryKind::width`]. There is no order of shapes.
mod operators;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::float::double_text;

pub use operators::{Relation, TOLERANCE, order_of_areas};

/// The most bytes that a shape is kept in.
pub const GEOMETRY_BYTES_MAX: usize = 33;

/// Bytes of a number.
const NUMBER: usize = 8;

/// The geometric types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum GeometryKind {
    /// `point`
    Point,
    /// `box`
    Box,
    /// `circle`
    Circle,
}

/// A point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// to the right
    pub x: f64,
    /// upwards
    pub y: f64,
}

/// A box with sides along the axes. NaN counts as greater than all numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rectangle {
    /// the corner with the greater coordinates
    pub high: Point,
    /// the corner with the lesser ones
    pub low: Point,
}

/// A circle with what is in it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Circle {
    /// its centre
    pub center: Point,
    /// its radius
    pub radius: f64,
}

/// A value of a geometric type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Geometry {
    /// a `point`
    Point(Point),
    /// a `box`
    Box(Rectangle),
    /// a `circle`
    Circle(Circle),
}

/// What is wrong with the text of a shape, or with what is computed of shapes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GeometryFault {
    /// The text is none of the type.
    Syntax,
    /// This number of the text is none of a float.
    Number(String),
    /// A result is too large for a float.
    Overflow,
    /// A result is too small for a float.
    Underflow,
    /// A division by zero.
    DivisionByZero,
}

impl GeometryKind {
    /// All kinds.
    pub const ALL: [GeometryKind; 3] = [GeometryKind::Point, GeometryKind::Box, GeometryKind::Circle];

    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            GeometryKind::Point => "point",
            GeometryKind::Box => "box",
            GeometryKind::Circle => "circle",
        }
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<GeometryKind> {
        GeometryKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How many numbers a value is made of.
    pub fn numbers(self) -> usize {
        match self {
            GeometryKind::Point => 2,
            GeometryKind::Box => 4,
            GeometryKind::Circle => 3,
        }
    }

    /// The bytes of each value of this kind: by them an Arrow type tells it, from ranges and from the other kinds.
    pub fn width(self) -> usize {
        self.numbers() * NUMBER + 1
    }
}

impl Point {
    /// The point at these coordinates.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }
}

impl Rectangle {
    /// The box with these opposite corners, in any order.
    pub fn of_corners(first: Point, second: Point) -> Rectangle {
        let ordered = |first: f64, second: f64| if is_less(first, second) { (second, first) } else { (first, second) };
        let (x, y) = (ordered(first.x, second.x), ordered(first.y, second.y));
        Rectangle { high: Point::new(x.0, y.0), low: Point::new(x.1, y.1) }
    }
}

/// Whether a float is less than another one, NaN greater than all.
fn is_less(left: f64, right: f64) -> bool {
    if left.is_nan() { false } else { right.is_nan() || left < right }
}

impl Geometry {
    /// Its type.
    pub fn kind(&self) -> GeometryKind {
        match self {
            Geometry::Point(_) => GeometryKind::Point,
            Geometry::Box(_) => GeometryKind::Box,
            Geometry::Circle(_) => GeometryKind::Circle,
        }
    }

    /// Its numbers in the order in which they are kept, then zeros.
    pub fn numbers(&self) -> [f64; 4] {
        match self {
            Geometry::Point(point) => [point.x, point.y, 0.0, 0.0],
            Geometry::Box(Rectangle { high, low }) => [high.x, high.y, low.x, low.y],
            Geometry::Circle(Circle { center, radius }) => [center.x, center.y, *radius, 0.0],
        }
    }

    /// The shape of these numbers, of which the first ones count. Corners of a box may be given in any order.
    pub fn of_numbers(kind: GeometryKind, numbers: [f64; 4]) -> Geometry {
        let [first, second, third, fourth] = numbers;
        let point = Point::new(first, second);
        match kind {
            GeometryKind::Point => Geometry::Point(point),
            GeometryKind::Box => Geometry::Box(Rectangle::of_corners(point, Point::new(third, fourth))),
            GeometryKind::Circle => Geometry::Circle(Circle { center: point, radius: third }),
        }
    }

    /// The shape as it is kept: [`GeometryKind::width`] bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        self.write_bytes(&mut [0; GEOMETRY_BYTES_MAX]).to_vec()
    }

    /// Writes the shape as it is kept.
    ///
    /// # Panics
    /// If the room is less than [`GEOMETRY_BYTES_MAX`] bytes.
    pub fn write_bytes<'a>(&self, room: &'a mut [u8]) -> &'a [u8] {
        let bytes = &mut room[..GEOMETRY_BYTES_MAX][..self.kind().width()];
        for (place, number) in bytes.chunks_exact_mut(NUMBER).zip(self.numbers()) {
            place.copy_from_slice(&number.to_bits().to_be_bytes());
        }
        if let Some(last) = bytes.last_mut() {
            *last = 0;
        }
        bytes
    }

    /// The shape that is kept as these bytes; what is too short has zeros behind it.
    pub fn from_bytes(kind: GeometryKind, bytes: &[u8]) -> Geometry {
        let mut numbers = [0.0; 4];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(NUMBER)) {
            let mut bits = [0; NUMBER];
            bits.copy_from_slice(bytes);
            *number = f64::from_bits(u64::from_be_bytes(bits));
        }
        Geometry::of_numbers(kind, numbers)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", double_text(self.x), double_text(self.y))
    }
}

/// As PostgreSQL writes shapes: `(1,2)`, `(3,4),(1,2)`, `<(1,2),3>`.
impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Geometry::Point(point) => write!(f, "{point}"),
            Geometry::Box(Rectangle { high, low }) => write!(f, "{high},{low}"),
            Geometry::Circle(Circle { center, radius }) => write!(f, "<{center},{}>", double_text(*radius)),
        }
    }
}
