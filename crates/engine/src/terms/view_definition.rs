//! What makes a name a view.
//!
//! The engine keeps a view as a table that never has rows: so it shares the names of tables, their snapshots and their past. It
//! never reads the query, which SQL puts in the place of the name.
use serde::{Deserialize, Serialize};

use crate::terms::function_definition::FunctionDefinition;
use crate::terms::type_definition::TypeDefinition;

impl ViewDefinition {
    /// What stands for a type.
    pub fn of_type(definition: TypeDefinition) -> ViewDefinition {
        ViewDefinition { of_type: Some(definition), ..ViewDefinition::default() }
    }

    /// What stands for a function.
    pub fn of_function(definition: FunctionDefinition) -> ViewDefinition {
        ViewDefinition { of_function: Some(Box::new(definition)), ..ViewDefinition::default() }
    }
}

/// What has to hold of rows that are changed through a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CheckOption {
    /// the condition of the view itself
    Local,
    /// also those of all views that it reads
    Cascaded,
}

/// The definition of a view; its columns are those of its table's schema.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ViewDefinition {
    /// the query in SQL
    pub query: String,
    /// the columns whose type no table has, which the schema has as text: their positions, and PostgreSQL's number of the
    /// type
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_types: Vec<(usize, u32)>,
    /// whether rows that are changed through it have to be its own afterwards
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckOption>,
    /// the type that stands here in place of a view
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_type: Option<TypeDefinition>,
    /// the function that stands here in place of a view
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_function: Option<Box<FunctionDefinition>>,
}

#[cfg(test)]
mod tests {
    use types::DataType;

    use super::*;
    use crate::terms::function_definition::{FunctionBody, FunctionResult, FunctionVolatility};

    #[test]
    fn a_view_of_the_format_before_functions_is_read_and_written_as_it_was() {
        let before = r#"{"query":"SELECT 1 AS a","check":"Local"}"#;
        let read: ViewDefinition = serde_json::from_str(before).expect("a view of the format before");
        assert_eq!((read.query.as_str(), read.check), ("SELECT 1 AS a", Some(CheckOption::Local)));
        assert!(read.of_function.is_none() && read.of_type.is_none());
        assert_eq!(serde_json::to_string(&read).expect("JSON"), before);
    }

    #[test]
    fn a_function_is_read_as_it_was_written() {
        let definition = FunctionDefinition {
            arguments: Vec::new(),
            result: FunctionResult::Value(DataType::Integer),
            returns_set: true,
            body: "SELECT 1".to_owned(),
            form: FunctionBody::Text,
            volatility: FunctionVolatility::Stable,
            is_strict: false,
            options: vec!["SECURITY DEFINER".to_owned()],
        };
        let written = serde_json::to_string(&ViewDefinition::of_function(definition.clone())).expect("JSON");
        let read: ViewDefinition = serde_json::from_str(&written).expect("what was written");
        assert_eq!(read.of_function.as_deref(), Some(&definition));
    }
}
