//! Type names of SQL as column types, and as the types that expressions are cast to.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, FieldRef, Schema as ArrowSchema, SchemaRef};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::type_coercion::functions::{UDFCoercionExt, fields_with_udf};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as SqlType, ExactNumberInfo, Ident, ObjectName, ObjectNamePart,
    TimezoneInfo,
};
use engine::{
    ArrayItem, Column, DataType, DomainDefinition, EnumType, GeometryKind, NetworkKind, RangeKind, SECOND_DIGITS_MAX,
    TimeKind, TypeDefinition, schema_and_name,
};

use crate::error::{Result, SqlError};
use crate::interrupt;
use crate::interrupt::made_types;
use crate::syntax::identifiers::{fold, last_part};
use crate::values::built_in::{built_in, of_extension};
use crate::values::collated::with_collation;
use crate::values::deep_arrays::as_deep;
use crate::values::interval_form::IntervalForm;
use crate::values::pg_types::{internal_name, shown_name};

/// The column type that a type's name stands for, and a notice where it means less than it says.
pub(crate) fn column_type(name: &SqlType) -> Result<(DataType, Option<&'static str>)> {
    let data_type = match name {
        SqlType::Boolean | SqlType::Bool => DataType::Boolean,
        SqlType::SmallInt(None) | SqlType::Int2(None) => DataType::SmallInt,
        SqlType::Int(None) | SqlType::Integer(None) | SqlType::Int4(None) => DataType::Integer,
        SqlType::BigInt(None) | SqlType::Int8(None) => DataType::BigInt,
        SqlType::Real | SqlType::Float4 => DataType::Real,
        SqlType::DoublePrecision | SqlType::Float8 | SqlType::Double(ExactNumberInfo::None) => DataType::Double,
        SqlType::Float(info) => float(info)?,
        SqlType::Numeric(info) | SqlType::Decimal(info) | SqlType::Dec(info) => match info {
            ExactNumberInfo::None => DataType::Numeric,
            ExactNumberInfo::Precision(precision) => decimal(*precision, 0)?,
            ExactNumberInfo::PrecisionAndScale(precision, scale) => decimal(*precision, *scale)?,
        },
        SqlType::Text => DataType::TEXT,
        SqlType::Varchar(None) | SqlType::CharacterVarying(None) | SqlType::CharVarying(None) => DataType::VARCHAR,
        SqlType::Varchar(length) | SqlType::CharacterVarying(length) | SqlType::CharVarying(length) => {
            text(length.as_ref(), None)?
        }
        SqlType::Char(length) | SqlType::Character(length) => match text(length.as_ref(), Some(1))? {
            DataType::Text { max_chars: Some(chars) } => DataType::Char { chars },
            other => other,
        },
        SqlType::Bytea | SqlType::Blob(None) => DataType::Bytea,
        SqlType::Date => DataType::Date,
        SqlType::Timestamp(digits, zone) => {
            let data_type = match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => DataType::Timestamp,
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => DataType::TimestampTz,
            };
            return Ok((with_digits(data_type, *digits), fewer_digits(*digits)));
        }
        SqlType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("name") => {
            DataType::Text { max_chars: Some(63) }
        }
        SqlType::Custom(name, modifiers) if let Some(found) = of_extension(name) => match modifiers.is_empty() {
            true => found,
            false => return Err(no_modifier(&found.to_string())),
        },
        SqlType::Uuid => DataType::Uuid,
        SqlType::JSON => DataType::Json,
        SqlType::JSONB => DataType::Jsonb,
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item)) => {
            let (item, notice) = column_type(item)?;
            // The dimensions of a type are not kept, in PostgreSQL neither.
            let data_type = ArrayItem::of(item).map_or(item, DataType::Array);
            return Ok((data_type, notice));
        }
        SqlType::Time(digits, zone) => {
            let data_type = match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => DataType::Time,
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => DataType::TimeTz,
            };
            return Ok((with_digits(data_type, *digits), fewer_digits(*digits)));
        }
        SqlType::Interval { fields, precision } => {
            return Ok((IntervalForm::column_type(*fields, *precision)?, fewer_digits(*precision)));
        }
        SqlType::GeometricType(kind) if let Some(kind) = GeometryKind::named(&kind.to_string()) => {
            DataType::Geometry(kind)
        }
        SqlType::Custom(name, modifiers) => match space_type(name) {
            Some(found) if modifiers.is_empty() => found,
            Some(found) => return Err(no_modifier(&found.to_string())),
            None => return made_type(name, modifiers),
        },
        other => return Err(SqlError::unsupported(format!("type {}", other.to_string().to_lowercase()))),
    };
    Ok((data_type, None))
}

