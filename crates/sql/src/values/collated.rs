//! The collation of a column beside its Arrow type, which does not say it.
use arrow_schema::Field;
use engine::{Collation, DataType};

/// The name of the database's own collation.
pub(crate) const DEFAULT: &str = "default";

/// Names of the order by bytes, which the database's own collation, `default`, has as well.
pub(crate) const BYTE_ORDERS: [&str; 3] = ["C", "POSIX", "ucs_basic"];

/// The languages that CLDR has collations for, or orders as the root does. `und` is the root itself.
pub(crate) const LANGUAGES: &str = " \
    und root af am ar as az be bg bn bo bs ca chr cs cy da de dsb ee el en eo es et fa fi fil fo fr fy ga gl gu ha haw he hi hr hsb hu \
    hy id ig is it ja ka kk kl km kn ko kok ku ky lb lkt ln lo lt lv mk ml mn mr ms mt my nb ne nl nn no om or pa pl ps pt ro ru sa se \
    si sk sl smn sq sr sv sw ta te th tk to tr ug uk ur uz vi wae wo xh yi yo zh zu ";

/// The key under which a field's metadata tells the collation, as its name and, behind a byte 0, the language if it is of one.
const COLLATION_KEY: &str = "lstore.collation";

/// A field with the collation of its column.
pub(crate) fn with_collation(field: Field, collation: Option<&Collation>) -> Field {
    let Some(Collation { name, locale }) = collation else { return field };
    let mut metadata = field.metadata().clone();
    metadata.insert(COLLATION_KEY.to_owned(), format!("{name}\0{}", locale.as_deref().unwrap_or_default()));
    field.with_metadata(metadata)
}

/// The collation of a field, if it is not the default.
pub(crate) fn collation_of(field: &Field) -> Option<Collation> {
    let (name, locale) = field.metadata().get(COLLATION_KEY)?.split_once('\0')?;
    let locale = Some(locale).filter(|locale| !locale.is_empty()).map(str::to_owned);
    Some(Collation { name: name.to_owned(), locale })
}

/// The key under which it tells the names of two collations of which neither holds.
const CONFLICT_KEY: &str = "lstore.collations";

/// A field of values that have two collations.
pub(crate) fn with_conflict(field: Field, [one, other]: [&Collation; 2]) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(CONFLICT_KEY.to_owned(), format!("{}\0{}", one.name, other.name));
    field.with_metadata(metadata)
}

/// The collations of a field that has two.
pub(crate) fn conflict_of(field: &Field) -> Option<[Collation; 2]> {
    let (one, other) = field.metadata().get(CONFLICT_KEY)?.split_once('\0')?;
    Some([one, other].map(|name| Collation { name: name.to_owned(), locale: None }))
}

/// Whether values of a type have collations: texts, and arrays of them.
pub(crate) fn is_collatable(data_type: DataType) -> bool {
    match data_type {
        DataType::HSTORE => false,
        DataType::Text { .. } | DataType::Char { .. } => true,
        DataType::Array(item) => is_collatable(item.data_type()),
        _ => false,
    }
}
