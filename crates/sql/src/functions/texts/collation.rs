//! Keys of texts by the order of a language: texts whose bytes compare as the Unicode Collation Algorithm orders the first ones, with
//! the rules that CLDR has for the language (crate `icu_collator`). Texts that it takes for the same are ordered by their bytes, as
//! PostgreSQL's deterministic collations do, so that only equal texts have equal keys.
//!
//! ```text
//! key = sort key of the text | 0 | bytes of the text
//! ```
//!
//! No sort key has a byte 0 in it. Each byte is a character of the result, which has their order: what orders rows, windows included,
//! knows texts.
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::ScalarUDF;
use icu_collator::options::CollatorOptions;
use icu_collator::{Collator, CollatorBorrowed};
use icu_locale_core::Locale;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, text};
use crate::syntax::identifiers::{BY_BYTES, TEXT_OF_KEY};

/// The name of the function, which only we can spell: of a text and a locale.
pub(crate) const COLLATION_KEY: &str = "\0collation_key";

thread_local! {
    /// The collator that was asked for last, with its locale.
    static LAST: RefCell<Option<(String, CollatorBorrowed<'static>)>> = const { RefCell::new(None) };
}

/// The functions under their names.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    const SELF: &[Variant] =
        &[Variant::strict(&[Kind::Text], Kind::Text, |row| Ok(Some(Cell::Text(text(row.first()).to_owned()))))];
    [key_of_text(), text_of_key(), function(BY_BYTES, SELF)].into_iter()
}

/// The function that makes the keys.
pub(crate) fn key_function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(key_of_text()));
    FUNCTION.clone()
}

/// The function that gives back the text that a key was made of.
pub(crate) fn text_function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(text_of_key()));
    FUNCTION.clone()
}

fn text_of_key() -> ScalarUDF {
    const TEXT: &[Variant] =
        &[Variant::strict(&[Kind::Text], Kind::Text, |row| Ok(Some(Cell::Text(text_in(text(row.first()))))))];
    function(TEXT_OF_KEY, TEXT)
}

/// The text at the end of a key; what is a text already stays one.
fn text_in(key: &str) -> String {
    let Some((_, bytes)) = key.split_once('\0') else { return key.to_owned() };
    String::from_utf8(bytes.chars().map(|byte| byte as u8).collect()).unwrap_or_default()
}

fn key_of_text() -> ScalarUDF {
    const KEY: &[Variant] = &[Variant::strict(&[Kind::Text, Kind::Text], Kind::Text, |row| {
        let key = key(text(row.first()), text(row.get(1)))?;
        Ok(Some(Cell::Text(key.into_iter().map(char::from).collect())))
    })];
    function(COLLATION_KEY, KEY)
}

fn key(text: &str, locale: &str) -> Result<Vec<u8>, SqlError> {
    LAST.with_borrow_mut(|last| {
        if last.as_ref().is_none_or(|(of, _)| of != locale) {
            *last = Some((locale.to_owned(), collator(locale)?));
        }
        let mut key = Vec::with_capacity(2 * text.len() + 8);
        if let Some((_, collator)) = last {
            let Ok(()) = collator.write_sort_key_to(text, &mut key);
        }
        key.push(0);
        key.extend_from_slice(text.as_bytes());
        Ok(key)
    })
}

/// Refuses a locale that has no order.
pub(crate) fn check(locale: &str) -> Result<(), SqlError> {
    collator(locale).map(drop)
}

fn collator(locale: &str) -> Result<CollatorBorrowed<'static>, SqlError> {
    let parsed: Locale = locale.parse().map_err(|_| SqlError::new("42704", format!("\"{locale}\" is no locale")))?;
    Collator::try_new(parsed.into(), CollatorOptions::default())
        .map_err(|error| SqlError::new("XX000", format!("no collation of \"{locale}\": {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<'t>(locale: &str, texts: &[&'t str]) -> Vec<&'t str> {
        let mut texts = texts.to_vec();
        texts.sort_by_cached_key(|text| key(text, locale).unwrap());
        texts
    }

    #[test]
    fn texts_are_ordered_as_their_language_does() {
        let words = ["zebra", "Äpfel", "apple", "Zoo", "äpfel", "Apple", "öl", ""];
        assert_eq!(sorted("und", &words), ["", "äpfel", "Äpfel", "apple", "Apple", "öl", "zebra", "Zoo"]);
        assert_eq!(sorted("sv", &words), ["", "apple", "Apple", "zebra", "Zoo", "äpfel", "Äpfel", "öl"]);
        assert_eq!(sorted("es", &["nz", "ña", "oa"]), ["nz", "ña", "oa"]);
    }

    #[test]
    fn only_equal_texts_have_equal_keys() {
        // One letter, and the letter with its mark as a sign of its own.
        let (one, two) = ("\u{e9}", "e\u{301}");
        assert_ne!(key(one, "fr").unwrap(), key(two, "fr").unwrap());
        assert!(key(two, "fr").unwrap() < key("f", "fr").unwrap());
        let texts = ["a", "a\0b", "a\0", "ab", "\u{1}a", "a-b", "a b", "🙂", "日本"];
        for left in texts {
            for right in texts {
                let (of_left, of_right) = (key(left, "en").unwrap(), key(right, "en").unwrap());
                assert_eq!(of_left == of_right, left == right, "{left:?} {right:?}");
                let shown = |key: &[u8]| key.iter().map(|byte| char::from(*byte)).collect::<String>();
                assert_eq!(text_in(&shown(&of_left)), left);
                assert_eq!(shown(&of_left).cmp(&shown(&of_right)), of_left.cmp(&of_right));
            }
        }
    }
}