/// What is said of a type that asks for more digits of a second than there are.
fn fewer_digits(digits: Option<u64>) -> Option<&'static str> {
    digits.is_some_and(|digits| digits > SECOND_DIGITS_MAX.into()).then_some("precision reduced to maximum allowed, 6")
}

/// The type of a column of times that says how many digits of a second it keeps.
pub(crate) fn with_digits(data_type: DataType, digits: Option<u64>) -> DataType {
    match (TimeKind::of(data_type), digits.and_then(|digits| u8::try_from(digits).ok())) {
        (Some(of), Some(digits)) => DataType::TimeDigits { of, digits: digits.min(SECOND_DIGITS_MAX) },
        _ => data_type,
    }
}

/// The name of a column type to which a parameter's value is cast; text keeps its length.
pub(crate) fn sql_type(data_type: DataType) -> SqlType {
    match data_type {
        DataType::Boolean => SqlType::Boolean,
        DataType::SmallInt => SqlType::SmallInt(None),
        DataType::Integer => SqlType::Integer(None),
        DataType::BigInt => SqlType::BigInt(None),
        DataType::Real => SqlType::Real,
        DataType::Double => SqlType::DoublePrecision,
        DataType::Decimal { precision, scale } => {
            SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(precision.into(), scale.into()))
        }
        DataType::Numeric => SqlType::Numeric(ExactNumberInfo::None),
        DataType::CITEXT | DataType::HSTORE => {
            SqlType::Custom(ObjectName::from(vec![Ident::new(data_type.to_string())]), Vec::new())
        }
        DataType::Text { .. } | DataType::Char { .. } => SqlType::Text,
        DataType::Bytea => SqlType::Bytea,
        DataType::Date => SqlType::Date,
        DataType::Timestamp => SqlType::Timestamp(None, TimezoneInfo::None),
        DataType::TimestampTz => SqlType::Timestamp(None, TimezoneInfo::Tz),
        DataType::Uuid => SqlType::Uuid,
        DataType::Json => SqlType::JSON,
        DataType::Jsonb => SqlType::JSONB,
        DataType::Array(item) => {
            SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(sql_type(item.data_type())), None))
        }
        DataType::Time => SqlType::Time(None, TimezoneInfo::None),
        DataType::TimeTz => SqlType::Time(None, TimezoneInfo::Tz),
        DataType::TimeDigits { of, digits } => match sql_type(of.whole()) {
            SqlType::Timestamp(_, zone) => SqlType::Timestamp(Some(digits.into()), zone),
            SqlType::Time(_, zone) => SqlType::Time(Some(digits.into()), zone),
            other => other,
        },
        DataType::Interval => SqlType::Interval { fields: None, precision: None },
        DataType::Enum(of) => named_by_user(of),
        DataType::Range(kind) => SqlType::Custom(ObjectName::from(vec![Ident::new(kind.name())]), Vec::new()),
        DataType::Geometry(kind) => SqlType::Custom(ObjectName::from(vec![Ident::new(kind.name())]), Vec::new()),
        DataType::Network(kind) => SqlType::Custom(ObjectName::from(vec![Ident::new(kind.name())]), Vec::new()),
    }
}

