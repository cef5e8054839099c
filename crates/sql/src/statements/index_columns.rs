//! The indexes of a table that another one takes the place of: made again of the columns that are left.
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, VisitorMut};
use engine::{Column, DataType, Index, IndexDefinition, IndexExpression, IndexPart, Table, Transaction};

use std::ops::ControlFlow;

use crate::access::folded_parts;
use crate::access::index_expressions::text::parsed;
use crate::error::Result;
use crate::planning::index_compile::Kind;
use crate::planning::index_define::define;
use crate::statements::{index_parts, operator_classes, told_methods};
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;

/// Makes the indexes of the old table again for the new one; those that need a column which is gone go with it.
pub(crate) fn rebuild(transaction: &mut Transaction, indexes: &[Index], moved: &Moved<'_>) -> Result<()> {
    for index in indexes {
        if let Some(definition) = moved.definition(index.definition())? {
            transaction.create_index(moved.new.name(), definition)?;
        }
    }
    Ok(())
}

/// What became of the columns.
pub(crate) struct Moved<'a> {
    pub(crate) old: &'a [Column],
    pub(crate) new: &'a Table,
    /// of the columns that are kept, in the old table and the new
    pub(crate) places: &'a [(usize, usize)],
}

impl Moved<'_> {
    /// Where a column is now, if it is kept.
    pub(crate) fn place(&self, column: usize) -> Option<usize> {
        self.places.iter().find(|(from, _)| *from == column).map(|(_, to)| *to)
    }

    fn definition(&self, before: &IndexDefinition) -> Result<Option<IndexDefinition>> {
        let mut parts = Vec::with_capacity(before.parts.len());
        for part in &before.parts {
            let part = match part {
                part if let Some(column) = folded_parts::column_of(part).filter(|_| before.classes.is_empty()) => {
                    self.place(column).map(|column| folded_parts::of_column(column, self.new.schema().columns()))
                }
                IndexPart::Column(column) => self.place(*column).map(IndexPart::Column),
                IndexPart::Expression(expression) => {
                    self.expression(expression, Kind::Expression)?.map(IndexPart::Expression)
                }
            };
            let Some(part) = part else { return Ok(None) };
            parts.push(part);
        }
        self.check_classes(before, &parts)?;
        let predicate = match &before.predicate {
            None => None,
            Some(predicate) => match self.expression(predicate, Kind::Predicate)? {
                None => return Ok(None),
                moved => moved,
            },
        };
        let included = before.included.iter().map(|column| self.place(*column)).collect::<Option<_>>();
        let method = match before.told {
            Some(told) if before.exclusion.is_empty() => {
                let types: Vec<DataType> = parts.iter().map(|part| index_parts::type_of(part, self.new)).collect();
                types.iter().try_for_each(|of| operator_classes::check_default(*of, told))?;
                told_methods::keeping(told, &types)?
            }
            _ => before.method,
        };
        Ok(included.map(|included| IndexDefinition { parts, predicate, included, method, ..before.clone() }))
    }

    /// Looks at the operator classes that were named where the parts have other types.
    fn check_classes(&self, before: &IndexDefinition, parts: &[IndexPart]) -> Result<()> {
        for (at, part) in parts.iter().enumerate() {
            if let Some(class) = before.named_class(at) {
                let class = ObjectName::from(vec![Ident::new(class)]);
                let of = index_parts::type_of(part, self.new);
                operator_classes::check(&class, of, before.told_method(), &Source::new(""))?;
            }
        }
        Ok(())
    }

    /// The text of a CHECK constraint over the new columns, and these; none where one of them is gone.
    pub(crate) fn condition(&self, text: &str, columns: &[usize]) -> Result<Option<(String, Vec<usize>)>> {
        let (text, columns) = (text.to_owned(), columns.to_vec());
        let before = IndexExpression { text, columns, data_type: DataType::Boolean };
        let moved = self.expression(&before, Kind::Check)?;
        Ok(moved.map(|moved| (moved.text, moved.columns)))
    }

    /// An expression of the new columns; none where one of its columns is gone.
    fn expression(&self, before: &IndexExpression, kind: Kind) -> Result<Option<IndexExpression>> {
        if before.columns.iter().any(|column| self.place(*column).is_none()) {
            return Ok(None);
        }
        let mut expr = parsed(&before.text)?;
        while let Expr::Nested(inner) = expr {
            expr = *inner;
        }
        let _ = expr.walk_mut(&mut Renamed(self));
        define(&expr, self.new, kind, &Source::new(&before.text)).map(Some)
    }
}

/// Gives columns their new names.
struct Renamed<'a>(&'a Moved<'a>);

impl VisitorMut for Renamed<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Renamed(moved) = self;
        if let Expr::Identifier(ident) = expr
            && let Some(from) = moved.old.iter().position(|column| column.name == fold(ident))
            && let Some(to) = moved.place(from)
        {
            *ident = Ident::with_quote('"', &moved.new.schema().columns()[to].name);
        }
        ControlFlow::Continue(())
    }
}
