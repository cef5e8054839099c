//! `GROUP BY` with sets of columns in which one is there twice: `ROLLUP (a, a)` is written as the sets that it stands for,
//! each with every column once, as the planner takes no column twice.
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr};

/// A cube of more columns stays as it is.
const CUBE_MAX: usize = 10;

/// Whether there are sets in it.
pub(super) fn has_sets(group_by: &GroupByExpr) -> bool {
    match group_by {
        GroupByExpr::Expressions(keys, _) => {
            let is_empty = |key: &Expr| matches!(key, Expr::Tuple(columns) if columns.is_empty());
            let is_set = |key: &Expr| matches!(key, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
            keys.iter().any(|key| is_set(key) || is_empty(key))
        }
        GroupByExpr::All(_) => false,
    }
}

/// Takes columns out of sets that have them already.
pub(super) fn once_each(group_by: &mut GroupByExpr) {
    let GroupByExpr::Expressions(keys, _) = group_by else { return };
    for key in keys {
        if matches!(key, Expr::Tuple(columns) if columns.is_empty()) {
            *key = Expr::GroupingSets(vec![Vec::new()]);
        }
        let sets = match key {
            Expr::GroupingSets(sets) => {
                sets.iter_mut().for_each(distinct);
                continue;
            }
            Expr::Rollup(parts) if repeats(parts) => {
                (0..=parts.len()).rev().map(|count| parts[..count].concat()).collect::<Vec<_>>()
            }
            Expr::Cube(parts) if repeats(parts) && parts.len() <= CUBE_MAX => {
                let chosen = |set: usize| {
                    let parts = parts.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
                    parts.flat_map(|(_, part)| part.clone()).collect::<Vec<_>>()
                };
                (0..1usize << parts.len()).rev().map(chosen).collect()
            }
            _ => continue,
        };
        let mut sets = sets;
        sets.iter_mut().for_each(distinct);
        *key = Expr::GroupingSets(sets);
    }
}

fn distinct(set: &mut Vec<Expr>) {
    let mut seen: Vec<Expr> = Vec::with_capacity(set.len());
    for key in std::mem::take(set) {
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    *set = seen;
}

fn repeats(parts: &[Vec<Expr>]) -> bool {
    let mut all = parts.concat();
    let count = all.len();
    distinct(&mut all);
    all.len() < count
}
