//! Trigrams of texts, as PostgreSQL's extension `pg_trgm` has them: what texts that are like each other have in common.
//!
//! ```text
//! "Two cats"        words "two", "cats", with two blanks before each and one behind: "  t" " tw" "two" "wo " "  c" " ca" "cat" "ats" "ts "
//! LIKE '%wo cat%'   "wo " "  c" " ca" "cat": no blanks where a word may go on
//! ```
//!
//! A word is a run of letters and digits, whatever their case.

/// Three signs that follow one another.
pub type Trigram = [char; 3];

/// Passes on the trigrams of a text, some of them perhaps more than once.
pub fn for_each_trigram(text: &str, take: &mut dyn FnMut(Trigram)) {
    let mut word = Word::default();
    for sign in text.chars() {
        word.literal(sign, take);
    }
    word.end(true, take);
}

/// Passes on trigrams that a text has if it is like a pattern, whatever the case of its letters: `%` stands for anything there, `_` for
/// any sign, and a backslash makes the next sign stand for itself.
pub fn for_each_trigram_of_pattern(pattern: &str, take: &mut dyn FnMut(Trigram)) {
    let (mut word, mut signs) = (Word::default(), pattern.chars());
    while let Some(sign) = signs.next() {
        match sign {
            '%' | '_' => word.wildcard(take),
            '\\' => word.literal(signs.next().unwrap_or('\\'), take),
            sign => word.literal(sign, take),
        }
    }
    word.end(true, take);
}

/// A word that is being read.
#[derive(Default)]
struct Word {
    signs: Vec<char>,
    /// Whether it begins where a wildcard ends, so that its beginning is not known.
    is_open: bool,
    was_wildcard: bool,
}

impl Word {
    fn literal(&mut self, sign: char, take: &mut dyn FnMut(Trigram)) {
        if sign.is_alphanumeric() {
            if self.signs.is_empty() {
                self.is_open = self.was_wildcard;
            }
            self.signs.push(folded(sign));
        } else {
            self.end(true, take);
        }
        self.was_wildcard = false;
    }

    fn wildcard(&mut self, take: &mut dyn FnMut(Trigram)) {
        self.end(false, take);
        self.was_wildcard = true;
    }

    /// Ends it, with its end known or not.
    fn end(&mut self, is_known: bool, take: &mut dyn FnMut(Trigram)) {
        if self.signs.is_empty() {
            return;
        }
        let before = if self.is_open { &[][..] } else { &[' ', ' '] };
        let behind = if is_known { &[' '][..] } else { &[] };
        let padded = [before, &self.signs, behind].concat();
        padded.windows(3).for_each(|three| take([three[0], three[1], three[2]]));
        self.signs.clear();
    }
}

/// A sign without its case, as far as it stays one sign. Two that a comparison without case takes for equal become one.
fn folded(sign: char) -> char {
    fn only(mut signs: impl Iterator<Item = char>, else_: char) -> char {
        match (signs.next(), signs.next()) {
            (Some(one), None) => one,
            _ => else_,
        }
    }
    let upper = only(sign.to_uppercase(), sign);
    only(upper.to_lowercase(), upper)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of_text(text: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for_each_trigram(text, &mut |three| {
            found.insert(three.iter().collect());
        });
        found
    }

    fn of_pattern(pattern: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for_each_trigram_of_pattern(pattern, &mut |three| {
            found.insert(three.iter().collect());
        });
        found
    }

    fn set(trigrams: &[&str]) -> BTreeSet<String> {
        trigrams.iter().map(|three| (*three).to_owned()).collect()
    }

    #[test]
    fn trigrams_are_those_of_words_and_of_the_parts_of_a_pattern_that_are_known() {
        assert_eq!(of_text("Two cats"), set(&["  t", " tw", "two", "wo ", "  c", " ca", "cat", "ats", "ts "]));
        assert_eq!(of_text("-- !"), set(&[]));
        assert_eq!(of_pattern("%wo cat%"), set(&["wo ", "  c", " ca", "cat"]));
        assert_eq!(of_pattern("abc%"), set(&["  a", " ab", "abc"]));
        assert_eq!(of_pattern("%abc"), set(&["abc", "bc "]));
        assert_eq!(of_pattern("%a_cd%"), set(&[]));
        assert_eq!(of_pattern("%100\\%%"), set(&["100", "00 "]), "a sign that is no letter ends a word");
        assert_eq!(of_text("ΣΑΣ ſ K"), of_text("σας S k"), "letters without their case");
    }

    /// Whether a text is like a pattern, whatever the case of its letters.
    fn is_like(text: &[char], pattern: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['%', rest @ ..], _) => (0..=text.len()).any(|skipped| is_like(&text[skipped..], rest)),
            (['_', rest @ ..], [_, behind @ ..]) => is_like(behind, rest),
            (['\\', sign, rest @ ..] | [sign, rest @ ..], [first, behind @ ..]) => {
                folded(*sign) == folded(*first) && is_like(behind, rest)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_text_has_the_trigrams_of_each_pattern_that_it_is_like(
            text in "[abAB1 .%]{0,8}",
            cuts in prop::collection::vec((any::<bool>(), 0..3usize), 0..8),
        ) {
            // A pattern of the text: signs become wildcards here and there.
            let mut pattern = String::new();
            let mut signs = text.chars();
            for (is_kept, count) in cuts {
                let part: String = signs.by_ref().take(count).collect();
                match is_kept {
                    true => pattern.extend(part.chars().flat_map(|sign| match sign {
                        '%' => vec!['\\', '%'],
                        sign => sign.to_uppercase().collect(),
                    })),
                    false if count == 1 && part.chars().count() == 1 => pattern.push('_'),
                    false => pattern.push('%'),
                }
            }
            pattern.push('%');
            let (signs, of): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
            prop_assert!(is_like(&signs, &of), "{} is like {}", text, pattern);
            let has = of_text(&text);
            let missing: Vec<String> = of_pattern(&pattern).into_iter().filter(|three| !has.contains(three)).collect();
            prop_assert!(missing.is_empty(), "{:?} of {} in {}", missing, pattern, text);
        }
    }
}
