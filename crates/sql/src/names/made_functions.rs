//! Functions that users have made in SQL: by which names the catalog of the engine knows them.
//!
//! The engine keeps them as it keeps types: as views by a name that no relation has. The types of the arguments are a part of it, as
//! several functions may have one name.
use engine::{DataType, FunctionDefinition, FunctionResult, Table, name_in_schema, schema_and_name};

use crate::interrupt::made_types::{self, MadeFunction};
use crate::names::schemas::FUNCTION_MARK;
use crate::names::tables::Tables;
use crate::values::pg_types::{number_of, shown_name};

/// The name by which the catalog of the engine keeps a function of a schema that takes these types.
pub(crate) fn entry(schema: &str, name: &str, types: &[DataType]) -> String {
    let numbers: Vec<String> = types.iter().map(|data_type| number_of(*data_type).to_string()).collect();
    name_in_schema(schema, &format!("{FUNCTION_MARK}{name}{FUNCTION_MARK}{}", numbers.join(",")))
}

/// The function that the catalog keeps as this table.
pub(crate) fn of_kept(entry: &str, kept: &Table) -> Option<MadeFunction> {
    let (schema, local) = schema_and_name(entry);
    let (name, _) = local.strip_prefix(FUNCTION_MARK)?.split_once(FUNCTION_MARK)?;
    let definition = kept.view()?.of_function.as_deref()?.clone();
    Some(MadeFunction { schema: schema.to_owned(), name: name.to_owned(), definition })
}

/// All functions, each with the table as which it is kept, sorted by their names.
pub(crate) fn all(tables: &Tables) -> Vec<(MadeFunction, Table)> {
    let kept = tables.kept_functions().into_iter();
    kept.filter_map(|(entry, table)| Some((of_kept(&entry, &table)?, table))).collect()
}

/// The names of the columns that a call in FROM gives which is called `own`: `None` where no function of a user's has this name, and
/// nothing where it depends on which of several is called.
pub(crate) fn columns_of_call(name: &str, own: &str, tables: &Tables) -> Option<Option<Vec<String>>> {
    let names = |columns: &[(String, DataType)]| columns.iter().map(|(name, _)| name.clone()).collect();
    let columns = |function: MadeFunction| match &function.definition.result {
        FunctionResult::Value(_) | FunctionResult::Nothing => Some(vec![own.to_owned()]),
        FunctionResult::Table(columns) | FunctionResult::Out(columns) => Some(names(columns)),
        FunctionResult::RowOf(table) => {
            let table = tables.find(table).ok()?;
            Some(table.schema().columns().iter().map(|column| column.name.clone()).collect())
        }
    };
    let mut found = made_types::functions().into_iter().filter(|function| function.name == name).map(columns);
    let first = found.next()?;
    let are_alike = found.all(|other| other == first);
    Some(first.filter(|_| are_alike))
}

impl MadeFunction {
    /// The types of its arguments.
    pub(crate) fn types(&self) -> Vec<DataType> {
        self.definition.arguments.iter().map(|argument| argument.data_type).collect()
    }

    /// It as messages call it: `f(integer,text)`.
    pub(crate) fn signature(&self) -> String {
        let types: Vec<String> = self.types().into_iter().map(shown_name).collect();
        format!("{}({})", self.name, types.join(","))
    }

    /// Whether it is to give one value, and not a row.
    pub(crate) fn value_type(&self) -> Option<DataType> {
        match &self.definition.result {
            FunctionResult::Value(data_type) => Some(*data_type),
            FunctionResult::Table(columns) | FunctionResult::Out(columns) if columns.len() == 1 => Some(columns[0].1),
            _ => None,
        }
    }
}

/// Whether two functions of one name take the same calls.
pub(crate) fn is_alike(definition: &FunctionDefinition, types: &[DataType]) -> bool {
    let arguments = &definition.arguments;
    let is_same = |(argument, wanted): (&engine::FunctionArgument, &DataType)| {
        number_of(argument.data_type) == number_of(*wanted)
    };
    arguments.len() == types.len() && arguments.iter().zip(types).all(is_same)
}