/// The name of an enum type as a statement may have it.
fn named_by_user(of: EnumType) -> SqlType {
    let name = of.name();
    let (schema, local) = schema_and_name(&name);
    let parts = [schema, local].map(|part| Ident::with_quote('"', part));
    SqlType::Custom(ObjectName::from(Vec::from(parts)), Vec::new())
}

/// The domain that a type's name means, if it means one.
pub(crate) fn domain_of(name: &SqlType) -> Option<(String, DomainDefinition)> {
    let SqlType::Custom(name, modifiers) = name else { return None };
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    let (local, schema) = (parts.last()?, parts.len().checked_sub(2).map(|at| parts[at].as_str()));
    match made_types::find(schema, local)? {
        (known, TypeDefinition::Domain(domain)) if modifiers.is_empty() => Some((known, domain)),
        _ => None,
    }
}

/// The type that a name stands for where it may be a domain's, then of its values, and the domain.
pub(crate) fn column_or_domain(name: &SqlType) -> Result<(DataType, Option<(String, DomainDefinition)>)> {
    match domain_of(name) {
        Some((known, domain)) => Ok((domain.base, Some((known, domain)))),
        None => Ok((column_type(name)?.0, None)),
    }
}

/// The type of a parameter; that of numbers of objects is the one that the catalog has here.
pub(crate) fn parameter_type(name: &SqlType) -> Result<DataType> {
    match name {
        SqlType::Custom(name, _) if last_part(name).is_some_and(|name| name == OBJECT) => Ok(DataType::BigInt),
        _ => column_or_domain(name).map(|(data_type, _)| data_type),
    }
}

/// Types of PostgreSQL that there are not here.
const NOT_HERE: [&str; 25] = [
    "money",
    "macaddr",
    "macaddr8",
    "line",
    "lseg",
    "path",
    "polygon",
    "tsvector",
    "tsquery",
    "xml",
    "oid",
    "regclass",
    "regtype",
    "regproc",
    "regprocedure",
    "regrole",
    "regnamespace",
    "pg_lsn",
    "xid",
    "cid",
    "tid",
    "record",
    "jsonpath",
    "txid_snapshot",
    "oidvector",
];

/// The range type, geometric type or type of addresses of this name.
fn space_type(name: &ObjectName) -> Option<DataType> {
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    let local = match &parts[..] {
        [local] => local,
        [schema, local] if schema == "pg_catalog" => local,
        _ => return None,
    };
    let range = RangeKind::named(local).map(DataType::Range);
    let shape = || GeometryKind::named(local).map(DataType::Geometry);
    range.or_else(shape).or_else(|| NetworkKind::named(local).map(DataType::Network))
}

fn no_modifier(name: &str) -> SqlError {
    SqlError::syntax(format!("type modifier is not allowed for type \"{name}\""))
}

/// The type that a user has made with this name.
fn made_type(name: &ObjectName, modifiers: &[String]) -> Result<(DataType, Option<&'static str>)> {
    if let Some(found) = built_in(name, modifiers) {
        return column_type(&found);
    }
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    let (schema, local) = match &parts[..] {
        [.., schema, local] => (Some(schema.as_str()), local.as_str()),
        [local] => (None, local.as_str()),
        [] => (None, ""),
    };
    match made_types::find(schema, local) {
        Some((known, _)) if !modifiers.is_empty() => Err(no_modifier(schema_and_name(&known).1)),
        Some((_, TypeDefinition::Enum(labels))) => Ok((DataType::Enum(labels.of), None)),
        Some((known, TypeDefinition::Domain(_))) => {
            Err(SqlError::unsupported(format!("domain {} here", schema_and_name(&known).1)))
        }
        None if NOT_HERE.contains(&local) => Err(SqlError::unsupported(format!("type {local}"))),
        None => Err(SqlError::new("42704", format!("type \"{}\" does not exist", parts.join(".")))),
    }
}

