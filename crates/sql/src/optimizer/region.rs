//! Regions: parts of a plan whose joins may change places, as graphs.
//!
//! ```text
//! Filter: a.x < c.y                      relations    a   b   c   s
//!   Semi join: a.k = s.k                 equal        a.k = b.k   b.k = c.k   (and so a.k = c.k)
//!     Inner join: b.k = c.k       ─▶     condition    a.x < c.y
//!       Inner join: a.k = b.k            reducer      s takes away rows of a
//!         a, b                           leaves       whatever a, b, c and s are: scans, aggregates, outer joins
//!       c
//!     s
//! ```
//!
//! Inner joins, conditions above them and semi and anti joins give the same rows in any order, as long as a semi or anti join
//! stays above all that its conditions ask for, and no condition may fail (`steady`). Any other join is a leaf. Columns that
//! are equal to one of the others are equal to each other: such a *class* of columns joins any two of its relations.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan};

use super::estimate::{Estimate, share_with_partner};
use super::steady::is_steady;

/// Relations of a region, a bit each.
pub(super) type Set = u64;

/// More relations stay in the order in which they are written.
pub(super) const RELATIONS_MAX: usize = 64;

/// What is joined, and by what.
pub(super) struct Region {
    pub(super) relations: Vec<Relation>,
    pub(super) equals: Vec<Equal>,
    pub(super) conditions: Vec<Condition>,
    /// by class: whether equality of one pair of its columns in each join makes all of them equal
    pub(super) is_transitive: Vec<bool>,
}

/// A leaf of a region.
pub(super) struct Relation {
    pub(super) plan: Arc<LogicalPlan>,
    pub(super) estimate: Estimate,
    /// what it takes away, if it is the inner side of a semi or anti join
    pub(super) reducer: Option<Reducer>,
}

/// A semi or anti join with a relation as its inner side.
pub(super) struct Reducer {
    pub(super) is_anti: bool,
    /// keys of outer and inner rows
    pub(super) on: Vec<(Expr, Expr)>,
    pub(super) filter: Option<Expr>,
    pub(super) null_equality: NullEquality,
    pub(super) null_aware: bool,
    /// the relations that its conditions ask for
    pub(super) needs: Set,
    /// the share of outer rows that it leaves
    pub(super) share: f64,
}

/// Two keys of different relations that are equal.
pub(super) struct Equal {
    pub(super) sides: [Side; 2],
    pub(super) class: usize,
}

/// A key of a relation.
#[derive(Clone)]
pub(super) struct Side {
    pub(super) relation: usize,
    pub(super) expr: Expr,
    pub(super) domain: f64,
}

/// Any other condition.
pub(super) struct Condition {
    pub(super) expr: Expr,
    pub(super) needs: Set,
    pub(super) share: f64,
}

/// The parts of a region where they stand in the plan.
#[derive(Default)]
pub(super) struct Shape<'p> {
    leaves: Vec<&'p LogicalPlan>,
    /// semi and anti joins, and whether the inner side is their left
    reducers: Vec<(&'p Join, bool)>,
    on: Vec<&'p (Expr, Expr)>,
    conditions: Vec<&'p Expr>,
}

