//! How similar texts are by their trigrams: `similarity`, `show_trgm` and `%` of PostgreSQL's extension `pg_trgm`.
use std::collections::BTreeSet;

use datafusion::logical_expr::{Expr, ScalarUDF, lit};
use engine::trigrams::{Trigram, for_each_trigram};

use crate::functions::row_wise::{Cell, Kind, Variant, function, text};

const SIMILARITY: &[Variant] = &[Variant::strict(&[Kind::Text, Kind::Text], Kind::Real, |row| {
    Ok(Some(Cell::Double(similarity(text(row.first()), text(row.get(1))))))
})];

/// Texts are similar that have so many of their trigrams in common.
const THRESHOLD: f32 = 0.3;

/// `left % right`.
pub(crate) fn is_similar(left: Expr, right: Expr) -> Expr {
    function("similarity", SIMILARITY).call(vec![left, right]).gt_eq(lit(THRESHOLD))
}

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    const SHOW: &[Variant] = &[Variant::strict(&[Kind::Text], Kind::Texts, |row| {
        let shown = trigrams(text(row.first())).into_iter().map(|of| Some(Cell::Text(of.iter().collect())));
        Ok(Some(Cell::List(shown.collect())))
    })];
    [function("similarity", SIMILARITY), function("show_trgm", SHOW)].into_iter()
}

/// The trigrams of a text, each once.
fn trigrams(text: &str) -> BTreeSet<Trigram> {
    let mut trigrams = BTreeSet::new();
    for_each_trigram(text, &mut |trigram| {
        trigrams.insert(trigram);
    });
    trigrams
}

/// The share of trigrams that two texts have in common, of all that they have.
fn similarity(left: &str, right: &str) -> f64 {
    let (left, right) = (trigrams(left), trigrams(right));
    let (shared, all) = (left.intersection(&right).count(), left.union(&right).count());
    #[expect(clippy::cast_precision_loss, reason = "texts are not so long")]
    let share = shared as f64 / all.max(1) as f64;
    share
}
