//! What an index is defined by: expressions and predicates checked, planned and written out for the catalog, and read from there.
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::common::DFSchema;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::ast::VisitorMut;
use engine::{
    Collation, Column, DataType, EnumType, ExpressionCompiler, ExpressionError, IndexExpression, RowExpression, Table,
    TypeDefinition, schema_and_name,
};

use crate::access::index_expressions::compiled::CompiledExpression;
use crate::access::index_expressions::text::parsed;
use crate::access::index_expressions::write::{Style, in_list};
use crate::error::{Result, SqlError};
use crate::interrupt;
use crate::interrupt::cancel::Token;
use crate::interrupt::made_types::{MadeFunction, MadeTypes};
use crate::names::diagnose::diagnose;
use crate::planning::functions;
use crate::planning::index_compile::{Kind, changes, check_syntax, compile};
use crate::semantics::spelling::collations;
use crate::syntax::identifiers::{fold, quoted};
use crate::syntax::source::Source;
use crate::syntax::walk::{WalkMut, WalkTree};
use crate::values::zoned::{depends_on_zone, is_moment};

/// Works out the expressions of indexes: what the engine is supplied with.
#[derive(Debug)]
pub(crate) struct Expressions;

impl ExpressionCompiler for Expressions {
    fn compile(
        &self,
        expression: &IndexExpression,
        columns: &[Column],
    ) -> Result<Arc<dyn RowExpression>, ExpressionError> {
        // Wherever it is read, it means the types of its columns by their names.
        let _scope = OfColumns::of(columns).map(|types| {
            let token = Arc::new(Token::default());
            token.made_types.set(types);
            interrupt::enter(&token)
        });
        let told = |error: SqlError| ExpressionError::new(error.sqlstate, format!("{}: {error}", expression.text));
        let parsed = parsed(&expression.text).map_err(told)?;
        let mut compiled = compile(&parsed, columns, Kind::Expression, &Source::new("")).map_err(told)?;
        // The type that it had when the index was made.
        compiled.data_type = expression.data_type;
        Ok(Arc::new(compiled))
    }
}

/// Finds the enum types of some columns, and others as the statement does.
struct OfColumns {
    own: Vec<EnumType>,
    others: Option<Arc<dyn MadeTypes>>,
}

impl OfColumns {
    fn of(columns: &[Column]) -> Option<OfColumns> {
        let of = |column: &Column| match column.data_type {
            DataType::Enum(of) => Some(of),
            DataType::Array(item) => match item.data_type() {
                DataType::Enum(of) => Some(of),
                _ => None,
            },
            _ => None,
        };
        let own: Vec<EnumType> = columns.iter().filter_map(of).collect();
        let others = interrupt::current().made_types.get();
        (!own.is_empty()).then_some(OfColumns { own, others })
    }
}

impl MadeTypes for OfColumns {
    fn find(&self, schema: Option<&str>, name: &str) -> Option<(String, TypeDefinition)> {
        let is_it = |of: &EnumType| {
            let known = of.name();
            let (own, local) = schema_and_name(&known);
            local == name && schema.is_none_or(|schema| schema == own)
        };
        match self.own.iter().find(|of| is_it(of)) {
            Some(of) => Some((of.name(), TypeDefinition::Enum(of.definition()?.as_ref().clone()))),
            None => self.others.as_ref()?.find(schema, name),
        }
    }

    fn numbered(&self, number: u32) -> Option<String> {
        self.others.as_ref()?.numbered(number)
    }

    fn functions(&self) -> Vec<MadeFunction> {
        // What the catalog keeps has no calls of them any more.
        Vec::new()
    }

    fn collation(&self, schema: Option<&str>, name: &str) -> Option<Collation> {
        self.others.as_ref()?.collation(schema, name)
    }
}

/// The form in which the catalog keeps an expression, or the predicate, of a new index.
///
/// # Errors
/// PostgreSQL's, where an index can't be of it.
pub(crate) fn define(expr: &ast::Expr, table: &Table, kind: Kind, source: &Source) -> Result<IndexExpression> {
    define_over(expr, (table.name(), table.schema().columns()), kind, source)
}

