//! Walks through syntax trees, plans and expressions, each of which is compiled once.
//!
//! The libraries' walks are generic over what is done on the way. A syntax tree has some hundred types, and each visitor
//! would get a copy of the way through all of them, some ten thousand functions in all. Here the visitor, or the closure,
//! stands behind a reference without a type of its own, so that there is one copy:
//!
//! ```text
//! statement.walk_mut(&mut visitor)  ─▶  the library's walk with `Shared`  ─▶  `Kept` keeps what breaks off  ─▶  visitor
//! ```
//!
//! At each node it is asked whether the statement is to stop. A walk through a plan then ends with an error; one through a
//! syntax tree, which need not have errors, ends early where [`interrupt::walking`] lets it.
use std::ops::ControlFlow;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    self, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::interrupt;

/// A walk through a part of a statement.
pub(crate) trait Walk: Visit {
    fn walk<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break>
    where
        Self: Sized,
    {
        let mut kept = Kept { visitor, broken: None };
        let walked = self.visit(&mut Shared(&mut kept as &mut dyn Visitor<Break = ()>));
        kept.result(walked)
    }
}

impl<T: Visit> Walk for T {}

/// A walk through a part of a statement that may change it.
pub(crate) trait WalkMut: VisitMut {
    fn walk_mut<V: VisitorMut>(&mut self, visitor: &mut V) -> ControlFlow<V::Break>
    where
        Self: Sized,
    {
        let mut kept = Kept { visitor, broken: None };
        let walked = self.visit(&mut Shared(&mut kept as &mut dyn VisitorMut<Break = ()>));
        kept.result(walked)
    }
}

impl<T: VisitMut> WalkMut for T {}

/// Looks at each expression of a part of a statement, each before its parts.
pub(crate) fn walk_expressions<B>(part: &impl Visit, look: impl FnMut(&ast::Expr) -> ControlFlow<B>) -> ControlFlow<B> {
    struct Each<F>(F);

    impl<B, F: FnMut(&ast::Expr) -> ControlFlow<B>> Visitor for Each<F> {
        type Break = B;

        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<B> {
            (self.0)(expr)
        }
    }

    part.walk(&mut Each(look))
}

/// A visitor, whatever it is.
struct Shared<V>(V);

/// A visitor, and with what it broke off.
struct Kept<'v, V, B> {
    visitor: &'v mut V,
    broken: Option<B>,
}

impl<V, B> Kept<'_, V, B> {
    fn result(self, walked: ControlFlow<()>) -> ControlFlow<B> {
        match (walked, self.broken) {
            (ControlFlow::Break(()), Some(broken)) => ControlFlow::Break(broken),
            _ => ControlFlow::Continue(()),
        }
    }

    fn keep(&mut self, flow: ControlFlow<B>) -> ControlFlow<()> {
        match flow {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(broken) => {
                self.broken = Some(broken);
                ControlFlow::Break(())
            }
        }
    }
}

/// Each method of a visitor as it is passed on.
macro_rules! passed_on {
    ($visitor:ident, $($method:ident($of:ty)),*) => {
        impl<V: $visitor> $visitor for Kept<'_, V, V::Break> {
            type Break = ();

            $(fn $method(&mut self, part: $of) -> ControlFlow<()> {
                if interrupt::ends_walks() {
                    return ControlFlow::Break(());
                }
                let flow = self.visitor.$method(part);
                self.keep(flow)
            })*
        }

        impl $visitor for Shared<&mut dyn $visitor<Break = ()>> {
            type Break = ();

            $(fn $method(&mut self, part: $of) -> ControlFlow<()> {
                self.0.$method(part)
            })*
        }
    };
}

passed_on!(
    Visitor,
    pre_visit_query(&Query),
    post_visit_query(&Query),
    pre_visit_select(&Select),
    post_visit_select(&Select),
    pre_visit_relation(&ObjectName),
    post_visit_relation(&ObjectName),
    pre_visit_table_factor(&TableFactor),
    post_visit_table_factor(&TableFactor),
    pre_visit_expr(&ast::Expr),
    post_visit_expr(&ast::Expr),
    pre_visit_statement(&Statement),
    post_visit_statement(&Statement),
    pre_visit_value(&ValueWithSpan),
    post_visit_value(&ValueWithSpan)
);

