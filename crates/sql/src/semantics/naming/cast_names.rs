//! The planner names a cast like what is cast, and wants each name once: `sum(x), sum(x::int)` is two of one name.
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::ops::ControlFlow;

use crate::syntax::identifiers::last_part;
use crate::syntax::walk::{Walk, WalkMut};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    SelectItem, SetExpr, Statement, UnaryOperator, Value, VisitMut, Visitor, VisitorMut,
};

/// Tells function calls apart that differ in nothing but casts; `is_aggregate` knows the names of aggregate functions.
pub(crate) fn tell_apart(statement: &mut Statement, is_aggregate: &dyn Fn(&str) -> bool) {
    let _ = statement.walk_mut(&mut Calls { seen: HashMap::new(), is_aggregate });
}

/// An expression as the planner names it: without its casts and signs that change nothing.
///
/// `None` of one that is too deep or too long to be written as text.
pub(crate) fn without_casts(expr: &Expr) -> Option<String> {
    if too_deep(expr) {
        return None;
    }
    let mut expr = expr.clone();
    let _ = VisitMut::visit(&mut expr, &mut Strip);
    text_of(&expr)
}

/// How long the text of an expression may be, in bytes.
const BYTES_MAX: usize = 64 << 10;

/// The text of an expression, unless it is too long.
fn text_of(expr: &Expr) -> Option<String> {
    struct Short(String);

    impl Write for Short {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            if self.0.len() + part.len() > BYTES_MAX {
                return Err(fmt::Error);
            }
            self.0.push_str(part);
            Ok(())
        }
    }

    let mut short = Short(String::new());
    write!(short, "{expr}").ok().map(|()| short.0)
}

/// Whether an expression has too many levels to be written as text.
fn too_deep(expr: &Expr) -> bool {
    expr.walk(&mut Depth::default()).is_break()
}

/// How many levels of an expression are written as text, which takes stack for each.
const LEVELS_MAX: usize = 250;

/// Stops at the level that is too much.
#[derive(Default)]
struct Depth {
    levels: usize,
}

impl Visitor for Depth {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.levels += 1;
        if self.levels > LEVELS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.levels -= 1;
        ControlFlow::Continue(())
    }
}

/// Names columns without their tables, as one may be written with and without.
struct Unqualify;

impl VisitorMut for Unqualify {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(column) = parts.pop()
        {
            *expr = Expr::Identifier(column);
        }
        ControlFlow::Continue(())
    }
}

struct Strip;

/// What the planner writes for any subquery that is compared with.
const SUBQUERY: &str = "<subquery>";

impl VisitorMut for Strip {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let name = |name: &str| Expr::Identifier(Ident::new(name));
        match expr {
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } if matches!(**right, Expr::Subquery(_)) => {
                **right = name(SUBQUERY);
            }
            Expr::InSubquery { expr: of, negated, .. } => {
                let of = std::mem::replace(of, Box::new(name(SUBQUERY)));
                *expr = Expr::InList { expr: of, list: vec![name(SUBQUERY)], negated: *negated };
            }
            Expr::Exists { negated, .. } => *expr = name(if *negated { "not exists" } else { "exists" }),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { expr: inner, .. }
            | Expr::Nested(inner)
            | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => {
                *expr = std::mem::replace(inner, Expr::Tuple(Vec::new()));
            }
            Expr::TypedString(typed) => *expr = Expr::Value(typed.value.clone()),
            // A subquery has the name of its column.
            Expr::Subquery(query) => {
                if let Some(column) = first_column(&query.body) {
                    *expr = column;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The first column of a query as it is named.
fn first_column(body: &SetExpr) -> Option<Expr> {
    match body {
        SetExpr::Select(select) => match select.projection.first()? {
            SelectItem::UnnamedExpr(column) => Some(column.clone()),
            SelectItem::ExprWithAlias { alias, .. } => Some(Expr::Identifier(alias.clone())),
            _ => None,
        },
        SetExpr::Query(query) => first_column(&query.body),
        SetExpr::SetOperation { left, .. } => first_column(left),
        _ => None,
    }
}

/// Calls by what the planner names them, and what those of one name are.
struct Calls<'a> {
    seen: HashMap<String, Vec<String>>,
    is_aggregate: &'a dyn Fn(&str) -> bool,
}

impl VisitorMut for Calls<'_> {
    type Break = ();

    /// Goes from the inside out: a call that is put around an argument is not itself told apart.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if !matches!(expr, Expr::Function(_)) {
            return ControlFlow::Continue(());
        }
        if too_deep(expr) {
            return ControlFlow::Continue(());
        }
        let mut unqualified = expr.clone();
        let _ = VisitMut::visit(&mut unqualified, &mut Unqualify);
        let Some(whole) = text_of(&unqualified) else { return ControlFlow::Continue(()) };
        let whole = whole.replace(['(', ')'], " ").to_lowercase();
        let _ = VisitMut::visit(&mut unqualified, &mut Strip);
        let Some(named) = text_of(&unqualified) else { return ControlFlow::Continue(()) };
        // The planner counts rows as ones.
        let named = if named == "count(*)" { "count(1)".to_owned() } else { named.to_lowercase() };
        let others = self.seen.entry(named).or_default();
        let times = others.iter().position(|other| *other == whole).unwrap_or(others.len());
        if times == others.len() {
            others.push(whole);
        }
        if let Expr::Function(call) = expr
            && let FunctionArguments::List(list) = &mut call.args
        {
            let has_only_values = list.args.iter().all(|arg| value(arg).is_some());
            let name = last_part(&call.name).unwrap_or_default();
            let is_wrapped = |first: &Expr| is_number(first) || (self.is_aggregate)(&name);
            for _ in 0..times {
                match list.args.first_mut() {
                    Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first)))
                        if has_only_values && is_wrapped(first) =>
                    {
                        *first = coalesced(std::mem::replace(first, Expr::Tuple(Vec::new())));
                    }
                    _ => list.args.iter_mut().for_each(wrap),
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn value(arg: &FunctionArg) -> Option<&Value> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => Some(&value.value),
        _ => None,
    }
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

/// `coalesce` of one argument is that argument, by another name. Constants stay, as some functions want them plain; rows are
/// counted as ones.
fn wrap(arg: &mut FunctionArg) {
    if let FunctionArg::Unnamed(FunctionArgExpr::Wildcard) = arg {
        let one = Expr::value(Value::Number("1".to_owned(), false));
        *arg = FunctionArg::Unnamed(FunctionArgExpr::Expr(coalesced(one)));
        return;
    }
    if value(arg).is_some() {
        return;
    }
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { return };
    *expr = coalesced(std::mem::replace(expr, Expr::Tuple(Vec::new())));
}

/// An expression by another name.
pub(crate) fn coalesced(inner: Expr) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("coalesce")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
