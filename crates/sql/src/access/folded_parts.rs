//! Parts of indexes over columns of `citext`, whose keys are equal whatever the case of their letters.
//!
//! ```text
//! CREATE UNIQUE INDEX i ON t (email)      ->  an index of folded(email), which is told as one of the column
//! WHERE email = 'A@x'                     ->  WHERE folded(email) = folded('A@x'), which goes by it
//! ```
use engine::{Column, DataType, IndexDefinition, IndexExpression, IndexPart};

use crate::error::FOLDED;
use crate::syntax::identifiers::quoted;

/// The part of an index that is asked to be of a column.
pub(crate) fn of_column(column: usize, columns: &[Column]) -> IndexPart {
    let known = &columns[column];
    if known.data_type != DataType::CITEXT {
        return IndexPart::Column(column);
    }
    let text = format!("{}({})", quoted(FOLDED), quoted(&known.name));
    IndexPart::Expression(IndexExpression { text, columns: vec![column], data_type: DataType::TEXT })
}

/// The column that a part was asked to be of, if it was asked to be of one.
pub(crate) fn column_of(part: &IndexPart) -> Option<usize> {
    match part {
        IndexPart::Column(column) => Some(*column),
        IndexPart::Expression(expression) => match &expression.columns[..] {
            [column] if expression.text.starts_with(&quoted(FOLDED)) => Some(*column),
            _ => None,
        },
    }
}

/// A definition with columns where it was asked for columns.
pub(crate) fn as_asked(definition: IndexDefinition) -> IndexDefinition {
    let plain = |part: IndexPart| column_of(&part).map_or(part, IndexPart::Column);
    IndexDefinition { parts: definition.parts.into_iter().map(plain).collect(), ..definition }
}
