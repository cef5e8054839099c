//! What is asked of points, boxes and circles, as PostgreSQL answers it.
//!
//! Coordinates that differ by at most [`TOLERANCE`] count as equal where PostgreSQL has it so: in what compares shapes with one
//! another. Whether a point lies in a box or in a circle is exact.
use super::{Circle, Geometry, GeometryFault, Point, Rectangle};

/// By how much coordinates may differ that count as equal.
pub const TOLERANCE: f64 = 1e-6;

type Result<T> = std::result::Result<T, GeometryFault>;

/// What may be asked of two shapes of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "each is the question of its name")]
pub enum Relation {
    Same,
    Overlaps,
    Contains,
    Within,
    Left,
    Right,
    NotRightOf,
    NotLeftOf,
    Below,
    Above,
    NotAboveOf,
    NotBelowOf,
}

fn equal(left: f64, right: f64) -> bool {
    left == right || (left - right).abs() <= TOLERANCE
}

fn less(left: f64, right: f64) -> bool {
    left + TOLERANCE < right
}

fn at_most(left: f64, right: f64) -> bool {
    left <= right + TOLERANCE
}

/// A result that has come from these numbers.
fn checked(result: f64, from: [f64; 2]) -> Result<f64> {
    let is_too_large = result.is_infinite() && from.iter().all(|number| !number.is_infinite());
    if is_too_large { Err(GeometryFault::Overflow) } else { Ok(result) }
}

fn add(left: f64, right: f64) -> Result<f64> {
    checked(left + right, [left, right])
}

fn subtract(left: f64, right: f64) -> Result<f64> {
    checked(left - right, [left, right])
}

fn multiply(left: f64, right: f64) -> Result<f64> {
    let product = checked(left * right, [left, right])?;
    let is_lost = product == 0.0 && left != 0.0 && right != 0.0;
    if is_lost { Err(GeometryFault::Underflow) } else { Ok(product) }
}

fn divide(left: f64, right: f64) -> Result<f64> {
    if right == 0.0 && !left.is_nan() {
        return Err(GeometryFault::DivisionByZero);
    }
    let quotient = left / right;
    if quotient.is_infinite() && !left.is_infinite() {
        return Err(GeometryFault::Overflow);
    }
    let is_lost = quotient == 0.0 && left != 0.0 && !right.is_infinite();
    if is_lost { Err(GeometryFault::Underflow) } else { Ok(quotient) }
}

impl Point {
    /// `~=`: whether two points are equal but for the tolerance. Of those with a NaN only equal ones are.
    pub fn is_same(self, other: Point) -> bool {
        let exact = |left: f64, right: f64| left == right || left.is_nan() && right.is_nan();
        if [self.x, self.y, other.x, other.y].iter().any(|number| number.is_nan()) {
            return exact(self.x, other.x) && exact(self.y, other.y);
        }
        equal(self.x, other.x) && equal(self.y, other.y)
    }

    /// Whether two points are in this relation. Points do not overlap, and contain nothing.
    pub fn is(self, relation: Relation, other: Point) -> bool {
        match relation {
            Relation::Same => self.is_same(other),
            Relation::Left => less(self.x, other.x),
            Relation::Right => less(other.x, self.x),
            Relation::Below => less(self.y, other.y),
            Relation::Above => less(other.y, self.y),
            Relation::NotRightOf => at_most(self.x, other.x),
            Relation::NotLeftOf => at_most(other.x, self.x),
            Relation::NotAboveOf => at_most(self.y, other.y),
            Relation::NotBelowOf => at_most(other.y, self.y),
            Relation::Overlaps | Relation::Contains | Relation::Within => false,
        }
    }

    /// Whether a line through both is upright.
    pub fn is_upright_to(self, other: Point) -> bool {
        equal(self.x, other.x)
    }

    /// Whether a line through both is level.
    pub fn is_level_to(self, other: Point) -> bool {
        equal(self.y, other.y)
    }

    /// The slope of a line through both; of an upright one infinite.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`], [`GeometryFault::Underflow`].
    pub fn slope(self, other: Point) -> Result<f64> {
        if equal(self.x, other.x) {
            return Ok(f64::INFINITY);
        }
        if equal(self.y, other.y) {
            return Ok(0.0);
        }
        divide(subtract(self.y, other.y)?, subtract(self.x, other.x)?)
    }

