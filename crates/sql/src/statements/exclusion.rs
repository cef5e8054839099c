//! `EXCLUDE USING gist (room WITH =, during WITH &&)`: constraints that no two rows have keys which are so to each other.
//!
//! The index behind one is by `gist`, which knows overlaps and takes all that is compared; one that was asked for by `btree`, `hash` or
//! `spgist` is told so.
use datafusion::sql::sqlparser::ast::{Expr, Ident, IndexColumn, IndexType, ObjectName, UniqueConstraint};
use engine::{DataType, Exclusion, GeometryKind, IndexDefinition, IndexMethod, IndexPart, Table};

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::planning::index_compile::Kind;
use crate::planning::index_define::define;
use crate::statements::{index_options, index_parts, operator_classes, told_methods};
use crate::syntax::exclude_tokens::{EXCLUDE, INCLUDE, OPTIONS, WHERE, WITH};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::values::long_name;

/// What such a constraint is of.
pub(super) struct AskedExclusion {
    /// the method that it was asked for
    method: IndexMethod,
    /// parts, with the operator of each and its class, if it has one
    elements: Vec<(IndexColumn, String, Option<String>)>,
    /// the columns that its index is asked to have beside these
    included: Vec<String>,
    /// the options of its index
    options: Vec<Expr>,
    /// the condition of the rows that it is about, if not of all
    predicate: Option<Expr>,
}

impl AskedExclusion {
    /// The exclusion constraint that a UNIQUE constraint stands for, if it does.
    ///
    /// # Errors
    /// If it is of a method that excludes nothing, or has options that the parser knows.
    pub(super) fn read(constraint: &UniqueConstraint) -> Result<Option<AskedExclusion>> {
        if constraint.index_name.as_ref().is_none_or(|name| name.value != EXCLUDE) {
            return Ok(None);
        }
        if !constraint.index_options.is_empty() {
            return Err(SqlError::unsupported("an option of an exclusion constraint"));
        }
        let mut asked = AskedExclusion {
            method: method(constraint)?,
            elements: Vec::new(),
            included: Vec::new(),
            options: Vec::new(),
            predicate: None,
        };
        for column in &constraint.columns {
            let class = column.operator_class.as_ref().and_then(last_part);
            let expr = &column.column.expr;
            match class.as_deref() {
                Some(WHERE) => asked.predicate = Some(expr.clone()),
                Some(OPTIONS) => asked.options = list(expr),
                Some(INCLUDE) => asked.included = list(expr).iter().map(name_of).collect::<Result<_>>()?,
                class => asked.elements.push(element(column, class)?),
            }
        }
        told_methods::check(asked.method, false, !asked.included.is_empty(), asked.elements.len())?;
        Ok(Some(asked))
    }

    /// The index behind it, without a name.
    pub(super) fn define(&self, table: &Table, source: &Source) -> Result<IndexDefinition> {
        let (mut parts, mut exclusion) = (Vec::new(), Vec::new());
        for (column, operator, class) in &self.elements {
            let part = index_parts::part(column, table, self.method, source)?;
            let data_type = match &part {
                IndexPart::Column(column) => table.schema().columns()[*column].data_type,
                IndexPart::Expression(expression) => expression.data_type,
            };
            operator_classes::check_default(data_type, IndexMethod::Gist)?;
            if let Some(class) = class {
                let name = ObjectName::from(vec![Ident::new(class)]);
                operator_classes::check(&name, data_type, self.method, source)?;
            }
            exclusion.push(exclusion_of(operator, data_type, self.method)?);
            parts.push(part);
        }
        let position = |name: &String| {
            let missing = || SqlError::new("42703", format!("column \"{name}\" named in key does not exist"));
            table.schema().position(name).ok_or_else(missing)
        };
        let included = self.included.iter().map(position).collect::<Result<_>>()?;
        let mut definition = IndexDefinition::of(String::new(), parts).using(IndexMethod::Gist).told_as(self.method);
        definition = definition.excluding(exclusion).including(included);
        definition.options = index_options::said(&self.options, self.method, source)?.others;
        let predicate = self.predicate.as_ref().map(|of| define(of, table, Kind::Predicate, source));
        definition.predicate = predicate.transpose()?;
        Ok(definition)
    }
}

/// The method that a constraint names.
fn method(constraint: &UniqueConstraint) -> Result<IndexMethod> {
    let name = match &constraint.index_type {
        Some(IndexType::Custom(name)) => fold(name),
        other => other.as_ref().map(|method| method.to_string().to_lowercase()).unwrap_or_default(),
    };
    let missing = || SqlError::new("42704", format!("access method \"{name}\" does not exist"));
    let method = IndexMethod::named(&name).ok_or_else(missing)?;
    match method {
        IndexMethod::Gist | IndexMethod::Btree | IndexMethod::Hash | IndexMethod::Spgist => Ok(method),
        _ => Err(SqlError::new("0A000", format!("access method \"{name}\" does not support exclusion constraints"))),
    }
}

/// A part of the key with its operator and its class.
fn element(column: &IndexColumn, class: Option<&str>) -> Result<(IndexColumn, String, Option<String>)> {
    let missing = || SqlError::syntax("each element of an exclusion constraint needs WITH and an operator");
    let operator = class.and_then(|class| class.strip_prefix(WITH)).ok_or_else(missing)?;
    let (operator, class) = match operator.split_once(' ') {
        Some((operator, class)) => (operator, Some(class.to_owned())),
        None => (operator, None),
    };
    Ok((IndexColumn { operator_class: None, ..column.clone() }, operator.to_owned(), class))
}

/// The items of a list in parentheses.
fn list(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Nested(inner) => vec![(**inner).clone()],
        Expr::Tuple(items) => items.clone(),
        other => vec![other.clone()],
    }
}

fn name_of(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Identifier(ident) => Ok(fold(ident)),
        _ => Err(SqlError::new("0A000", "expressions are not supported in included columns")),
    }
}

/// What an operator between two values of a type asks.
fn exclusion_of(operator: &str, data_type: DataType, method: IndexMethod) -> Result<Exclusion> {
    let overlaps = matches!(
        data_type,
        DataType::Range(_) | DataType::Geometry(GeometryKind::Box | GeometryKind::Circle) | DataType::Network(_)
    );
    let has_extent = matches!(data_type, DataType::Array(_) | DataType::Geometry(_)) || overlaps;
    let of_space = matches!(method, IndexMethod::Gist | IndexMethod::Spgist);
    match operator {
        "=" if !matches!(data_type, DataType::Geometry(_)) => Ok(Exclusion::Equal),
        "<>" | "!="
            if method == IndexMethod::Gist && !matches!(data_type, DataType::Geometry(_) | DataType::Range(_)) =>
        {
            Ok(Exclusion::Different)
        }
        "&&" if overlaps && of_space => Ok(Exclusion::Overlapping),
        "-|-" if of_space && matches!(data_type, DataType::Range(_)) => Ok(Exclusion::Adjacent),
        "&&" | "-|-" if !has_extent => {
            let name = long_name(data_type);
            let message = format!("operator does not exist: {name} {operator} {name}");
            let hint =
                "No operator matches the given name and argument types. You might need to add explicit type casts.";
            Err(SqlError::new("42883", message).hint(hint))
        }
        _ => {
            let name = long_name(data_type);
            let hint = "An exclusion constraint has = for values, by gist <> for numbers, texts and dates, && for ranges, \
                        boxes, circles and addresses, and -|- for ranges.";
            Err(SqlError::unsupported(format!("the operator {operator} of {name} in an exclusion constraint"))
                .hint(hint))
        }
    }
}
