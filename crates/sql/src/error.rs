//! The one error type of this crate, shaped as PostgreSQL's error message is.
use std::fmt;
use std::ops::ControlFlow;

use datafusion::error::DataFusionError;

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The message, in PostgreSQL's words where it has them.
    pub message: String,
    /// The five-character SQLSTATE.
    pub sqlstate: &'static str,
    /// Where in the statement's text, as a byte offset.
    pub position: Option<usize>,
    /// A remedy for the user.
    pub hint: Option<String>,
    /// More about the case at hand.
    pub detail: Option<String>,
    /// The objects that the error is about, where they are known.
    pub about: Option<Box<About>>,
}

/// An error of a function or an operator as one of the library, which hands it on.
pub(crate) fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The names of what an error is about, for programs that look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The schema of the table or the domain.
    pub schema: String,
    /// The table.
    pub table: Option<String>,
    /// A column of it.
    pub column: Option<String>,
    /// The domain.
    pub data_type: Option<String>,
    /// A constraint of the table or the domain.
    pub constraint: Option<String>,
}

impl About {
    /// A table by its name in the catalog, and a column or a constraint of it.
    pub(crate) fn of(table: &str, column: Option<String>, constraint: Option<String>) -> About {
        let (schema, table) = (engine::schema_and_name(table).0.to_owned(), Some(table.to_owned()));
        About { schema, table, column, data_type: None, constraint }
    }
}

/// What a walk through a tree goes on with, or that it ends with an error.
pub(crate) fn flow<T>(result: Result<T>) -> ControlFlow<Box<SqlError>, T> {
    match result {
        Ok(result) => ControlFlow::Continue(result),
        Err(error) => ControlFlow::Break(Box::new(error)),
    }
}

/// The result of most functions here.
pub(crate) type Result<T, E = SqlError> = std::result::Result<T, E>;

