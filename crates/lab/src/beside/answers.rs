//! Whether two engines give the same answer.
//!
//! Rows are compared one by one, in their order. Where an order leaves open which of two rows comes first, engines may differ, so
//! rows that differ are looked for among the others that do. Numbers are equal if they agree in nine digits: an average is a
//! decimal in one engine and a floating-point number in the other.

/// A row as texts, `None` for NULL.
pub(crate) type Row = Vec<Option<String>>;

/// The part of a number by which two may differ.
const TOLERANCE: f64 = 1e-9;

/// What differs between our answer and the other one, whose numbers may be rounded by so much; `None` if nothing does.
pub(crate) fn difference(ours: &[Row], theirs: &[Row], rounding: f64) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("{} rows here and {} there", ours.len(), theirs.len()));
    }
    let (mut only_here, mut only_there) = (Vec::new(), Vec::new());
    for (one, other) in ours.iter().zip(theirs).filter(|(one, other)| !are_equal(one, other, rounding)) {
        only_here.push(one);
        only_there.push(other);
    }
    for one in only_here {
        match only_there.iter().position(|other| are_equal(one, other, rounding)) {
            Some(at) => drop(only_there.swap_remove(at)),
            None => return Some(format!("the row ({}) is here alone", shown(one))),
        }
    }
    None
}

fn are_equal(one: &Row, other: &Row, rounding: f64) -> bool {
    let are_same =
        |(one, other): (&Option<String>, &Option<String>)| are_same(one.as_deref(), other.as_deref(), rounding);
    one.len() == other.len() && one.iter().zip(other).all(are_same)
}

fn are_same(one: Option<&str>, other: Option<&str>, rounding: f64) -> bool {
    if one == other {
        return true;
    }
    let number = |text: Option<&str>| text?.parse::<f64>().ok();
    match (number(one), number(other)) {
        (Some(one), Some(other)) => (one - other).abs() <= rounding + TOLERANCE * one.abs().max(other.abs()),
        _ => false,
    }
}

fn shown(row: &Row) -> String {
    row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[[&str; 2]]) -> Vec<Row> {
        let value = |text: &&str| (*text != "NULL").then(|| (*text).to_owned());
        texts.iter().map(|row| row.iter().map(value).collect()).collect()
    }

    #[test]
    fn numbers_and_ties_may_look_different_and_values_may_not() {
        let ours = rows(&[["a", "25.5000000000000000"], ["b", "0.3333333333333333"], ["c", "NULL"]]);
        let same = rows(&[["b", "0.33333333333333331"], ["a", "25.5"], ["c", "NULL"]]);
        assert_eq!(difference(&ours, &same, 0.0), None);
        let rounded = rows(&[["a", "25.5"], ["b", "0.333333"], ["c", "NULL"]]);
        assert!(difference(&ours, &rounded, 0.0).is_some() && difference(&ours, &rounded, 1e-6).is_none());
        let others: [(&[[&str; 2]], &str); 4] = [
            (&[["a", "25.5"], ["b", "0.33333"], ["c", "NULL"]], "(b, 0.3333333333333333) is here alone"),
            (&[["a", "25.5"], ["a", "25.5"], ["c", "NULL"]], "(b, "),
            (&[["a", "25.5"], ["b", "0.3333333333333333"], ["c", "0"]], "(c, NULL)"),
            (&[["a", "25.5"]], "3 rows here and 1 there"),
        ];
        for (theirs, why) in others {
            let told = difference(&ours, &rows(theirs), 0.0).unwrap();
            assert!(told.contains(why), "{told}");
        }
    }
}