impl<'p> Shape<'p> {
    /// The region of which the plan is the top, if it is one with a join.
    pub(super) fn of(plan: &'p LogicalPlan) -> Option<Shape<'p>> {
        if !is_above_join(plan) {
            return None;
        }
        let mut shape = Shape::default();
        shape.add(plan);
        let relations = shape.leaves.len() + shape.reducers.len();
        (2..=RELATIONS_MAX).contains(&relations).then_some(shape)
    }

    /// All relations in their order: those whose rows come out of the region, then the others.
    pub(super) fn relations(&self) -> impl Iterator<Item = &'p LogicalPlan> + '_ {
        let inner =
            |(join, is_left): &(&'p Join, bool)| -> &'p LogicalPlan { if *is_left { &join.left } else { &join.right } };
        self.leaves.iter().copied().chain(self.reducers.iter().map(inner))
    }

    fn add(&mut self, plan: &'p LogicalPlan) {
        if self.leaves.len() > RELATIONS_MAX {
            return;
        }
        match plan {
            LogicalPlan::Join(join) if is_movable(join) => match join.join_type {
                JoinType::Inner => {
                    self.add(&join.left);
                    self.add(&join.right);
                    self.on.extend(&join.on);
                    self.conditions.extend(join.filter.iter().flat_map(split_conjunction));
                }
                JoinType::RightSemi | JoinType::RightAnti => {
                    self.add(&join.right);
                    self.reducers.push((join, true));
                }
                _ => {
                    self.add(&join.left);
                    self.reducers.push((join, false));
                }
            },
            LogicalPlan::Filter(filter) if is_above_join(plan) => {
                self.add(&filter.input);
                self.conditions.extend(split_conjunction(&filter.predicate));
            }
            LogicalPlan::Projection(projection) if is_above_join(plan) => self.add(&projection.input),
            leaf => self.leaves.push(leaf),
        }
    }

    /// The graph, where these are the relations as they are planned; `None` if some column can't be told from others.
    pub(super) fn graph(&self, planned: Vec<(Arc<LogicalPlan>, Estimate)>) -> Result<Option<Region>> {
        let mut relations: Vec<Relation> =
            planned.into_iter().map(|(plan, estimate)| Relation { plan, estimate, reducer: None }).collect();
        let Some(owners) = Owners::of(&relations[..self.leaves.len()]) else { return Ok(None) };
        for (at, reducing) in (self.leaves.len()..).zip(&self.reducers) {
            let Some(reducer) = reducer(*reducing, &relations, at, &owners) else { return Ok(None) };
            relations[at].reducer = Some(reducer);
        }
        let mut region = Region { relations, equals: Vec::new(), conditions: Vec::new(), is_transitive: Vec::new() };
        let mut classes = Classes::default();
        for (left, right) in &self.on {
            let (Some(left), Some(right)) = (region.side(left, &owners), region.side(right, &owners)) else {
                return Ok(None);
            };
            match left.relation == right.relation {
                true => return Ok(None),
                false => classes.add(&region.relations, left, right)?,
            }
        }
        (region.equals, region.is_transitive) = classes.finish();
        for expr in &self.conditions {
            let Some(needs) = owners.needs(expr) else { return Ok(None) };
            let share = region.share(expr, needs);
            region.conditions.push(Condition { expr: (*expr).clone(), needs, share });
        }
        Ok(Some(region))
    }
}

/// Whether the plan is a join that may move, perhaps below conditions and columns that move with it.
fn is_above_join(plan: &LogicalPlan) -> bool {
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::Join(join) => return is_movable(join),
            LogicalPlan::Filter(filter) if is_steady(&filter.predicate, filter.input.schema()) => &filter.input,
            LogicalPlan::Projection(projection)
                if projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_))) =>
            {
                &projection.input
            }
            _ => return false,
        }
    }
}

fn is_movable(join: &Join) -> bool {
    let are_steady = || {
        let on = join
            .on
            .iter()
            .all(|(left, right)| is_steady(left, join.left.schema()) && is_steady(right, join.right.schema()));
        on && join.filter.as_ref().is_none_or(|filter| {
            let both = join.left.schema().join(join.right.schema());
            both.is_ok_and(|both| is_steady(filter, &both))
        })
    };
    match join.join_type {
        JoinType::Inner => join.null_equality == NullEquality::NullEqualsNothing && are_steady(),
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::RightSemi | JoinType::RightAnti => {
            !join.on.is_empty() && are_steady()
        }
        _ => false,
    }
}