impl SqlError {
    /// An error with this SQLSTATE and message.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
        SqlError { message: message.into(), sqlstate, position: None, hint: None, detail: None, about: None }
    }

    /// `feature_not_supported`: "... is not supported".
    pub(crate) fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new("0A000", format!("{what} is not supported"))
    }

    /// `syntax_error`.
    pub(crate) fn syntax(message: impl Into<String>) -> SqlError {
        SqlError::new("42601", message)
    }

    /// `datatype_mismatch`.
    pub(crate) fn mismatch(message: impl Into<String>) -> SqlError {
        SqlError::new("42804", message)
    }

    /// An I/O error of `path`, in the words of the operating system.
    pub(crate) fn io(doing: &str, path: &str, error: &std::io::Error) -> SqlError {
        let sqlstate = match error.kind() {
            std::io::ErrorKind::NotFound => "58P01",
            std::io::ErrorKind::PermissionDenied => "42501",
            std::io::ErrorKind::StorageFull => "53100",
            _ => "58030",
        };
        SqlError::new(sqlstate, format!("could not {doing} file \"{path}\": {error}"))
    }

    /// The error of SQL that one of reading or writing carries, if it does.
    pub(crate) fn within(error: &std::io::Error) -> Option<SqlError> {
        error.get_ref()?.downcast_ref::<SqlError>().cloned()
    }

    /// Points the error at this byte of the statement unless it points somewhere already.
    pub(crate) fn at(mut self, position: Option<usize>) -> SqlError {
        self.position = self.position.or(position);
        self
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a detail.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> SqlError {
        self.detail = Some(detail.into());
        self
    }

    /// The error with names as people know them.
    pub(crate) fn shown(self, shown: impl Fn(&str) -> String) -> SqlError {
        let about = self.about.map(|about| {
            let (table, constraint) = (about.table.as_deref().map(&shown), about.constraint.as_deref().map(&shown));
            Box::new(About { table, constraint, ..*about })
        });
        let (detail, hint) = (self.detail.as_deref().map(&shown), self.hint.as_deref().map(&shown));
        SqlError { message: shown(&self.message), detail, hint, about, ..self }
    }

    /// With the constraint of a table that it is about.
    fn about_constraint(self, table: String, constraint: String) -> SqlError {
        self.about(About::of(&table, None, Some(constraint)))
    }

    /// Adds the names of what the error is about.
    pub(crate) fn about(mut self, about: About) -> SqlError {
        self.about = Some(Box::new(about));
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}

/// The error of NULL in a column of a table that takes none, with the row where it is known.
fn null_in_column(sqlstate: &'static str, (table, column): (&str, String), row: Option<String>) -> SqlError {
    let message = format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
    let error = SqlError::new(sqlstate, message).about(About::of(table, Some(column), None));
    SqlError { detail: row.map(|row| format!("Failing row contains ({row}).")), ..error }
}

/// Words as a sentence.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}

/// Begins, and divides, the names of rules that come from a domain: number, domain, constraint, the last empty for NOT NULL.
pub(crate) const DOMAIN_RULE: char = '\u{1}';

/// The error of a value that breaks such a rule.
pub(crate) fn of_domain(rule: &str) -> Option<SqlError> {
    let mut parts = rule.strip_prefix(DOMAIN_RULE)?.splitn(3, DOMAIN_RULE);
    let (_, domain, constraint) = (parts.next()?, parts.next()?, parts.next()?);
    let (schema, name) = engine::schema_and_name(domain);
    let about = |constraint: Option<&str>| About {
        schema: schema.to_owned(),
        data_type: Some(name.to_owned()),
        constraint: constraint.map(str::to_owned),
        ..About::default()
    };
    Some(match constraint {
        "" => SqlError::new("23502", format!("domain {domain} does not allow null values")).about(about(None)),
        check => {
            let message = format!("value for domain {domain} violates check constraint \"{check}\"");
            SqlError::new("23514", message).about(about(Some(check)))
        }
    })
}

/// The name of the function of a text whose letters are compared whatever their case, which only we can spell.
pub(crate) const FOLDED: &str = "\0folded";

/// The names in a message about a key as they were asked for.
fn names_as_asked(key: String) -> String {
    let start = format!("\"{FOLDED}\"(");
    let Some(mut at) = key.find(&start) else { return key };
    let mut told = String::with_capacity(key.len());
    let mut rest = key.as_str();
    loop {
        told.push_str(&rest[..at]);
        let behind = &rest[at + start.len()..];
        let end = behind.find(')').unwrap_or(behind.len());
        told.push_str(&behind[..end]);
        rest = behind.get(end + 1..).unwrap_or_default();
        match rest.find(&start) {
            Some(next) => at = next,
            None => return told + rest,
        }
    }
}

impl From<engine::Error> for SqlError {
    fn from(error: engine::Error) -> SqlError {
        let sqlstate = error.sqlstate();
        match error {
            engine::Error::NoSuchTable(name) => SqlError::new(sqlstate, format!("relation \"{name}\" does not exist")),
            engine::Error::TableExists(name) => SqlError::new(sqlstate, format!("relation \"{name}\" already exists")),
            engine::Error::DuplicateKey { table, constraint, key } => {
                let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
                let error = SqlError::new(sqlstate, message).about_constraint(table, constraint);
                error.detail(format!("Key {} already exists.", names_as_asked(key)))
            }
            engine::Error::ExclusionViolated { table, constraint, key, existing } => {
                let message = format!("conflicting key value violates exclusion constraint \"{constraint}\"");
                let error = SqlError::new(sqlstate, message).about_constraint(table, constraint);
                error.detail(format!("Key {key} conflicts with existing key {existing}."))
            }
            engine::Error::KeysExcluded { table, index, key, other } => {
                let message = format!("could not create exclusion constraint \"{index}\"");
                let error = SqlError::new(sqlstate, message).about_constraint(table, index);
                error.detail(format!("Key {key} conflicts with key {other}."))
            }
            engine::Error::KeysNotUnique { table, index, key } => {
                let message = format!("could not create unique index \"{index}\"");
                let error = SqlError::new(sqlstate, message).about_constraint(table, index);
                error.detail(format!("Key {key} is duplicated."))
            }
            engine::Error::IndexWithoutRoom { index, source } => SqlError::new(sqlstate, "out of memory")
                .detail(format!("Index \"{index}\" {}.", source.fact()))
                .hint(sentence(source.remedy())),
            engine::Error::NullInColumn { table, column, row } => null_in_column(sqlstate, (&table, column), row),
            engine::Error::NotReferenced { table, constraint, key, referenced } => {
                let message =
                    format!("insert or update on table \"{table}\" violates foreign key constraint \"{constraint}\"");
                let detail = format!("Key {key} is not present in table \"{referenced}\".");
                SqlError::new(sqlstate, message).detail(detail).about_constraint(table, constraint)
            }
            engine::Error::MixedKey { table, constraint } => {
                let message =
                    format!("insert or update on table \"{table}\" violates foreign key constraint \"{constraint}\"");
                let detail = "MATCH FULL does not allow mixing of null and nonnull key values.";
                SqlError::new(sqlstate, message).detail(detail).about_constraint(table, constraint)
            }
            engine::Error::StillReferenced { table, constraint, by, key } => {
                let message = format!(
                    "update or delete on table \"{table}\" violates foreign key constraint \"{constraint}\" on table \"{by}\""
                );
                let detail = format!("Key {key} is still referenced from table \"{by}\".");
                SqlError::new(sqlstate, message).detail(detail).about_constraint(by, constraint)
            }
            engine::Error::ArrayTable { table, what, hint } => {
                SqlError::new(sqlstate, format!("{what} is not supported by array table \"{table}\"")).hint(hint)
            }
            engine::Error::ArrayKey { table, key, last } => {
                let detail = format!("Keys are places: they go from 0 to {last} now.");
                SqlError::new(sqlstate, format!("key {key} is out of range for array table \"{table}\""))
                    .detail(detail)
                    .hint("Insert rows in about the order of their keys, or use a table of another layout.")
            }
            engine::Error::CheckViolated { constraint, .. } if let Some(error) = of_domain(&constraint) => error,
            engine::Error::CheckViolated { table, constraint, row } => {
                let message = format!("new row for relation \"{table}\" violates check constraint \"{constraint}\"");
                let error = SqlError::new(sqlstate, message).detail(format!("Failing row contains ({row})."));
                error.about_constraint(table, constraint)
            }
            other => SqlError::new(sqlstate, other.to_string()),
        }
    }
}
