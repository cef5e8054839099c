//! `GROUP BY` with sets of columns that the planner does not take: those in which a column is there twice, as
//! `ROLLUP (a, a)`, sets within sets, and `GROUP BY DISTINCT`. They are written as the sets that they stand for, each with
//! every column once.
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Value,
};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::last_part;
use crate::syntax::tokens::{DISTINCT_SETS, EMPTY_SET, SETS};

/// A cube of more columns is refused.
const CUBE_MAX: usize = 12;
/// How many sets there may be.
const SETS_MAX: usize = 4096;

/// Sets of columns.
type Sets = Vec<Vec<Expr>>;

/// Whether there are sets in it.
pub(crate) fn has_sets(group_by: &GroupByExpr) -> bool {
    match group_by {
        GroupByExpr::Expressions(keys, _) => {
            let is_empty = |key: &Expr| matches!(key, Expr::Tuple(columns) if columns.is_empty());
            let is_set = |key: &Expr| matches!(key, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
            keys.iter().any(|key| is_set(key) || is_empty(key) || is_text(key, DISTINCT_SETS))
        }
        GroupByExpr::All(_) => false,
    }
}

/// Makes one group of all rows where there is no `GROUP BY`, as a `HAVING` does that needs no aggregate.
pub(crate) fn as_one_group(group_by: &mut GroupByExpr) {
    if let GroupByExpr::Expressions(keys, modifiers) = group_by
        && keys.is_empty()
        && modifiers.is_empty()
    {
        keys.push(Expr::GroupingSets(vec![Vec::new()]));
    }
}

/// Writes out what the planner does not take, and takes columns out of sets that have them already.
pub(crate) fn write_out(group_by: &mut GroupByExpr) -> Result<()> {
    let GroupByExpr::Expressions(keys, _) = group_by else { return Ok(()) };
    let is_distinct = keys.first().is_some_and(|key| is_text(key, DISTINCT_SETS));
    if is_distinct {
        keys.remove(0);
    }
    for key in keys.iter_mut() {
        let sets = match key {
            Expr::Tuple(columns) if columns.is_empty() => Some(vec![Vec::new()]),
            Expr::GroupingSets(sets) => Some(flat(sets)?),
            Expr::Rollup(parts) if repeats(parts) => Some(rollup(parts)),
            Expr::Cube(parts) if repeats(parts) => Some(cube(parts)?),
            _ => None,
        };
        if let Some(mut sets) = sets {
            sets.iter_mut().for_each(distinct);
            *key = Expr::GroupingSets(sets);
        }
    }
    // Of several keys, the planner takes those beside the sets for part of none of them.
    if (is_distinct || keys.len() > 1) && keys.iter().any(|key| sets_of(key).is_ok_and(|sets| sets.is_some())) {
        let all = all_of(keys)?;
        *keys = vec![Expr::GroupingSets(if is_distinct { each_once(all) } else { all })];
    }
    Ok(())
}

/// The sets that several keys make together.
fn all_of(keys: &[Expr]) -> Result<Sets> {
    let mut all: Sets = vec![Vec::new()];
    for key in keys {
        let sets = match sets_of(key)? {
            Some(sets) => sets,
            None => vec![columns(key)],
        };
        if all.len() * sets.len() > SETS_MAX {
            return Err(too_many());
        }
        all = all.iter().flat_map(|before| sets.iter().map(move |set| [&before[..], &set[..]].concat())).collect();
    }
    all.iter_mut().for_each(distinct);
    Ok(all)
}

/// The sets, none of them twice.
fn each_once(all: Sets) -> Sets {
    let mut seen: Sets = Vec::new();
    for set in all {
        let is_same = |other: &Vec<Expr>| other.len() == set.len() && set.iter().all(|column| other.contains(column));
        if !seen.iter().any(is_same) {
            seen.push(set);
        }
    }
    seen
}

fn too_many() -> SqlError {
    SqlError::new("54001", format!("too many grouping sets present (maximum {SETS_MAX})"))
}

/// The sets that a key stands for.
fn sets_of(key: &Expr) -> Result<Option<Sets>> {
    Ok(match key {
        Expr::GroupingSets(sets) => Some(flat(sets)?),
        Expr::Rollup(parts) => Some(rollup(parts)),
        Expr::Cube(parts) => Some(cube(parts)?),
        Expr::Function(function) => nested(function)?,
        _ => None,
    })
}

/// Sets with those that stand within them.
fn flat(sets: &[Vec<Expr>]) -> Result<Sets> {
    let mut all = Vec::with_capacity(sets.len());
    for set in sets {
        match &set[..] {
            [Expr::Function(function)] => match nested(function)? {
                Some(inner) => all.extend(inner),
                None => all.push(set.clone()),
            },
            _ => all.push(set.clone()),
        }
        if all.len() > SETS_MAX {
            return Err(too_many());
        }
    }
    Ok(all)
}

/// The sets of what stands among others, which the parser takes for a function.
fn nested(function: &Function) -> Result<Option<Sets>> {
    let Some(name) = last_part(&function.name) else { return Ok(None) };
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let part = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let Some(parts) = list.args.iter().map(part).collect::<Option<Vec<Expr>>>() else { return Ok(None) };
    Ok(match name.as_str() {
        "rollup" => Some(rollup(&parts.iter().map(columns).collect::<Sets>())),
        "cube" => Some(cube(&parts.iter().map(columns).collect::<Sets>())?),
        SETS => {
            let mut all = Vec::new();
            for part in &parts {
                match sets_of(part)? {
                    Some(sets) => all.extend(sets),
                    None if is_text(part, EMPTY_SET) => all.push(Vec::new()),
                    None => all.push(columns(part)),
                }
            }
            Some(all)
        }
        _ => None,
    })
}

/// The columns of one part of a set.
fn columns(part: &Expr) -> Vec<Expr> {
    match part {
        Expr::Tuple(columns) => columns.clone(),
        Expr::Nested(column) => vec![column.as_ref().clone()],
        column => vec![column.clone()],
    }
}

fn rollup(parts: &[Vec<Expr>]) -> Sets {
    (0..=parts.len()).rev().map(|count| parts[..count].concat()).collect()
}

fn cube(parts: &[Vec<Expr>]) -> Result<Sets> {
    if parts.len() > CUBE_MAX {
        return Err(SqlError::new("54011", format!("CUBE is limited to {CUBE_MAX} elements")));
    }
    let chosen = |set: usize| {
        let parts = parts.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
        parts.flat_map(|(_, part)| part.clone()).collect::<Vec<_>>()
    };
    Ok((0..1usize << parts.len()).rev().map(chosen).collect())
}

fn is_text(expr: &Expr, text: &str) -> bool {
    matches!(expr, Expr::Value(value) if matches!(&value.value, Value::SingleQuotedString(own) if own == text))
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