    /// How far two points are from one another.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn distance(self, other: Point) -> Result<f64> {
        length(subtract(self.x, other.x)?, subtract(self.y, other.y)?)
    }

    /// The point, moved by another one.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn plus(self, other: Point) -> Result<Point> {
        Ok(Point::new(add(self.x, other.x)?, add(self.y, other.y)?))
    }

    /// The point, moved back by another one.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn minus(self, other: Point) -> Result<Point> {
        Ok(Point::new(subtract(self.x, other.x)?, subtract(self.y, other.y)?))
    }

    /// The product of two points as complex numbers: one turned and stretched.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`], [`GeometryFault::Underflow`].
    pub fn times(self, other: Point) -> Result<Point> {
        let x = subtract(multiply(self.x, other.x)?, multiply(self.y, other.y)?)?;
        let y = add(multiply(self.x, other.y)?, multiply(self.y, other.x)?)?;
        Ok(Point::new(x, y))
    }

    /// The quotient of two points as complex numbers.
    ///
    /// # Errors
    /// [`GeometryFault::DivisionByZero`], [`GeometryFault::Overflow`], [`GeometryFault::Underflow`].
    pub fn over(self, other: Point) -> Result<Point> {
        let by = add(multiply(other.x, other.x)?, multiply(other.y, other.y)?)?;
        let x = divide(add(multiply(self.x, other.x)?, multiply(self.y, other.y)?)?, by)?;
        let y = divide(subtract(multiply(self.y, other.x)?, multiply(self.x, other.y)?)?, by)?;
        Ok(Point::new(x, y))
    }
}

/// The length of a line that goes so far to the right and upwards.
fn length(x: f64, y: f64) -> Result<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (longer, shorter) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    if shorter == 0.0 {
        return Ok(longer);
    }
    let ratio = shorter / longer;
    checked(longer * (1.0 + ratio * ratio).sqrt(), [longer, shorter])
}

impl Rectangle {
    /// Whether two boxes are in this relation.
    pub fn is(&self, relation: Relation, other: &Rectangle) -> bool {
        let (own, others) = (self, other);
        match relation {
            Relation::Same => own.high.is_same(others.high) && own.low.is_same(others.low),
            Relation::Overlaps => {
                at_most(own.low.x, others.high.x)
                    && at_most(others.low.x, own.high.x)
                    && at_most(own.low.y, others.high.y)
                    && at_most(others.low.y, own.high.y)
            }
            Relation::Contains => {
                at_most(others.high.x, own.high.x)
                    && at_most(own.low.x, others.low.x)
                    && at_most(others.high.y, own.high.y)
                    && at_most(own.low.y, others.low.y)
            }
            Relation::Within => others.is(Relation::Contains, own),
            Relation::Left => less(own.high.x, others.low.x),
            Relation::Right => less(others.high.x, own.low.x),
            Relation::NotRightOf => at_most(own.high.x, others.high.x),
            Relation::NotLeftOf => at_most(others.low.x, own.low.x),
            Relation::Below => less(own.high.y, others.low.y),
            Relation::Above => less(others.high.y, own.low.y),
            Relation::NotAboveOf => at_most(own.high.y, others.high.y),
            Relation::NotBelowOf => at_most(others.low.y, own.low.y),
        }
    }

    /// Whether a point is in it or on its border, exactly.
    pub fn has(&self, point: Point) -> bool {
        self.low.x <= point.x && point.x <= self.high.x && self.low.y <= point.y && point.y <= self.high.y
    }

    /// Its width.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn width(&self) -> Result<f64> {
        subtract(self.high.x, self.low.x)
    }

    /// Its height.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn height(&self) -> Result<f64> {
        subtract(self.high.y, self.low.y)
    }

    /// Its area.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`], [`GeometryFault::Underflow`].
    pub fn area(&self) -> Result<f64> {
        multiply(self.width()?, self.height()?)
    }

    /// Its centre.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn center(&self) -> Result<Point> {
        let middle = |low: f64, high: f64| divide(add(high, low)?, 2.0);
        Ok(Point::new(middle(self.low.x, self.high.x)?, middle(self.low.y, self.high.y)?))
    }

    /// What two boxes have in common, `None` if they do not overlap.
    pub fn intersection(&self, other: &Rectangle) -> Option<Rectangle> {
        let high = Point::new(self.high.x.min(other.high.x), self.high.y.min(other.high.y));
        let low = Point::new(self.low.x.max(other.low.x), self.low.y.max(other.low.y));
        self.is(Relation::Overlaps, other).then_some(Rectangle { high, low })
    }

    /// The least box that holds both.
    pub fn hull(&self, other: &Rectangle) -> Rectangle {
        let high = Point::new(self.high.x.max(other.high.x), self.high.y.max(other.high.y));
        let low = Point::new(self.low.x.min(other.low.x), self.low.y.min(other.low.y));
        Rectangle { high, low }
    }

    /// How far a point is from it; nothing if the point is in it.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn distance(&self, point: Point) -> Result<f64> {
        let beside = |at: f64, low: f64, high: f64| -> Result<f64> {
            match () {
                () if at < low => subtract(low, at),
                () if at > high => subtract(at, high),
                () => Ok(0.0),
            }
        };
        length(beside(point.x, self.low.x, self.high.x)?, beside(point.y, self.low.y, self.high.y)?)
    }

    /// The least circle around it.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn circle(&self) -> Result<Circle> {
        let center = self.center()?;
        Ok(Circle { center, radius: center.distance(self.high)? })
    }
}