fn float(info: &ExactNumberInfo) -> Result<DataType> {
    match info {
        ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => Ok(DataType::Double),
        ExactNumberInfo::Precision(1..=24) => Ok(DataType::Real),
        _ => Err(SqlError::new("22023", "precision for type float must be between 1 and 53 bits")),
    }
}

fn decimal(precision: u64, scale: i64) -> Result<DataType> {
    let fits = (1..=38).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision;
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision), Ok(scale)) if fits => Ok(DataType::Decimal { precision, scale }),
        _ => Err(SqlError::new("22023", format!("numeric({precision},{scale}) is out of range"))
            .hint("precision is 1 to 38, scale 0 to precision; numeric without them holds any number")),
    }
}

fn text(length: Option<&CharacterLength>, otherwise: Option<u32>) -> Result<DataType> {
    match length {
        None => Ok(DataType::Text { max_chars: otherwise }),
        Some(CharacterLength::IntegerLength { length, unit: None }) => match u32::try_from(*length) {
            Ok(0) => Err(SqlError::new("22023", "length for type varchar must be at least 1")),
            Ok(length) if length <= 10_485_760 => Ok(DataType::Text { max_chars: Some(length) }),
            _ => Err(SqlError::new("22023", "length for type varchar cannot exceed 10485760")),
        },
        Some(other) => Err(SqlError::unsupported(format!("length {other} of a character type"))),
    }
}

/// Gives DataFusion's casts our types: microseconds, double precision for `float`, no silently ignored lengths.
#[derive(Debug)]
pub(crate) struct CastTypes;

impl TypePlanner for CastTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> DataFusionResult<Option<FieldRef>> {
        interrupt::check_plan()?;
        if let SqlType::Timestamp(Some(digits @ 0..6), _) = sql_type {
            let (data_type, _) = column_type(sql_type).map_err(|error| DataFusionError::External(Box::new(error)))?;
            let field = Field::new("", data_type.to_arrow(), true);
            return Ok(Some(Arc::new(with_type(field, format!("{DIGITS}{}", digits.min(&SECOND_DIGITS_MAX.into()))))));
        }
        if let SqlType::Time(Some(digits), _) = sql_type {
            let (data_type, _) = column_type(sql_type).map_err(|error| DataFusionError::External(Box::new(error)))?;
            let field = Field::new("", data_type.to_arrow(), true);
            return Ok(Some(Arc::new(with_type(field, format!("{DIGITS}{}", digits.min(&SECOND_DIGITS_MAX.into()))))));
        }
        let form = IntervalForm::of_type(sql_type).map_err(|error| DataFusionError::External(Box::new(error)))?;
        if let Some(form) = form.filter(|form| !form.is_whole()) {
            let field = Field::new("", DataType::Interval.to_arrow(), true);
            return Ok(Some(Arc::new(with_type(field, form.mark()))));
        }
        if is_bare_numeric(sql_type) {
            let field = Field::new("", DataType::Numeric.to_arrow(), true);
            return Ok(Some(Arc::new(with_type(field, BARE.to_owned()))));
        }
        if let Some(data_type) = without_length(sql_type) {
            let field = Field::new("", data_type.to_arrow(), true);
            return Ok(Some(Arc::new(marked(field, data_type))));
        }
        let (data_type, _) = match column_type(sql_type) {
            Ok(known) => known,
            Err(error) if error.sqlstate == "42704" || matches!(sql_type, SqlType::Array(_) | SqlType::Custom(..)) => {
                return Err(DataFusionError::External(Box::new(error)));
            }
            Err(_) => return Ok(None),
        };
        let field = Field::new("", data_type.to_arrow(), true);
        Ok(Some(Arc::new(marked(field, data_type))))
    }
}

/// What a type that is a numeric says of its digits.
fn digits_named(sql_type: &SqlType) -> Option<ExactNumberInfo> {
    match sql_type {
        SqlType::Numeric(info) | SqlType::Decimal(info) | SqlType::Dec(info) => Some(*info),
        _ => None,
    }
}

