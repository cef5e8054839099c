//! The types that users have made, as the statement sees them for which a thread works.
//!
//! A type may be named wherever an expression stands, and expressions are read in many rooms, on several threads. What finds types
//! goes with the statement's token, which all of them have.
use std::sync::{Arc, Mutex, PoisonError};

use engine::{Collation, EnumType, FunctionDefinition, TypeDefinition, has_made_functions, has_made_types};

/// Finds types by their names.
pub(crate) trait MadeTypes: Send + Sync {
    /// The type of this name in a schema, or in the schemas where names without one are looked for; its name in the catalog, too.
    fn find(&self, schema: Option<&str>, name: &str) -> Option<(String, TypeDefinition)>;

    /// The name of the domain with this number of the catalog.
    fn numbered(&self, number: u32) -> Option<String>;

    /// All functions that users have made, by the names of schema and function.
    fn functions(&self) -> Vec<MadeFunction>;

    /// The collation of this name in a schema, or in the schemas where names without one are looked for.
    fn collation(&self, schema: Option<&str>, name: &str) -> Option<Collation>;
}

/// The collation that a user has made by this name, as the statement sees it for which the thread works.
pub(crate) fn collation(schema: Option<&str>, name: &str) -> Option<Collation> {
    super::current().made_types.get()?.collation(schema, name)
}

/// A function that a user has made.
#[derive(Clone)]
pub(crate) struct MadeFunction {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) definition: FunctionDefinition,
}

impl MadeFunction {
    /// The least and the most arguments that a call may have.
    pub(crate) fn arguments_taken(&self) -> [usize; 2] {
        let arguments = &self.definition.arguments;
        [arguments.iter().filter(|argument| argument.default.is_none()).count(), arguments.len()]
    }

    /// Whether a call may have so many arguments.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let [least, most] = self.arguments_taken();
        (least..=most).contains(&arguments)
    }
}

/// The functions that users have made, as the statement sees them for which the thread works.
pub(crate) fn functions() -> Vec<MadeFunction> {
    match super::current().made_types.get() {
        Some(made) if has_made_functions() => made.functions(),
        _ => Vec::new(),
    }
}

/// What finds types for a statement.
#[derive(Default)]
pub(crate) struct Offered(Mutex<Option<Arc<dyn MadeTypes>>>);

impl Offered {
    pub(crate) fn get(&self) -> Option<Arc<dyn MadeTypes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the statement find types as another one does.
    pub(crate) fn take_over(&self, other: &Offered) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = other.get();
    }

    /// Has the statement find types by this.
    pub(crate) fn set(&self, types: impl MadeTypes + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(types));
    }
}

/// The name of the domain that has this number for the statement for which the thread works.
pub(crate) fn numbered(number: u32) -> Option<String> {
    super::current().made_types.get()?.numbered(number)
}

/// Whether the statement for which the thread works finds a type by its name without a schema.
pub(crate) fn is_found(known: &str) -> bool {
    let (schema, name) = engine::schema_and_name(known);
    match super::current().made_types.get() {
        Some(types) => types.find(None, name).is_some_and(|(found, _)| found == known),
        None => schema == engine::PUBLIC_SCHEMA,
    }
}

/// The type that a name means to the statement for which the thread works. What works for none, such as filling an index when a
/// database is opened, knows enums by their plain names.
pub(crate) fn find(schema: Option<&str>, name: &str) -> Option<(String, TypeDefinition)> {
    if !has_made_types() {
        return None;
    }
    match super::current().made_types.get() {
        Some(types) => types.find(schema, name),
        None => {
            let known = engine::name_in_schema(schema.unwrap_or(engine::PUBLIC_SCHEMA), name);
            let labels = EnumType::named(&known)?.definition()?;
            Some((known, TypeDefinition::Enum(labels.as_ref().clone())))
        }
    }
}
