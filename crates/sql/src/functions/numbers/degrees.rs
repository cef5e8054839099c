//! Functions of angles in degrees, which are exact where the angle or the result is a round one: `sind(30)` is 0.5.
//!
//! An angle is brought into the first quarter of the circle, and what is known there of 30, 45 and 60 degrees scales what the
//! functions of radians give, so that their rounding of these falls out.
use std::f64::consts::PI;
use std::sync::LazyLock;

use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, double, function};

/// What the functions of radians give for round angles.
struct Known {
    sin_30: f64,
    one_minus_cos_60: f64,
    asin_half: f64,
    acos_half: f64,
    atan_one: f64,
    tan_45: f64,
    cot_45: f64,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut known = Known {
        sin_30: radians(30.0).sin(),
        one_minus_cos_60: 1.0 - radians(60.0).cos(),
        asin_half: 0.5_f64.asin(),
        acos_half: 0.5_f64.acos(),
        atan_one: 1.0_f64.atan(),
        tan_45: 1.0,
        cot_45: 1.0,
    };
    known.tan_45 = known.sine(45.0) / known.cosine(45.0);
    known.cot_45 = known.cosine(45.0) / known.sine(45.0);
    known
});

fn radians(degrees: f64) -> f64 {
    degrees * (PI / 180.0)
}

impl Known {
    fn small_sine(&self, angle: f64) -> f64 {
        radians(angle).sin() / self.sin_30 / 2.0
    }

    fn large_cosine(&self, angle: f64) -> f64 {
        1.0 - (1.0 - radians(angle).cos()) / self.one_minus_cos_60 / 2.0
    }

    /// Of an angle from 0 to 90.
    fn sine(&self, angle: f64) -> f64 {
        if angle <= 30.0 { self.small_sine(angle) } else { self.large_cosine(90.0 - angle) }
    }

    /// Of an angle from 0 to 90.
    fn cosine(&self, angle: f64) -> f64 {
        if angle <= 60.0 { self.large_cosine(angle) } else { self.small_sine(90.0 - angle) }
    }

    /// Of a number from 0 to 1.
    fn arcsine(&self, value: f64) -> f64 {
        match value <= 0.5 {
            true => value.asin() / self.asin_half * 30.0,
            false => 90.0 - value.acos() / self.acos_half * 60.0,
        }
    }

    /// Of a number from 0 to 1.
    fn arccosine(&self, value: f64) -> f64 {
        match value <= 0.5 {
            true => 90.0 - value.asin() / self.asin_half * 30.0,
            false => value.acos() / self.acos_half * 60.0,
        }
    }
}

/// An angle in the first quarter, and the signs that its sine and cosine have.
fn first_quarter(angle: f64) -> (f64, f64, f64) {
    let (mut angle, mut sine, mut cosine) = (angle % 360.0, 1.0, 1.0);
    if angle < 0.0 {
        (angle, sine) = (-angle, -sine);
    }
    if angle > 180.0 {
        (angle, sine) = (360.0 - angle, -sine);
    }
    if angle > 90.0 {
        (angle, cosine) = (180.0 - angle, -cosine);
    }
    (angle, sine, cosine)
}

/// Never the zero below zero.
fn plain(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

fn sind(angle: f64) -> f64 {
    let (angle, sign, _) = first_quarter(angle);
    sign * KNOWN.sine(angle)
}

fn cosd(angle: f64) -> f64 {
    let (angle, _, sign) = first_quarter(angle);
    sign * KNOWN.cosine(angle)
}

fn tand(angle: f64) -> f64 {
    let (angle, sine, cosine) = first_quarter(angle);
    plain(sine * cosine * (KNOWN.sine(angle) / KNOWN.cosine(angle) / KNOWN.tan_45))
}

fn cotd(angle: f64) -> f64 {
    let (angle, sine, cosine) = first_quarter(angle);
    plain(sine * cosine * (KNOWN.cosine(angle) / KNOWN.sine(angle) / KNOWN.cot_45))
}

fn asind(value: f64) -> f64 {
    if value < 0.0 { -KNOWN.arcsine(-value) } else { KNOWN.arcsine(value) }
}

fn acosd(value: f64) -> f64 {
    if value < 0.0 { 90.0 + KNOWN.arcsine(-value) } else { KNOWN.arccosine(value) }
}

fn outside() -> SqlError {
    SqlError::new("22003", "input is out of range")
}

type Answer = Result<Option<Cell>, SqlError>;

/// A function of an angle, which is finite.
fn of_angle(row: &[Option<Cell>], compute: fn(f64) -> f64) -> Answer {
    match double(row.first()) {
        angle if angle.is_infinite() => Err(outside()),
        angle if angle.is_nan() => Ok(Some(Cell::Double(angle))),
        angle => Ok(Some(Cell::Double(compute(angle)))),
    }
}

/// A function of what a sine may be.
fn of_sine(row: &[Option<Cell>], compute: fn(f64) -> f64) -> Answer {
    match double(row.first()) {
        value if value.is_nan() => Ok(Some(Cell::Double(value))),
        value if !(-1.0..=1.0).contains(&value) => Err(outside()),
        value => Ok(Some(Cell::Double(compute(value)))),
    }
}

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    use Kind::Double;
    const SIND: &[Variant] = &[Variant::strict(&[Double], Double, |row| of_angle(row, sind))];
    const COSD: &[Variant] = &[Variant::strict(&[Double], Double, |row| of_angle(row, cosd))];
    const TAND: &[Variant] = &[Variant::strict(&[Double], Double, |row| of_angle(row, tand))];
    const COTD: &[Variant] = &[Variant::strict(&[Double], Double, |row| of_angle(row, cotd))];
    const ASIND: &[Variant] = &[Variant::strict(&[Double], Double, |row| of_sine(row, asind))];
    const ACOSD: &[Variant] = &[Variant::strict(&[Double], Double, |row| of_sine(row, acosd))];
    const ATAND: &[Variant] = &[Variant::strict(&[Double], Double, |row| {
        Ok(Some(Cell::Double(double(row.first()).atan() / KNOWN.atan_one * 45.0)))
    })];
    const ATAN2D: &[Variant] = &[Variant::strict(&[Double, Double], Double, |row| {
        let angle = double(row.first()).atan2(double(row.get(1)));
        Ok(Some(Cell::Double(angle / KNOWN.atan_one * 45.0)))
    })];
    let named: [(&'static str, &'static [Variant]); 8] = [
        ("sind", SIND),
        ("cosd", COSD),
        ("tand", TAND),
        ("cotd", COTD),
        ("asind", ASIND),
        ("acosd", ACOSD),
        ("atand", ATAND),
        ("atan2d", ATAN2D),
    ];
    named.into_iter().map(|(name, variants)| function(name, variants))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_angles_have_round_values() {
        assert_eq!((sind(30.0), sind(150.0), sind(-30.0), sind(270.0)), (0.5, 0.5, -0.5, -1.0));
        assert_eq!((cosd(60.0), cosd(120.0), cosd(180.0)), (0.5, -0.5, -1.0));
        assert_eq!((tand(45.0), tand(135.0), tand(90.0), cotd(45.0)), (1.0, -1.0, f64::INFINITY, 1.0));
        assert_eq!((asind(0.5), acosd(0.5), acosd(-0.5)), (30.0, 60.0, 120.0));
    }
}