/// Whether a type is a `numeric` without precision, to which a cast does not round.
pub(crate) fn is_bare_numeric(sql_type: &SqlType) -> bool {
    digits_named(sql_type) == Some(ExactNumberInfo::None)
}

/// Whether a type is a `numeric` with a precision.
pub(crate) fn is_rounding(sql_type: &SqlType) -> bool {
    digits_named(sql_type).is_some_and(|info| info != ExactNumberInfo::None)
}

/// `varchar` and `bpchar`, which a cast does not cut.
fn without_length(sql_type: &SqlType) -> Option<DataType> {
    match sql_type {
        SqlType::Varchar(None) | SqlType::CharacterVarying(None) | SqlType::CharVarying(None) => {
            Some(DataType::VARCHAR)
        }
        SqlType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("bpchar") => {
            Some(DataType::Char { chars: 0 })
        }
        _ => None,
    }
}

/// The key under which a field's metadata tells its column type where the Arrow type does not.
pub(crate) const TYPE_KEY: &str = "lstore.type";

/// The Arrow schema of a table's rows. Columns are marked if their Arrow type says too little.
pub(crate) fn arrow_schema(schema: &engine::Schema) -> SchemaRef {
    arrow_columns(schema.columns())
}

/// The Arrow schema of some columns of a table.
pub(crate) fn arrow_columns(columns: &[Column]) -> SchemaRef {
    Arc::new(ArrowSchema::new(fields(columns)))
}

pub(crate) fn fields(columns: &[Column]) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::with_capacity(columns.len() + 1);
    for column in columns {
        let field = Field::new(&column.name, column.data_type.to_arrow(), column.nullable);
        fields.push(with_collation(marked(field, column.data_type), column.collation.as_ref()));
    }
    fields
}

/// The prefix of the number of digits that a cast leaves the seconds of a time.
const DIGITS: &str = "digits ";

/// The digits that a cast to this leaves the seconds.
pub(crate) fn digits_of_seconds(field: &Field) -> Option<u32> {
    field.metadata().get(TYPE_KEY)?.strip_prefix(DIGITS)?.parse().ok()
}

/// The fields that a cast to this leaves an interval.
pub(crate) fn fields_of_interval(field: &Field) -> Option<IntervalForm> {
    IntervalForm::of_mark(field.metadata().get(TYPE_KEY)?)
}

/// Whether a type's name says less than the column type does: fewer digits of seconds, or fields of an interval. A cast to it cuts.
pub(crate) fn cuts_times(name: &SqlType) -> bool {
    match name {
        SqlType::Timestamp(Some(0..6), _) | SqlType::Time(Some(0..6), _) => true,
        SqlType::Interval { .. } => !matches!(IntervalForm::of_type(name), Ok(Some(IntervalForm::WHOLE))),
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item)) => {
            cuts_times(item)
        }
        _ => false,
    }
}

/// What a cast to `numeric` without precision and scale is marked with.
const BARE: &str = "numeric";

/// The type that a cast to this gives: a `numeric` without precision has the decimals of an exact number that is cast to it.
pub(crate) fn cast_to(field: &Field, from: &ArrowType) -> ArrowType {
    if let Some(deep) = as_deep(field.data_type(), from) {
        return deep;
    }
    match from {
        _ if field.metadata().get(TYPE_KEY).is_none_or(|name| name != BARE) => field.data_type().clone(),
        ArrowType::Null => ArrowType::Decimal128(1, 0),
        ArrowType::Int8 | ArrowType::Int16 => ArrowType::Decimal128(5, 0),
        ArrowType::Int32 => ArrowType::Decimal128(10, 0),
        ArrowType::Int64 | ArrowType::UInt64 => ArrowType::Decimal128(20, 0),
        ArrowType::Decimal128(..) | ArrowType::Decimal256(..) => from.clone(),
        _ => field.data_type().clone(),
    }
}

/// The column type that holds a query's column; `None` for types that no column has.
pub fn type_of_field(field: &Field) -> Option<DataType> {
    named_type(field.metadata().get(TYPE_KEY).map(String::as_str)).or_else(|| DataType::from_arrow(field.data_type()))
}