passed_on!(
    VisitorMut,
    pre_visit_query(&mut Query),
    post_visit_query(&mut Query),
    pre_visit_select(&mut Select),
    post_visit_select(&mut Select),
    pre_visit_relation(&mut ObjectName),
    post_visit_relation(&mut ObjectName),
    pre_visit_table_factor(&mut TableFactor),
    post_visit_table_factor(&mut TableFactor),
    pre_visit_expr(&mut ast::Expr),
    post_visit_expr(&mut ast::Expr),
    pre_visit_statement(&mut Statement),
    post_visit_statement(&mut Statement),
    pre_visit_value(&mut ValueWithSpan),
    post_visit_value(&mut ValueWithSpan)
);

/// What is done with a node on the way.
type Change<'f, T> = dyn FnMut(T) -> Result<Transformed<T>> + 'f;
type Look<'f, T> = dyn FnMut(&T) -> Result<TreeNodeRecursion> + 'f;

/// Walks through plans and expressions, named as the library's with the same effect but for the first word.
pub(crate) trait WalkTree: TreeNode {
    /// Changes each node after those below it: the library's `transform_up`.
    fn change_up(self, mut change: impl FnMut(Self) -> Result<Transformed<Self>>) -> Result<Transformed<Self>> {
        let mut change = |node| interrupt::check_plan().and_then(|()| change(node));
        self.transform_up(&mut change as &mut Change<'_, Self>)
    }

    /// Changes each node before those below it: the library's `transform_down`.
    fn change_down(self, mut change: impl FnMut(Self) -> Result<Transformed<Self>>) -> Result<Transformed<Self>> {
        let mut change = |node| interrupt::check_plan().and_then(|()| change(node));
        self.transform_down(&mut change as &mut Change<'_, Self>)
    }

    /// Looks at each node before those below it: the library's `apply`.
    fn look(&self, mut look: impl FnMut(&Self) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        let mut look = |node: &Self| interrupt::check_plan().and_then(|()| look(node));
        self.apply(&mut look as &mut Look<'_, Self>)
    }

    /// Whether a node is what is looked for: the library's `exists`.
    fn has(&self, mut is_such: impl FnMut(&Self) -> Result<bool>) -> Result<bool> {
        let mut is_such = |node: &Self| interrupt::check_plan().and_then(|()| is_such(node));
        self.exists(&mut is_such as &mut dyn FnMut(&Self) -> Result<bool>)
    }
}

impl<T: TreeNode> WalkTree for T {}

/// Walks through plans with the queries within their expressions, and through the expressions of one node.
pub(crate) trait WalkPlan: Sized {
    fn change_up_with_subqueries(
        self,
        change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;

    fn change_down_with_subqueries(
        self,
        change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;

    fn look_with_subqueries(&self, look: impl FnMut(&Self) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion>;

    fn change_expressions(self, change: impl FnMut(Expr) -> Result<Transformed<Expr>>) -> Result<Transformed<Self>>;

    fn look_at_expressions(&self, look: impl FnMut(&Expr) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion>;
}

impl WalkPlan for LogicalPlan {
    fn change_up_with_subqueries(
        self,
        mut change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let mut change = |node| interrupt::check_plan().and_then(|()| change(node));
        self.transform_up_with_subqueries(&mut change as &mut Change<'_, Self>)
    }

    fn change_down_with_subqueries(
        self,
        mut change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let mut change = |node| interrupt::check_plan().and_then(|()| change(node));
        self.transform_down_with_subqueries(&mut change as &mut Change<'_, Self>)
    }

    fn look_with_subqueries(
        &self,
        mut look: impl FnMut(&Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut look = |node: &Self| interrupt::check_plan().and_then(|()| look(node));
        self.apply_with_subqueries(&mut look as &mut Look<'_, Self>)
    }

    fn change_expressions(
        self,
        mut change: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<Self>> {
        let mut change = |expr| interrupt::check_plan().and_then(|()| change(expr));
        self.map_expressions(&mut change as &mut Change<'_, Expr>)
    }

    fn look_at_expressions(
        &self,
        mut look: impl FnMut(&Expr) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut look = |expr: &Expr| interrupt::check_plan().and_then(|()| look(expr));
        self.apply_expressions(&mut look as &mut Look<'_, Expr>)
    }
}
