//! Casts of arrays of several dimensions.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field};

/// The type of arrays that arrays of several dimensions become by a cast to arrays of other items: as many dimensions are left.
pub(crate) fn as_deep(to: &ArrowType, from: &ArrowType) -> Option<ArrowType> {
    let (ArrowType::List(item), ArrowType::List(inner)) = (to, from) else { return None };
    if !matches!(inner.data_type(), ArrowType::List(_)) || matches!(item.data_type(), ArrowType::List(_)) {
        return None;
    }
    let within = as_deep(to, inner.data_type()).unwrap_or_else(|| to.clone());
    Some(ArrowType::List(Arc::new(Field::new_list_field(within, true))))
}