/// The field of the items of an array, with what its type does not say of them.
pub fn field_of_items(field: &Field) -> Field {
    let item = match field.data_type() {
        ArrowType::List(item) | ArrowType::LargeList(item) | ArrowType::FixedSizeList(item, _) => item.as_ref().clone(),
        _ => Field::new("", ArrowType::Null, true),
    };
    match type_of_field(field) {
        Some(DataType::Array(known)) => marked(item, known.data_type()),
        _ => item,
    }
}

/// The type that a mark names.
fn named_type(name: Option<&str>) -> Option<DataType> {
    match name {
        Some(name) if let Some(item) = name.strip_suffix("[]") => {
            Some(DataType::Array(ArrayItem::of(named_type(Some(item))?)?))
        }
        Some("uuid") => Some(DataType::Uuid),
        Some("varchar") => Some(DataType::VARCHAR),
        Some("citext") => Some(DataType::CITEXT),
        Some("hstore") => Some(DataType::HSTORE),
        Some(name) if let Some(chars) = length_in(name, "char(") => Some(DataType::Char { chars }),
        Some(name) if let Some(max) = length_in(name, "varchar(") => Some(DataType::Text { max_chars: Some(max) }),
        _ => None,
    }
}

fn length_in(name: &str, start: &str) -> Option<u32> {
    name.strip_prefix(start)?.strip_suffix(')')?.parse().ok()
}

/// A field with what its Arrow type does not say of a column's type.
pub(crate) fn marked(field: Field, data_type: DataType) -> Field {
    if is_marked(data_type) { with_type(field, data_type.to_string()) } else { field }
}

/// Whether an Arrow type does not say that this is the column's type.
pub(crate) fn is_marked(data_type: DataType) -> bool {
    match data_type {
        DataType::Char { .. } | DataType::Text { max_chars: Some(_) } => true,
        DataType::Array(item) => is_marked(item.data_type()),
        other => other.travels_as_text(),
    }
}

fn with_type(field: Field, name: String) -> Field {
    field.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), name)]))
}

/// A field of a type that no table has a column of.
pub(crate) fn of_catalog(field: Field, name: &str) -> Field {
    with_type(field, name.to_owned())
}

/// The mark of numbers of objects, which are the catalog's `oid`.
pub(crate) const OBJECT: &str = "oid";
/// The mark of the catalog's names, which are texts.
pub(crate) const NAME: &str = "name";
/// The mark of the catalog's letters.
pub(crate) const LETTER: &str = "char";
/// The mark of texts that are a `varchar` of any length.
pub(crate) const VARYING: &str = "varchar";
/// The mark of what functions give that give nothing, which is an empty text.
pub(crate) const VOID: &str = "void";
/// The mark of lists of the catalog's names, which clients do not read as lists of texts.
pub(crate) const NAMES: &str = "name[]";

/// The marks of the catalog's vectors, which are written without braces and whose first item is that of 0.
pub(crate) const SHORT_VECTOR: &str = "int2vector";
pub(crate) const OBJECT_VECTOR: &str = "oidvector";

/// Whether a field is a vector of the catalog.
pub(crate) fn is_vector(field: &Field) -> bool {
    matches!(catalog_type(field), Some(SHORT_VECTOR | OBJECT_VECTOR))
}

/// The text of a vector, as clients get it, of that of its list.
pub fn vector_text(list: &str) -> String {
    list.trim_matches(['{', '}']).replace(',', " ")
}

/// The type of a query's column that no table has: vectors, `char`, `jsonpath`, `void`, and the catalog's whole numbers, which are of eight
/// bytes here.
pub fn catalog_type(field: &Field) -> Option<&str> {
    field
        .metadata()
        .get(TYPE_KEY)
        .map(String::as_str)
        .filter(|name| [SHORT_VECTOR, OBJECT_VECTOR, LETTER, "jsonpath", OBJECT, NAME, NAMES, VOID].contains(name))
}

