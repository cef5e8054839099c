//! Whether a `jsonb` contains another one, and whether it has a key: told from the bytes of both, without a tree of either.
//!
//! ```text
//! object  has each member of the other object: members are in one order in both, and are gone through side by side
//! array   has each item of the other array among its own, in any order
//! plain   is the other value; the bytes of equal values are equal
//! ```
//!
//! A whole that is an array also contains a plain value that is one of its items.
use super::jsonb::{ARRAY, EMPTY, Jsonb, OBJECT, TEXT};
use super::walk::Walk;

impl Jsonb {
    /// Whether the value that is kept as `whole` contains the one kept as `part` (`@>`). What is no value contains nothing.
    pub fn contains(whole: &[u8], part: &[u8]) -> bool {
        let (mut whole, mut part) = (Walk::new(whole), Walk::new(part));
        let is_item =
            matches!(whole.first(), Some(ARRAY | EMPTY)) && !matches!(part.first(), Some(ARRAY | EMPTY | OBJECT));
        let found = if is_item { has_item(&mut whole, &part) } else { contains(&mut whole, &mut part) };
        found == Some(true)
    }

    /// Whether a text is a key of the object, an item of the array, or the string, that is kept as these bytes (`?`).
    pub fn has_key(bytes: &[u8], key: &str) -> bool {
        let mut walk = Walk::new(bytes);
        let found = match walk.byte() {
            Some(OBJECT) => walk.count().and_then(|count| {
                for _ in 0..count {
                    if walk.text()? == key {
                        return Some(true);
                    }
                    walk.skip()?;
                }
                Some(false)
            }),
            Some(ARRAY) => walk.count().and_then(|count| {
                for _ in 0..count {
                    if walk.first() == Some(TEXT) {
                        walk.byte()?;
                        if walk.text()? == key {
                            return Some(true);
                        }
                    } else {
                        walk.skip()?;
                    }
                }
                Some(false)
            }),
            Some(TEXT) => walk.text().map(|text| text == key),
            _ => None,
        };
        found == Some(true)
    }
}

/// How many items the array has that is next, which is gone into.
fn items(walk: &mut Walk<'_>) -> Option<usize> {
    match walk.byte()? {
        ARRAY => walk.count(),
        _ => Some(0),
    }
}

/// Whether the array that is next has an item that contains the value that is next in `part`.
fn has_item(whole: &mut Walk<'_>, part: &Walk<'_>) -> Option<bool> {
    let count = items(whole)?;
    whole.deeper(|whole| {
        for _ in 0..count {
            if contains(&mut whole.clone(), &mut part.clone())? {
                return Some(true);
            }
            whole.skip()?;
        }
        Some(false)
    })
}

/// Whether the value that is next in `whole` contains the one that is next in `part`. Where it does not, neither is gone through.
fn contains(whole: &mut Walk<'_>, part: &mut Walk<'_>) -> Option<bool> {
    match (whole.first()?, part.first()?) {
        (OBJECT, OBJECT) => has_members(whole, part),
        (ARRAY | EMPTY, ARRAY | EMPTY) => {
            let wanted = items(part)?;
            for _ in 0..wanted {
                if !has_item(&mut whole.clone(), part)? {
                    return Some(false);
                }
                part.skip()?;
            }
            Some(true)
        }
        (ARRAY | EMPTY | OBJECT, _) | (_, ARRAY | EMPTY | OBJECT) => Some(false),
        _ => {
            let (of_whole, of_part) = (whole.at(), part.at());
            whole.skip()?;
            part.skip()?;
            Some(whole.since(of_whole) == part.since(of_part))
        }
    }
}

/// Whether the object that is next in `whole` has all members of the one that is next in `part`.
fn has_members(whole: &mut Walk<'_>, part: &mut Walk<'_>) -> Option<bool> {
    whole.byte()?;
    part.byte()?;
    let (mut left, wanted) = (whole.count()?, part.count()?);
    if wanted > left {
        return Some(false);
    }
    whole.deeper(|whole| {
        for _ in 0..wanted {
            let key = part.text()?;
            loop {
                if left == 0 {
                    return Some(false);
                }
                left -= 1;
                let found = whole.text()?;
                if found == key {
                    break;
                }
                // Shorter keys come first, and of equal length the lesser.
                if (found.len(), found) > (key.len(), key) {
                    return Some(false);
                }
                whole.skip()?;
            }
            if !contains(&mut whole.clone(), &mut part.clone())? {
                return Some(false);
            }
            whole.skip()?;
            part.skip()?;
        }
        Some(true)
    })
}