/// The form in which the catalog keeps an expression over these columns of a table of this name.
///
/// # Errors
/// PostgreSQL's, where there is no such expression.
pub(crate) fn define_over(
    expr: &ast::Expr,
    (table, columns): (&str, &[Column]),
    kind: Kind,
    source: &Source,
) -> Result<IndexExpression> {
    let mut expr = expr.clone();
    if let ControlFlow::Break(error) = expr.walk_mut(&mut WithoutTable { table, source }) {
        return Err(*error);
    }
    check_syntax(&expr, kind, source)?;
    collations::name_built_in(&mut expr)?;
    let expr = functions::kept::inlined(expr, columns, source)?;
    let compiled = compile(&expr, columns, kind, source)?;
    let is_kept = matches!(kind, Kind::Expression | Kind::Predicate | Kind::Generated);
    if is_kept && needs_zone(&compiled).map_err(|error| diagnose(&error, source))? {
        return Err(changes(kind));
    }
    let text = in_list(&expr, columns, Style::Kept);
    // It is read again whenever the database is opened, and has to mean the same.
    let again = parsed(&text).and_then(|expr| compile(&expr, columns, kind, &Source::new(&text)));
    let text = match again {
        Ok(again) if again.logical == compiled.logical => text,
        _ => format!("({expr})"),
    };
    Ok(IndexExpression { text, columns: compiled.columns, data_type: compiled.data_type })
}

/// Whether an expression means something else in another zone, of which each session has its own.
fn needs_zone(compiled: &CompiledExpression) -> Result<bool, DataFusionError> {
    const FUNCTIONS: [&str; 5] = ["extract", "date_part", "date_trunc", "to_char", "to_text"];
    const READERS: [&str; 1] = ["make_timestamptz"];
    let schema = DFSchema::try_from(compiled.schema.as_ref().clone())?;
    let is_of_moments = |expr: &Expr| expr.get_type(&schema).is_ok_and(|found| is_moment(item(&found)));
    let is_read_text = |expr: &Expr| {
        !matches!(expr, Expr::Literal(..)) && expr.get_type(&schema).is_ok_and(|found| item(&found).is_string())
    };
    compiled.logical.has(|part| {
        Ok(match part {
            Expr::Cast(cast) => {
                let (from, to) = (cast.expr.get_type(&schema)?, cast.field.data_type());
                depends_on_zone(item(&from), item(to))
                    || is_moment(item(&from)) && item(to).is_string()
                    || is_moment(item(to)) && is_read_text(&cast.expr)
            }
            Expr::ScalarFunction(call) => {
                let gives = part.get_type(&schema)?;
                let writes = FUNCTIONS.contains(&call.name()) || item(&gives).is_string();
                let reads =
                    is_moment(item(&gives)) && (READERS.contains(&call.name()) || call.args.iter().any(is_read_text));
                reads || writes && call.args.iter().any(is_of_moments)
            }
            Expr::BinaryExpr(binary) => {
                let is_interval = |side: &Expr| matches!(side.get_type(&schema), Ok(ArrowType::Interval(_)));
                let sides = [&binary.left, &binary.right];
                sides.iter().any(|side| is_of_moments(side)) && sides.iter().any(|side| is_interval(side))
            }
            _ => false,
        })
    })
}

/// The type of the items of a list, any other type as it is.
fn item(of: &ArrowType) -> &ArrowType {
    match of {
        ArrowType::List(field) => item(field.data_type()),
        other => other,
    }
}

/// Takes the name of the table away that stands before its columns, and refuses that of any other. Names of columns are spelled as
/// the catalog has them.
struct WithoutTable<'a> {
    table: &'a str,
    source: &'a Source<'a>,
}

impl VisitorMut for WithoutTable<'_> {
    type Break = Box<SqlError>;

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<Self::Break> {
        if let ast::Expr::CompoundIdentifier(parts) = expr
            && let [table, column] = &parts[..]
        {
            if fold(table) != self.table {
                let message = format!("missing FROM-clause entry for table \"{}\"", fold(table));
                let error = SqlError::new("42P01", message).at(self.source.start(table.span));
                return ControlFlow::Break(Box::new(error));
            }
            *expr = ast::Expr::Identifier(column.clone());
        }
        if let ast::Expr::Identifier(ident) = expr {
            let (name, span) = (fold(ident), ident.span);
            let quote_style = Some('"').filter(|_| quoted(&name) != name);
            *ident = ast::Ident { value: name, quote_style, span };
        }
        ControlFlow::Continue(())
    }
}
