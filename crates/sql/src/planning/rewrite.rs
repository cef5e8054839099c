//! The passes over a statement's tree before it is planned, in their order.
//!
//! The planner reads the syntax of PostgreSQL, and means something else by parts of it. Each pass puts one construct into words by
//! which the planner means what PostgreSQL does. What a pass needs to know of the statement is settled by those before it:
//!
//! ```text
//! tables       moments of the past, views, limits by queries, ...       ─▶ which tables are there
//! queries      comparisons with subqueries, limits, names of WITH, ...  ─▶ which queries are there, and that they are allowed
//! functions    those of this statement                                  ─▶ what may be called
//! expressions  arrays, numbers, patterns, rows, ...                     ─▶ what is computed
//! columns      references, columns of both sides of a join              ─▶ what each name means
//! headings     what columns are called                                  ─▶ no two alike where the planner needs that
//! ```
//!
//! Between two passes the statement may be cancelled.
use chrono::DateTime;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Volatility;
use datafusion::sql::sqlparser::ast::Statement;
use engine::{Collation, Table};

use crate::error::Result;
use crate::names::diagnose::diagnose;
use crate::planning::domains::{self, CompileCheck};
use crate::planning::functions::Library;
use crate::planning::{samples, views};
use crate::semantics::aggregates::argument_orders;
use crate::semantics::naming::{cast_names, distinct_orders, duplicates, references, using, whole_rows, with_names};
use crate::semantics::rules::recursion;
use crate::semantics::spell_out;
use crate::semantics::spelling::{
    collations, limit_values, quantified, row_values, rows, values_of_subqueries, windows,
};
use crate::state::past;
use crate::state::past::Run;
use crate::state::view::View;
use crate::syntax::source::Source;
use crate::syntax::{check, limits, stack};
use crate::{functions, interrupt, pg_catalog};

/// What passes know beside the statement.
pub(crate) struct Surroundings<'a> {
    /// what is there to be read; past moments that the statement names are added
    pub(crate) view: &'a mut View,
    /// the statement's text
    pub(crate) source: &'a Source<'a>,
    /// the functions that it may call; those that belong to a statement are added
    pub(crate) state: SessionState,
    /// whether an aggregate function has a name
    pub(crate) is_aggregate: &'a dyn Fn(&str) -> bool,
    /// runs another query over a view
    pub(crate) run: &'a Run<'a>,
    /// makes the conditions of domains ready
    compile: CompileCheck,
    /// whether the statement asks for the system catalog
    is_about_catalog: bool,
}

impl<'a> Surroundings<'a> {
    /// Those of a statement that no pass has gone through.
    pub(crate) fn new(
        view: &'a mut View,
        source: &'a Source<'a>,
        state: SessionState,
        is_aggregate: &'a dyn Fn(&str) -> bool,
        run: &'a Run<'a>,
        compile: CompileCheck,
    ) -> Surroundings<'a> {
        Surroundings { view, source, state, is_aggregate, run, compile, is_about_catalog: false }
    }
}

