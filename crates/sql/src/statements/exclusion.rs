//! `EXCLUDE USING gist (room WITH =, during WITH &&)`: constraints that no two rows have keys which are so to each other.
use datafusion::sql::sqlparser::ast::{Expr, Ident, IndexColumn, ObjectName, UniqueConstraint};
use engine::{DataType, Exclusion, GeometryKind, IndexDefinition, IndexMethod, IndexPart, Table};

use crate::error::{Result, SqlError};
use crate::planning::index_compile::Kind;
use crate::planning::index_define::define;
use crate::statements::{index_parts, operator_classes};
use crate::syntax::exclude_tokens::{EXCLUDE, WHERE, WITH};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::values::long_name;

/// What such a constraint is of.
pub(super) struct AskedExclusion {
    /// parts, with the operator of each and its class, if it has one
    elements: Vec<(IndexColumn, String, Option<String>)>,
    /// the condition of the rows that it is about, if not of all
    predicate: Option<Expr>,
}

impl AskedExclusion {
    /// The exclusion constraint that a UNIQUE constraint stands for, if it does.
    ///
    /// # Errors
    /// If it is of another method than `gist`, or has options.
    pub(super) fn read(constraint: &UniqueConstraint) -> Result<Option<AskedExclusion>> {
        if constraint.index_name.as_ref().is_none_or(|name| name.value != EXCLUDE) {
            return Ok(None);
        }
        let method = constraint.index_type.as_ref().map(|method| method.to_string().to_lowercase());
        if method.as_deref() != Some(IndexMethod::Gist.name()) {
            let hint = "Use gist, which takes numbers, dates and texts, too; or a UNIQUE constraint.";
            return Err(SqlError::unsupported("an exclusion constraint of this access method").hint(hint));
        }
        if !constraint.index_options.is_empty() || constraint.characteristics.is_some() {
            return Err(SqlError::unsupported("an option of an exclusion constraint"));
        }
        let element = |column: &IndexColumn| {
            let class = column.operator_class.as_ref().and_then(last_part);
            let operator = class.as_deref().and_then(|class| class.strip_prefix(WITH)).map(str::to_owned);
            let (operator, class) = match operator.as_deref().and_then(|both| both.split_once(' ')) {
                Some((operator, class)) => (Some(operator.to_owned()), Some(class.to_owned())),
                None => (operator, None),
            };
            let missing = || SqlError::syntax("each element of an exclusion constraint needs WITH and an operator");
            Ok((IndexColumn { operator_class: None, ..column.clone() }, operator.ok_or_else(missing)?, class))
        };
        let is_condition = |column: &&IndexColumn| {
            column.operator_class.as_ref().and_then(last_part).is_some_and(|class| class == WHERE)
        };
        let predicate = constraint.columns.last().filter(is_condition).map(|column| column.column.expr.clone());
        let elements = &constraint.columns[..constraint.columns.len() - usize::from(predicate.is_some())];
        Ok(Some(AskedExclusion { elements: elements.iter().map(element).collect::<Result<_>>()?, predicate }))
    }

    /// The index behind it, without a name.
    pub(super) fn define(&self, table: &Table, source: &Source) -> Result<IndexDefinition> {
        let (mut parts, mut exclusion) = (Vec::new(), Vec::new());
        for (column, operator, class) in &self.elements {
            let part = index_parts::part(column, table, IndexMethod::Gist, source)?;
            let data_type = match &part {
                IndexPart::Column(column) => table.schema().columns()[*column].data_type,
                IndexPart::Expression(expression) => expression.data_type,
            };
            if let Some(class) = class {
                let name = ObjectName::from(vec![Ident::new(class)]);
                operator_classes::check(&name, data_type, IndexMethod::Gist, source)?;
            }
            exclusion.push(exclusion_of(operator, data_type)?);
            parts.push(part);
        }
        let mut definition = IndexDefinition::of(String::new(), parts).using(IndexMethod::Gist).excluding(exclusion);
        let predicate = self.predicate.as_ref().map(|of| define(of, table, Kind::Predicate, source));
        definition.predicate = predicate.transpose()?;
        Ok(definition)
    }
}

/// What an operator between two values of a type asks.
fn exclusion_of(operator: &str, data_type: DataType) -> Result<Exclusion> {
    let overlaps = matches!(
        data_type,
        DataType::Range(_) | DataType::Geometry(GeometryKind::Box | GeometryKind::Circle) | DataType::Network(_)
    );
    match operator {
        "=" if !matches!(data_type, DataType::Geometry(_)) => Ok(Exclusion::Equal),
        "&&" if overlaps => Ok(Exclusion::Overlapping),
        _ => {
            let name = long_name(data_type);
            let hint = "An exclusion constraint has = for values, and && for ranges, boxes, circles and addresses.";
            Err(SqlError::unsupported(format!("the operator {operator} of {name} in an exclusion constraint"))
                .hint(hint))
        }
    }
}
