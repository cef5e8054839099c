//! How similar texts are by their trigrams: the functions and operators of PostgreSQL's extension `pg_trgm`.
//!
//! | function | share of trigrams in common | operators: similar, distance |
//! |---|---|---|
//! | `similarity(a, b)` | of all of both | `a % b`, `a <-> b` |
//! | `word_similarity(a, b)` | of all of `a` and a part of `b`, the most similar one | `a <% b`, `a <<-> b`, and `b %> a`, `b <->> a` |
//! | `strict_word_similarity(a, b)` | likewise, of a part that is of whole words | `a <<% b`, `a <<<-> b`, and `b %>> a`, `b <->>> a` |
use std::collections::BTreeSet;

use datafusion::logical_expr::{Expr, ScalarUDF, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::trigrams::{Trigram, for_each_trigram};

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, text};

const TEXTS: &[Kind] = &[Kind::Text, Kind::Text];
const SIMILARITY: &[Variant] = &[Variant::strict(TEXTS, Kind::Real, |row| shared(row, similarity))];
const WORD: &[Variant] = &[Variant::strict(TEXTS, Kind::Real, |row| shared(row, |a, b| within(a, b, false)))];
const STRICT: &[Variant] = &[Variant::strict(TEXTS, Kind::Real, |row| shared(row, |a, b| within(a, b, true)))];

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    const SHOW: &[Variant] = &[Variant::strict(&[Kind::Text], Kind::Texts, |row| {
        let shown = trigrams(text(row.first())).into_iter().map(|of| Some(Cell::Text(of.iter().collect())));
        Ok(Some(Cell::List(shown.collect())))
    })];
    let measures = [("similarity", SIMILARITY), ("word_similarity", WORD), ("strict_word_similarity", STRICT)];
    measures.into_iter().map(|(name, variants)| function(name, variants)).chain([function("show_trgm", SHOW)])
}

fn shared(row: &[Option<Cell>], measure: fn(&str, &str) -> f32) -> Result<Option<Cell>, SqlError> {
    Ok(Some(Cell::Double(measure(text(row.first()), text(row.get(1))).into())))
}

/// An operator between two texts, if it is one of these.
pub(crate) fn operator(op: &BinaryOperator, left: &Expr, right: &Expr) -> Option<Expr> {
    use BinaryOperator::{Custom, LtDashGt, Modulo, PGCustomBinaryOperator};

    let op = match op {
        Modulo | LtDashGt | Custom(_) | PGCustomBinaryOperator(_) => op.to_string(),
        _ => return None,
    };
    // The measure, the least that is similar, and whether the operands come the other way round.
    let ((name, variants), least, is_turned) = match op.as_str() {
        "%" | "<->" => (("similarity", SIMILARITY), 0.3_f32, false),
        "<%" | "<<->" => (("word_similarity", WORD), 0.6, false),
        "%>" | "<->>" => (("word_similarity", WORD), 0.6, true),
        "<<%" | "<<<->" => (("strict_word_similarity", STRICT), 0.5, false),
        "%>>" | "<->>>" => (("strict_word_similarity", STRICT), 0.5, true),
        _ => return None,
    };
    let operands = if is_turned { [right, left] } else { [left, right] };
    let measured = function(name, variants).call(operands.into_iter().cloned().collect());
    Some(if op.contains('-') { lit(1_f32) - measured } else { measured.gt_eq(lit(least)) })
}

/// The trigrams of a text, each once.
fn trigrams(text: &str) -> BTreeSet<Trigram> {
    listed(text).into_iter().collect()
}

/// The trigrams of a text as they come.
fn listed(text: &str) -> Vec<Trigram> {
    let mut trigrams = Vec::new();
    for_each_trigram(text, &mut |trigram| trigrams.push(trigram));
    trigrams
}

/// The share of what is common to two sets in all that they have.
fn share(common: usize, one: usize, other: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "texts are not so long")]
    let share = common as f32 / (one + other - common).max(1) as f32;
    share
}

fn similarity(left: &str, right: &str) -> f32 {
    let (left, right) = (trigrams(left), trigrams(right));
    share(left.intersection(&right).count(), left.len(), right.len())
}

/// The greatest similarity of a text to a run of another one's trigrams, which begins and ends with words if it is strict.
fn within(text: &str, whole: &str, is_strict: bool) -> f32 {
    let (wanted, listed) = (trigrams(text), listed(whole));
    let begins = |at: usize| !is_strict || listed[at][..2] == [' ', ' '];
    let ends = |at: usize| !is_strict || listed[at][2] == ' ';
    let mut greatest = 0.0_f32;
    for from in (0..listed.len()).filter(|at| begins(*at) && (is_strict || wanted.contains(&listed[*at]))) {
        let (mut run, mut common) = (BTreeSet::new(), 0);
        for (at, trigram) in listed.iter().enumerate().skip(from) {
            if run.insert(trigram) {
                common += usize::from(wanted.contains(trigram));
            }
            if ends(at) {
                greatest = greatest.max(share(common, wanted.len(), run.len()));
            }
        }
    }
    greatest
}