/// Whether an Arrow type is that of an enum.
pub(crate) fn is_enum(found: &ArrowType) -> bool {
    matches!(DataType::from_arrow(found), Some(DataType::Enum(_)))
}

/// Whether an Arrow type is that of ranges, shapes, addresses or times with their zone.
pub(crate) fn is_space(found: &ArrowType) -> bool {
    let is_fixed = matches!(found, ArrowType::FixedSizeBinary(_));
    let is_own = |of: DataType| {
        matches!(of, DataType::TimeTz | DataType::Range(_) | DataType::Geometry(_) | DataType::Network(_))
    };
    is_fixed && DataType::from_arrow(found).is_some_and(is_own)
}

/// PostgreSQL's name for the type of a query's column.
pub(crate) fn type_name(arrow: &arrow_schema::DataType) -> String {
    match DataType::from_arrow(arrow) {
        Some(data_type) => shown_name(data_type),
        None => match arrow {
            arrow_schema::DataType::Interval(_) => "interval".to_owned(),
            arrow_schema::DataType::Decimal256(..) => "numeric".to_owned(),
            arrow_schema::DataType::Time32(_) | arrow_schema::DataType::Time64(_) => {
                "time without time zone".to_owned()
            }
            arrow_schema::DataType::List(item) => format!("{}[]", type_name(item.data_type())),
            arrow_schema::DataType::Struct(_) => "record".to_owned(),
            other => other.to_string().to_lowercase(),
        },
    }
}

/// PostgreSQL's name for the type of a field, without a length.
pub(crate) fn type_name_of_field(field: &Field) -> String {
    match type_of_field(field) {
        Some(known) if is_marked(known) => shown_name(known),
        _ if field.data_type().is_null() => "unknown".to_owned(),
        _ => type_name(field.data_type()),
    }
}

/// The name of a column that is nothing but a cast, which is PostgreSQL's internal name of the type.
pub(crate) fn type_name_of_sql(name: &SqlType) -> String {
    let known = column_type(name).map(|(data_type, _)| internal_name(data_type).1);
    let is_numeric = digits_named(name).is_some();
    known.unwrap_or_else(|_| if is_numeric { "numeric".to_owned() } else { name.to_string().to_lowercase() })
}

/// The types that a function of the library takes where it is called with these; an error that names it where it takes none.
pub(crate) fn taken(function: &impl UDFCoercionExt, types: &[ArrowType]) -> DataFusionResult<Vec<ArrowType>> {
    let fields: Vec<_> = types.iter().map(|found| Arc::new(Field::new("", found.clone(), true))).collect();
    let no_such = |_| {
        let named: Vec<String> = types.iter().map(type_name).collect();
        let message = format!("function {}({}) does not exist", function.name(), named.join(", "));
        DataFusionError::External(Box::new(SqlError::new("42883", message)))
    };
    let fields = fields_with_udf(&fields, function).map_err(no_such)?;
    Ok(fields.iter().map(|field| field.data_type().clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_column_types() {
        let of = |name: SqlType| column_type(&name).unwrap().0;
        assert_eq!(of(SqlType::Char(None)), DataType::Char { chars: 1 });
        assert_eq!(of(SqlType::Float(ExactNumberInfo::Precision(24))), DataType::Real);
        assert_eq!(of(SqlType::Numeric(ExactNumberInfo::Precision(9))), DataType::Decimal { precision: 9, scale: 0 });
        assert_eq!(of(SqlType::Timestamp(None, TimezoneInfo::Tz)), DataType::TimestampTz);
        let wide = SqlType::Numeric(ExactNumberInfo::Precision(39));
        assert_eq!(column_type(&wide).unwrap_err().sqlstate, "22023");
        assert_eq!(column_type(&SqlType::TsVector).unwrap_err().message, "type tsvector is not supported");
        assert_eq!(of(SqlType::JSONB), DataType::Jsonb);
    }
}