fn reducer((join, is_left): (&Join, bool), relations: &[Relation], at: usize, owners: &Owners) -> Option<Reducer> {
    let turned = |(left, right): &(Expr, Expr)| match is_left {
        true => (right.clone(), left.clone()),
        false => (left.clone(), right.clone()),
    };
    let on: Vec<(Expr, Expr)> = join.on.iter().map(turned).collect();
    let (inner, estimate) = (relations[at].plan.schema(), &relations[at].estimate);
    let mut needs = 0;
    let mut outer_domains = Vec::new();
    for (outer, _) in &on {
        let of_outer = owners.needs(outer)?;
        needs |= of_outer;
        if of_outer.count_ones() == 1 {
            let relation = &relations[of_outer.trailing_zeros() as usize];
            outer_domains.push(relation.estimate.domain(outer, relation.plan.schema()));
        }
    }
    for column in join.filter.iter().flat_map(Expr::column_refs) {
        match (owners.0.get(column), inner.has_column(column)) {
            (Some(owner), false) => needs |= 1 << owner,
            (None, true) => {}
            _ => return None,
        }
    }
    let inner_domains: Vec<f64> = on.iter().map(|(_, key)| estimate.domain(key, inner)).collect();
    let partners = share_with_partner(&outer_domains, (estimate, &inner_domains));
    let is_anti = matches!(join.join_type, JoinType::LeftAnti | JoinType::RightAnti);
    let with_filter = if join.filter.is_some() { 0.5 } else { 1.0 };
    let share = match is_anti {
        true => (1.0 - partners * with_filter).max(0.05),
        false if join.filter.is_some() => partners * 0.9,
        false => partners,
    };
    let (filter, null_equality, null_aware) = (join.filter.clone(), join.null_equality, join.null_aware);
    (needs != 0).then_some(Reducer { is_anti, on, filter, null_equality, null_aware, needs, share })
}

/// Which relation has a column.
struct Owners(HashMap<Column, usize>);

impl Owners {
    fn of(relations: &[Relation]) -> Option<Owners> {
        let mut owners = HashMap::new();
        for (at, relation) in relations.iter().enumerate() {
            for column in relation.plan.schema().columns() {
                if owners.insert(column, at).is_some() {
                    return None;
                }
            }
        }
        Some(Owners(owners))
    }

    /// The relations whose columns an expression has; `None` if it has some of none.
    fn needs(&self, expr: &Expr) -> Option<Set> {
        expr.column_refs().into_iter().try_fold(0, |set, column| Some(set | 1 << self.0.get(column)?))
    }
}

impl Region {
    fn side(&self, expr: &Expr, owners: &Owners) -> Option<Side> {
        let needs = owners.needs(expr).filter(|needs| needs.count_ones() == 1)?;
        let relation = needs.trailing_zeros() as usize;
        let of = &self.relations[relation];
        Some(Side { relation, expr: expr.clone(), domain: of.estimate.domain(expr, of.plan.schema()) })
    }

    /// The share of pairs of rows that pass a condition over these relations.
    fn share(&self, expr: &Expr, needs: Set) -> f64 {
        let mut of = (0..self.relations.len()).filter(|at| needs & (1 << at) != 0).map(|at| &self.relations[at]);
        let Some(first) = of.next() else { return 1.0 };
        let mut both = first.estimate.clone();
        let mut schema = first.plan.schema().as_ref().clone();
        for other in of {
            both.domains.extend(&other.estimate.domains);
            let Ok(joined) = schema.join(other.plan.schema()) else { return 1.0 };
            schema = joined;
        }
        both.share(expr, &schema)
    }

    /// The relations with which each one is joined, by equal keys or by what it takes away.
    pub(super) fn neighbours(&self) -> Vec<Set> {
        let mut neighbours = vec![0; self.relations.len()];
        for Equal { sides: [one, other], .. } in &self.equals {
            neighbours[one.relation] |= 1 << other.relation;
            neighbours[other.relation] |= 1 << one.relation;
        }
        for (at, relation) in self.relations.iter().enumerate() {
            let needs = relation.reducer.as_ref().map_or(0, |reducer| reducer.needs);
            neighbours[at] |= needs;
            (0..self.relations.len()).filter(|of| needs & (1 << of) != 0).for_each(|of| neighbours[of] |= 1 << at);
        }
        neighbours
    }
}