impl Circle {
    /// Whether two circles are in this relation.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn is(&self, relation: Relation, other: &Circle) -> Result<bool> {
        let (own, others) = (self, other);
        let apart = || own.center.distance(others.center);
        Ok(match relation {
            Relation::Same => {
                let has_same_radius = own.radius.is_nan() && others.radius.is_nan() || equal(own.radius, others.radius);
                has_same_radius && own.center.is_same(others.center)
            }
            Relation::Overlaps => at_most(apart()?, add(own.radius, others.radius)?),
            Relation::Contains => at_most(apart()?, subtract(own.radius, others.radius)?),
            Relation::Within => others.is(Relation::Contains, own)?,
            Relation::Left => less(add(own.center.x, own.radius)?, subtract(others.center.x, others.radius)?),
            Relation::Right => less(add(others.center.x, others.radius)?, subtract(own.center.x, own.radius)?),
            Relation::NotRightOf => at_most(add(own.center.x, own.radius)?, add(others.center.x, others.radius)?),
            Relation::NotLeftOf => {
                at_most(subtract(others.center.x, others.radius)?, subtract(own.center.x, own.radius)?)
            }
            Relation::Below => less(add(own.center.y, own.radius)?, subtract(others.center.y, others.radius)?),
            Relation::Above => less(add(others.center.y, others.radius)?, subtract(own.center.y, own.radius)?),
            Relation::NotAboveOf => at_most(add(own.center.y, own.radius)?, add(others.center.y, others.radius)?),
            Relation::NotBelowOf => {
                at_most(subtract(others.center.y, others.radius)?, subtract(own.center.y, own.radius)?)
            }
        })
    }

    /// Whether a point is in it or on its border, exactly.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn has(&self, point: Point) -> Result<bool> {
        Ok(self.center.distance(point)? <= self.radius)
    }

    /// Its area.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`], [`GeometryFault::Underflow`].
    pub fn area(&self) -> Result<f64> {
        multiply(multiply(self.radius, self.radius)?, std::f64::consts::PI)
    }

    /// How far a point is from it; nothing if the point is in it.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn distance_to_point(&self, point: Point) -> Result<f64> {
        Ok(not_below_zero(subtract(self.center.distance(point)?, self.radius)?))
    }

    /// How far two circles are from one another; nothing if they overlap.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn distance(&self, other: &Circle) -> Result<f64> {
        let radii = add(self.radius, other.radius)?;
        Ok(not_below_zero(subtract(self.center.distance(other.center)?, radii)?))
    }

    /// The greatest box in it with sides as long as one another.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn square(&self) -> Result<Rectangle> {
        let half = divide(self.radius, std::f64::consts::SQRT_2)?;
        let by = Point::new(half, half);
        Ok(Rectangle { high: self.center.plus(by)?, low: self.center.minus(by)? })
    }
}

fn not_below_zero(distance: f64) -> f64 {
    if distance < 0.0 { 0.0 } else { distance }
}

/// How areas are compared.
pub fn order_of_areas(left: f64, right: f64) -> Option<std::cmp::Ordering> {
    if equal(left, right) { Some(std::cmp::Ordering::Equal) } else { left.partial_cmp(&right) }
}

impl Geometry {
    /// The shape, with each of its points changed; a circle's radius stretched by so much.
    ///
    /// # Errors
    /// Those of the change.
    pub fn with_points(
        self,
        change: impl Fn(Point) -> Result<Point>,
        stretch: impl Fn(f64) -> Result<f64>,
    ) -> Result<Geometry> {
        Ok(match self {
            Geometry::Point(point) => Geometry::Point(change(point)?),
            Geometry::Box(Rectangle { high, low }) => Geometry::Box(Rectangle::of_corners(change(high)?, change(low)?)),
            Geometry::Circle(Circle { center, radius }) => {
                Geometry::Circle(Circle { center: change(center)?, radius: stretch(radius)? })
            }
        })
    }

    /// `+`: the shape, moved by a point.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn plus(self, by: Point) -> Result<Geometry> {
        self.with_points(|point| point.plus(by), Ok)
    }

    /// `-`: the shape, moved back by a point.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`].
    pub fn minus(self, by: Point) -> Result<Geometry> {
        self.with_points(|point| point.minus(by), Ok)
    }

    /// `*`: the shape, turned and stretched by a point as a complex number.
    ///
    /// # Errors
    /// [`GeometryFault::Overflow`], [`GeometryFault::Underflow`].
    pub fn times(self, by: Point) -> Result<Geometry> {
        self.with_points(|point| point.times(by), |radius| multiply(radius, length(by.x, by.y)?))
    }

    /// `/`: the shape, turned and stretched back by a point as a complex number.
    ///
    /// # Errors
    /// [`GeometryFault::DivisionByZero`], [`GeometryFault::Overflow`], [`GeometryFault::Underflow`].
    pub fn over(self, by: Point) -> Result<Geometry> {
        self.with_points(|point| point.over(by), |radius| divide(radius, length(by.x, by.y)?))
    }
}