/// One pass over a statement.
type Pass = fn(&mut Statement, &mut Surroundings<'_>) -> Result<()>;

/// All passes.
const PASSES: [Pass; 27] = [
    // tables
    |statement, around| limit_values::work_out(statement, around.view, around.source, around.is_aggregate, around.run),
    |statement, _| quantified::spell_out(statement),
    |statement, around| functions::spell_out_catalog_in_from(statement, &around.state),
    |statement, around| {
        around.is_about_catalog = pg_catalog::rewrite(statement, &around.view.tables, around.source)?;
        Ok(())
    },
    // queries
    |statement, _| limits::check(statement),
    |statement, around| {
        let tables = &around.view.tables;
        collations::spell_out(statement, around.source, &|| tables.plain().iter().any(|(_, table)| has_language(table)))
    },
    |statement, around| with_names::tell_apart(statement, around.source),
    |statement, _| {
        duplicates::name_columns(statement);
        Ok(())
    },
    |statement, around| distinct_orders::spell_out(statement, &around.view.tables, around.source),
    |statement, _| values_of_subqueries::spell_out(statement),
    |statement, around| windows::spell_out(statement, around.source),
    |statement, around| check::query(statement, around.source),
    |statement, around| recursion::check(statement, around.source, around.is_aggregate),
    |statement, around| argument_orders::number(statement, around.source),
    // functions
    |_, around| register_functions(around),
    |statement, around| domains::spell_out(statement, &mut around.state, around.compile),
    |statement, around| functions::spell_out_in_from(statement, &around.state, &around.view.tables),
    // expressions
    |statement, _| spell_out(statement),
    |statement, _| rows::spell_out(statement),
    |statement, _| row_values::spell_out(statement),
    |statement, _| {
        crate::functions::tables::set_returning::spell_out(statement);
        Ok(())
    },
    |statement, around| whole_rows::rewrite(statement, &around.view.tables),
    // columns
    |statement, around| {
        let tables = (&around.view.tables, &around.view.targets[..]);
        if references::resolve(statement, tables, around.source, around.is_aggregate)? {
            whole_rows::test_fields(statement);
            row_values::spell_out(statement)?;
        }
        Ok(())
    },
    |statement, around| using::rewrite(statement, &around.view.tables),
    // headings
    |statement, around| {
        cast_names::tell_apart(statement, around.is_aggregate);
        Ok(())
    },
    |statement, _| {
        duplicates::rename(statement);
        Ok(())
    },
    |statement, around| {
        functions::tell_apart(statement, &mut around.state);
        Ok(())
    },
];

/// Takes a statement through all passes; returns the functions that it may call, and whether another run of it would be planned alike:
/// it neither asks for the system catalog nor reads by chance.
pub(crate) fn rewrite(statement: &mut Statement, mut around: Surroundings<'_>) -> Result<(SessionState, bool)> {
    past::resolve(statement, around.view, around.source, around.run)?;
    let state = &around.state;
    let is_built_in = |name: &str| {
        state.scalar_functions().contains_key(name)
            || (around.is_aggregate)(name)
            || state.window_functions().contains_key(name)
            || state.table_functions().contains_key(name)
    };
    let is_volatile = |name: &str| {
        let of_library = state.scalar_functions().get(name);
        of_library.is_some_and(|function| function.signature().volatility == Volatility::Volatile)
            || functions::statement::is_volatile(name)
            || around.view.user_functions.iter().any(|(own, function)| own == name && !function.is_pure())
    };
    let library = Library { is_aggregate: around.is_aggregate, is_built_in: &is_built_in, is_volatile: &is_volatile };
    let written_out = views::expand(statement, around.view, around.source, library)?;
    let is_sampled = samples::spell_out(statement, around.view, around.source)?;
    stack::with_room(written_out, || {
        for pass in PASSES {
            pass(statement, &mut around)?;
            interrupt::check()?;
        }
        Ok((around.state, !around.is_about_catalog && !is_sampled))
    })
}

/// Whether a table has a column with the collation of a language.
fn has_language(table: &Table) -> bool {
    let is_of_language = |collation: &Collation| collation.locale.is_some();
    table.schema().columns().iter().any(|column| column.collation.as_ref().is_some_and(is_of_language))
}

/// Lets the statement call the functions that know its session and its moment.
fn register_functions(around: &mut Surroundings<'_>) -> Result<()> {
    let state = &mut around.state;
    state.mark_start_execution();
    state.execution_props_mut().query_execution_start_time = DateTime::from_timestamp_micros(around.view.now);
    functions::register(state, around.view).map_err(|error| diagnose(&error, around.source))?;
    if around.is_about_catalog {
        pg_catalog::register(state, around.view).map_err(|error| diagnose(&error, around.source))?;
    }
    Ok(())
}