/// Equal keys put into classes.
#[derive(Default)]
struct Classes {
    /// by class: its keys, none where it has become part of another
    keys: Vec<Vec<Side>>,
    are_plain: Vec<bool>,
    /// what the plan says, in its order
    equals: Vec<([Side; 2], usize)>,
}

impl Classes {
    fn add(&mut self, relations: &[Relation], left: Side, right: Side) -> Result<()> {
        let is_plain = is_plain(&left, relations)? && is_plain(&right, relations)? && {
            let type_of = |side: &Side| side.expr.get_type(relations[side.relation].plan.schema());
            type_of(&left)? == type_of(&right)?
        };
        let known = |side: &Side, classes: &Classes| {
            let has = |(keys, is_plain): (&Vec<Side>, &bool)| *is_plain && keys.iter().any(|key| key.expr == side.expr);
            classes.keys.iter().zip(&classes.are_plain).position(has)
        };
        let (of_left, of_right) = match is_plain {
            true => (known(&left, self), known(&right, self)),
            false => (None, None),
        };
        let class = match (of_left, of_right) {
            (Some(one), Some(other)) if one != other => {
                let moved = std::mem::take(&mut self.keys[other]);
                self.keys[one].extend(moved);
                self.equals.iter_mut().filter(|equal| equal.1 == other).for_each(|equal| equal.1 = one);
                one
            }
            (Some(one), Some(_)) => one,
            (Some(one), None) => {
                self.keys[one].push(right.clone());
                one
            }
            (None, Some(one)) => {
                self.keys[one].push(left.clone());
                one
            }
            (None, None) => {
                self.keys.push(vec![left.clone(), right.clone()]);
                self.are_plain.push(is_plain);
                self.keys.len() - 1
            }
        };
        self.equals.push(([left, right], class));
        Ok(())
    }

    /// What the plan says and what follows from it, and which classes are transitive.
    fn finish(self) -> (Vec<Equal>, Vec<bool>) {
        let is_transitive = |(keys, is_plain): (&Vec<Side>, &bool)| {
            let mut relations: Vec<usize> = keys.iter().map(|key| key.relation).collect();
            relations.sort_unstable();
            *is_plain && relations.windows(2).all(|pair| pair[0] != pair[1])
        };
        let transitive: Vec<bool> = self.keys.iter().zip(&self.are_plain).map(is_transitive).collect();
        let mut equals: Vec<Equal> = self.equals.into_iter().map(|(sides, class)| Equal { sides, class }).collect();
        for (class, keys) in self.keys.iter().enumerate().filter(|(class, _)| transitive[*class]) {
            for (at, one) in keys.iter().enumerate() {
                for other in &keys[at + 1..] {
                    let is_same = |equal: &Equal| {
                        let [left, right] = [equal.sides[0].relation, equal.sides[1].relation];
                        equal.class == class
                            && ([left, right] == [one.relation, other.relation]
                                || [right, left] == [one.relation, other.relation])
                    };
                    if !equals.iter().any(is_same) {
                        equals.push(Equal { sides: [one.clone(), other.clone()], class });
                    }
                }
            }
        }
        (equals, transitive)
    }
}

/// Whether a key is a column of a type whose equal values are one and the same.
fn is_plain(side: &Side, relations: &[Relation]) -> Result<bool> {
    let schema: &DFSchema = relations[side.relation].plan.schema();
    let data_type = side.expr.get_type(schema)?;
    let is_exact = matches!(
        data_type,
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 | DataType::Utf8View | DataType::Utf8
    );
    Ok(is_exact && matches!(side.expr, Expr::Column(_)))
}
