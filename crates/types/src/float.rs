//! Floats as PostgreSQL writes them: the shortest digits that read back as the same number, with an exponent where C's `%g` has one.

/// A `double precision` as text.
pub fn double_text(value: f64) -> String {
    special(value).unwrap_or_else(|| scientific(&format!("{value:e}"), 15))
}

/// A `real` as text.
pub fn real_text(value: f32) -> String {
    special(f64::from(value)).unwrap_or_else(|| scientific(&format!("{value:e}"), 6))
}

fn special(value: f64) -> Option<String> {
    match value {
        _ if value.is_nan() => Some("NaN".to_owned()),
        f64::INFINITY => Some("Infinity".to_owned()),
        f64::NEG_INFINITY => Some("-Infinity".to_owned()),
        _ => None,
    }
}

/// The shortest digits that read back as the same float, given as `d.ddde5`, in the form of C's `%g`: with an exponent
/// below -4 or from `digits` on.
fn scientific(shortest: &str, digits: i32) -> String {
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let all: String = mantissa.chars().filter(|c| *c != '.').collect();
    match usize::try_from(exponent) {
        Err(_) => format!("{sign}0.{}{all}", "0".repeat(exponent.unsigned_abs() as usize - 1)),
        Ok(exponent) if all.len() <= exponent + 1 => format!("{sign}{all:0<width$}", width = exponent + 1),
        Ok(exponent) => format!("{sign}{}.{}", &all[..=exponent], &all[exponent + 1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_postgresql_does() {
        let values = [1.0, -0.1, 1e14, 1e15, 123_456_789_012_345_680.0, 1e-4, 1e-5, 1e300, f64::NAN, f64::NEG_INFINITY];
        let texts = ["1", "-0.1", "100000000000000", "1e+15", "1.2345678901234568e+17", "0.0001", "1e-05", "1e+300"];
        let shown = values.map(double_text);
        assert_eq!(shown[..8], texts);
        assert_eq!(shown[8..], ["NaN", "-Infinity"]);
        assert_eq!([0.1, 123_456.0, 1_234_567.0, -0.0].map(real_text), ["0.1", "123456", "1.234567e+06", "-0"]);
    }
}
