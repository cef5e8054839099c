//! The amount of memory that tables may take, as a setting: `'2GB'`, in PostgreSQL's units, or `none`; and that of an index.

/// The option of an index that says what it searches first may take.
pub(crate) const BUDGET: &str = "budget";

const UNITS: [(&str, u32); 5] = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10), ("B", 0)];

/// Reads the setting `memory_limit`: a limit in bytes, or none.
///
/// # Errors
/// A hint that says which texts are valid, if this one is not.
pub fn parse(text: &str) -> Result<Option<u64>, &'static str> {
    let text = text.trim();
    if text == "0" || text.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (unit, shift) = unit.ok_or("Say a unit: B, kB, MB, GB or TB; or \"none\" for no limit.")?;
    let number = text[..text.len() - unit.len()].trim();
    let whole = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    match whole {
        Some(bytes @ 1..) => Ok(Some(bytes)),
        _ => Err("It is a whole number of units, such as \"512MB\" or \"2GB\"; or \"none\" for no limit."),
    }
}

/// A limit as it can be given again.
pub(crate) fn show(limit: Option<u64>) -> String {
    let Some(bytes) = limit else { return "none".to_owned() };
    let fits = UNITS.iter().find(|(_, shift)| bytes % (1 << shift) == 0);
    fits.map_or_else(|| format!("{bytes}B"), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_shown_as_they_can_be_given() {
        for text in ["none", "1B", "1kB", "1025B", "512MB", "2GB", "3TB", "1536MB"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
        assert_eq!((parse("0"), parse(" 2048 MB ").map(show)), (Ok(None), Ok("2GB".to_owned())));
        for text in ["", "2", "2gb", "-1GB", "0GB", "1.5GB", "GB", "99999999TB", "many"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
