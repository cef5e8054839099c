//! Functions that are worked out row by row. A function is a list of variants: what types it takes, what it gives, and what
//! it computes of the cells of a row. The first variant whose types the arguments can become serves; a text without a type
//! becomes anything. A variant that does not ask for NULLs gives NULL for them.
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Float64Array, Int64Array, IntervalMonthDayNanoArray,
    LargeBinaryArray, LargeStringArray, ListArray, StringArray, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::DataType;

use crate::error::SqlError;
use crate::interrupt::session_zone;
use crate::values::array_input::items;
use crate::values::assign::doubles;
use crate::values::builder::ColumnBuilder;
use crate::values::long_name;
use crate::values::numerics::is_numeric;
use crate::values::text::text_value;
use crate::values::types::of_catalog;
use crate::values::zoned::cast_in;

/// The types of arguments and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    /// An integer of any width that fits `integer`.
    Count,
    /// A float of 32 bits, which is given only.
    Real,
    Double,
    Text,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Bytes,
    /// A numeric, as its text.
    Exact,
    /// Anything, as its text.
    Any,
    /// A `json`, as its text.
    Json,
    /// A `jsonb`, as its bytes.
    Jsonb,
    /// A path of SQL/JSON, as its text.
    Path,
    /// An array of texts.
    Texts,
    /// An array of `json`.
    Jsons,
    /// An array of `jsonb`.
    Jsonbs,
}

/// What a row holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    /// Days of a date, or microseconds.
    Time(i64),
    Interval(IntervalMonthDayNano),
    Bytes(Vec<u8>),
    /// The items of an array.
    List(Vec<Option<Cell>>),
}

/// What a variant computes of a row; NULL is `None`.
pub(super) type Compute = fn(&[Option<Cell>]) -> Result<Option<Cell>, SqlError>;

/// One way to call a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    takes: &'static [Kind],
    gives: Kind,
    /// Whether it looks at NULLs itself.
    sees_null: bool,
    /// Whether more arguments of the last type may follow.
    goes_on: bool,
    compute: Compute,
    /// What a literal has to pass that is a path, also where no row is.
    check: Option<Check>,
}

/// A test of a text.
pub(super) type Check = fn(&str) -> Result<(), SqlError>;

impl Variant {
    /// NULL for any NULL.
    pub(super) const fn strict(takes: &'static [Kind], gives: Kind, compute: Compute) -> Variant {
        Variant { takes, gives, sees_null: false, goes_on: false, compute, check: None }
    }

    /// Of any number of arguments, NULLs among them.
    pub(super) const fn variadic(takes: &'static [Kind], gives: Kind, compute: Compute) -> Variant {
        Variant { takes, gives, sees_null: true, goes_on: true, compute, check: None }
    }

    /// With NULLs among the arguments.
    pub(super) const fn with_nulls(takes: &'static [Kind], gives: Kind, compute: Compute) -> Variant {
        Variant { takes, gives, sees_null: true, goes_on: false, compute, check: None }
    }

    /// With a test of literals that are paths.
    pub(super) const fn checking(self, check: Check) -> Variant {
        Variant { check: Some(check), ..self }
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        let last = self.takes.last().copied().filter(|_| self.goes_on);
        self.takes.get(at).copied().or(last)
    }

    fn fits(&self, types: &[ArrowType]) -> bool {
        let is_long_enough = types.len() >= self.takes.len() - usize::from(self.goes_on);
        is_long_enough
            && types.iter().enumerate().all(|(at, found)| self.kind(at).is_some_and(|kind| kind.accepts(found)))
    }
}

impl Kind {
    fn accepts(self, found: &ArrowType) -> bool {
        use ArrowType as T;
        if found.is_null() || (matches!(found, T::Utf8) && self != Kind::Exact) {
            return true;
        }
        match self {
            Kind::Any => true,
            Kind::Exact => found.is_decimal() || is_numeric(found),
            Kind::Boolean => matches!(found, T::Boolean),
            Kind::SmallInt => matches!(found, T::Int8 | T::Int16),
            Kind::Integer => matches!(found, T::Int8 | T::Int16 | T::Int32),
            Kind::BigInt | Kind::Count => found.is_integer(),
            Kind::Real => *found == T::Float32,
            Kind::Double => found.is_numeric() || is_numeric(found),
            Kind::Text => matches!(found, T::Utf8 | T::Utf8View),
            Kind::Date => matches!(found, T::Date32 | T::Date64),
            Kind::Time => matches!(found, T::Time32(_) | T::Time64(_)),
            Kind::Timestamp => matches!(found, T::Date32 | T::Date64 | T::Timestamp(_, None)),
            Kind::TimestampTz => matches!(found, T::Date32 | T::Date64 | T::Timestamp(..)),
            Kind::Interval => matches!(found, T::Interval(_) | T::Duration(_)),
            Kind::Bytes => found.is_binary() && !matches!(found, T::LargeBinary | T::Binary),
            Kind::Json => *found == T::LargeUtf8,
            Kind::Jsonb => *found == T::LargeBinary,
            // Only what has no type is one, and what was made one by a cast, which has none either.
            Kind::Path => false,
            Kind::Texts | Kind::Jsons | Kind::Jsonbs => {
                let item = self.item();
                matches!(found, T::List(of) if item.is_some_and(|item| item.accepts(of.data_type())))
            }
        }
    }

    fn arrow(self) -> ArrowType {
        match self {
            Kind::Boolean => ArrowType::Boolean,
            Kind::SmallInt => ArrowType::Int16,
            Kind::Integer | Kind::Count => ArrowType::Int32,
            Kind::BigInt => ArrowType::Int64,
            Kind::Real => ArrowType::Float32,
            Kind::Double => ArrowType::Float64,
            Kind::Text | Kind::Any | Kind::Exact => ArrowType::Utf8View,
            Kind::Date => ArrowType::Date32,
            Kind::Time => ArrowType::Time64(TimeUnit::Microsecond),
            Kind::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Kind::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Interval => ArrowType::Interval(IntervalUnit::MonthDayNano),
            Kind::Bytes => ArrowType::BinaryView,
            Kind::Json => ArrowType::LargeUtf8,
            Kind::Jsonb => ArrowType::LargeBinary,
            Kind::Path => ArrowType::Utf8,
            Kind::Texts | Kind::Jsons | Kind::Jsonbs => {
                let item = self.item().map_or(ArrowType::Null, Kind::arrow);
                ArrowType::List(Arc::new(Field::new_list_field(item, true)))
            }
        }
    }

    /// The type of an array's items.
    fn item(self) -> Option<Kind> {
        Some(match self {
            Kind::Texts => Kind::Text,
            Kind::Jsons => Kind::Json,
            Kind::Jsonbs => Kind::Jsonb,
            _ => return None,
        })
    }

    /// The column type whose input syntax reads a text as such a value.
    fn column_type(self) -> Option<DataType> {
        Some(match self {
            Kind::Boolean => DataType::Boolean,
            Kind::SmallInt => DataType::SmallInt,
            Kind::Integer | Kind::Count => DataType::Integer,
            Kind::BigInt => DataType::BigInt,
            Kind::Real => DataType::Real,
            Kind::Double => DataType::Double,
            Kind::Date => DataType::Date,
            Kind::Timestamp => DataType::Timestamp,
            Kind::TimestampTz => DataType::TimestampTz,
            Kind::Bytes => DataType::Bytea,
            Kind::Json => DataType::Json,
            Kind::Jsonb => DataType::Jsonb,
            _ => return None,
        })
    }

    /// An argument as an array of this type.
    fn read(self, array: &ArrayRef) -> Result<ArrayRef> {
        if matches!(self, Kind::Any | Kind::Exact) {
            return Ok(array.clone());
        }
        if self == Kind::Double && is_numeric(array.data_type()) {
            return doubles(array).map_err(|error| DataFusionError::External(Box::new(error)));
        }
        let is_text = matches!(array.data_type(), ArrowType::Utf8 | ArrowType::Utf8View);
        if let (Kind::Texts, true) = (self, is_text) {
            return texts_of(array);
        }
        let Some(data_type) = self.column_type().filter(|_| is_text) else {
            let read = cast_in(session_zone::current(), array, &self.arrow())?;
            // A number that does not fit becomes NULL.
            if self == Kind::Count && read.null_count() > array.logical_null_count() {
                return Err(DataFusionError::External(Box::new(SqlError::new("22003", "integer out of range"))));
            }
            return Ok(read);
        };
        let texts = cast(array, &ArrowType::Utf8View)?;
        let mut builder = ColumnBuilder::new(data_type);
        for text in texts.as_string_view() {
            builder.append_option(text).map_err(|misfit| {
                let error = misfit.error("", data_type, text.unwrap_or_default(), &long_name(DataType::TEXT));
                DataFusionError::External(Box::new(SqlError { detail: None, ..error }))
            })?;
        }
        Ok(builder.finish())
    }

    fn cell(self, array: &ArrayRef, row: usize) -> Option<Cell> {
        if array.is_null(row) || array.data_type().is_null() {
            return None;
        }
        Some(match self {
            Kind::Boolean => Cell::Boolean(array.as_boolean().value(row)),
            Kind::SmallInt | Kind::Integer | Kind::BigInt | Kind::Count => {
                let wide = cast(&array.slice(row, 1), &ArrowType::Int64).ok()?;
                Cell::Integer(wide.as_primitive::<Int64Type>().value(0))
            }
            Kind::Real => Cell::Double(array.as_primitive::<Float32Type>().value(row).into()),
            Kind::Double => Cell::Double(array.as_primitive::<Float64Type>().value(row)),
            Kind::Text => Cell::Text(array.as_string_view().value(row).to_owned()),
            Kind::Date => Cell::Time(array.as_primitive::<Date32Type>().value(row).into()),
            Kind::Time => Cell::Time(array.as_primitive::<Time64MicrosecondType>().value(row)),
            Kind::Timestamp | Kind::TimestampTz => {
                Cell::Time(array.as_primitive::<TimestampMicrosecondType>().value(row))
            }
            Kind::Interval => Cell::Interval(array.as_primitive::<IntervalMonthDayNanoType>().value(row)),
            Kind::Bytes => Cell::Bytes(array.as_binary_view().value(row).to_vec()),
            Kind::Any | Kind::Exact => Cell::Text(text_value(array, row)?),
            Kind::Json => Cell::Text(array.as_string::<i64>().value(row).to_owned()),
            Kind::Jsonb => Cell::Bytes(array.as_binary::<i64>().value(row).to_vec()),
            Kind::Path => Cell::Text(array.as_string::<i32>().value(row).to_owned()),
            Kind::Texts | Kind::Jsons | Kind::Jsonbs => {
                let (items, item) = (array.as_list::<i32>().value(row), self.item()?);
                Cell::List((0..items.len()).map(|at| item.cell(&items, at)).collect())
            }
        })
    }

    /// The results as an array.
    fn build(self, cells: Vec<Option<Cell>>) -> Result<ArrayRef> {
        let integer = |cell: Option<Cell>| match cell {
            Some(Cell::Integer(value)) => Some(value),
            _ => None,
        };
        let time = |cell: Option<Cell>| match cell {
            Some(Cell::Time(value)) => Some(value),
            _ => None,
        };
        let cells = cells.into_iter();
        Ok(match self {
            Kind::Boolean => {
                let value = |cell| if let Some(Cell::Boolean(value)) = cell { Some(value) } else { None };
                Arc::new(cells.map(value).collect::<BooleanArray>())
            }
            Kind::SmallInt | Kind::Integer | Kind::BigInt | Kind::Count => {
                cast(&cells.map(integer).collect::<Int64Array>(), &self.arrow())?
            }
            Kind::Real | Kind::Double => {
                let value = |cell| if let Some(Cell::Double(value)) = cell { Some(value) } else { None };
                cast(&cells.map(value).collect::<Float64Array>(), &self.arrow())?
            }
            Kind::Text | Kind::Any | Kind::Exact => {
                let value = |cell| if let Some(Cell::Text(value)) = cell { Some(value) } else { None };
                Arc::new(cells.map(value).collect::<StringViewArray>())
            }
            Kind::Date => {
                let days = |cell| time(cell).and_then(|days| i32::try_from(days).ok());
                Arc::new(cells.map(days).collect::<Date32Array>())
            }
            Kind::Time => Arc::new(cells.map(time).collect::<Time64MicrosecondArray>()),
            Kind::Timestamp => Arc::new(cells.map(time).collect::<TimestampMicrosecondArray>()),
            Kind::TimestampTz => Arc::new(cells.map(time).collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
            Kind::Interval => {
                let value = |cell| if let Some(Cell::Interval(value)) = cell { Some(value) } else { None };
                Arc::new(cells.map(value).collect::<IntervalMonthDayNanoArray>())
            }
            Kind::Bytes => {
                let value = |cell| if let Some(Cell::Bytes(value)) = cell { Some(value) } else { None };
                Arc::new(cells.map(value).collect::<BinaryViewArray>())
            }
            Kind::Json => {
                let value = |cell| if let Some(Cell::Text(value)) = cell { Some(value) } else { None };
                Arc::new(cells.map(value).collect::<LargeStringArray>())
            }
            Kind::Path => {
                let value = |cell| if let Some(Cell::Text(value)) = cell { Some(value) } else { None };
                Arc::new(cells.map(value).collect::<StringArray>())
            }
            Kind::Jsonb => {
                let value = |cell| if let Some(Cell::Bytes(value)) = cell { Some(value) } else { None };
                Arc::new(cells.map(value).collect::<LargeBinaryArray>())
            }
            Kind::Texts | Kind::Jsons | Kind::Jsonbs => self.build_lists(cells)?,
        })
    }
}

impl Kind {
    /// Arrays of items of this kind's items.
    fn build_lists(self, cells: impl Iterator<Item = Option<Cell>>) -> Result<ArrayRef> {
        let (mut items, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
        for cell in cells {
            valid.push(cell.is_some());
            let list = if let Some(Cell::List(list)) = cell { list } else { Vec::new() };
            lengths.push(list.len());
            items.extend(list);
        }
        let item = self.item().unwrap_or(Kind::Text);
        let field = Arc::new(Field::new_list_field(item.arrow(), true));
        let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
        Ok(Arc::new(ListArray::try_new(field, offsets, item.build(items)?, Some(nulls))?))
    }
}

/// Arrays of texts, read from their texts.
fn texts_of(array: &ArrayRef) -> Result<ArrayRef> {
    let texts = cast(array, &ArrowType::Utf8View)?;
    let mut cells = Vec::with_capacity(texts.len());
    for text in texts.as_string_view() {
        let list = text.map(|text| {
            let malformed = || SqlError::new("22P02", format!("malformed array literal: \"{text}\""));
            items(text).ok_or_else(|| DataFusionError::External(Box::new(malformed())))
        });
        let cell =
            |items: Vec<Option<String>>| Cell::List(items.into_iter().map(|item| item.map(Cell::Text)).collect());
        cells.push(list.transpose()?.map(cell));
    }
    Kind::Texts.build(cells)
}

/// A function of SQL; its name tells it from others.
#[derive(Debug)]
pub(super) struct RowWise {
    name: &'static str,
    variants: &'static [Variant],
    signature: Signature,
}

impl PartialEq for RowWise {
    fn eq(&self, other: &RowWise) -> bool {
        self.name == other.name
    }
}

impl Eq for RowWise {}

impl Hash for RowWise {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The function of this name.
pub(super) fn function(name: &'static str, variants: &'static [Variant]) -> ScalarUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    let takes_none = variants.iter().any(|variant| variant.takes.is_empty() || variant.goes_on);
    let signature = match takes_none {
        true => Signature::one_of(
            vec![datafusion::logical_expr::TypeSignature::Nullary, signature.type_signature],
            Volatility::Immutable,
        ),
        false => signature,
    };
    ScalarUDF::from(RowWise { name, variants, signature })
}

impl RowWise {
    fn variant(&self, types: &[ArrowType]) -> Result<&Variant> {
        let unknown = || DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name));
        self.variants.iter().find(|variant| variant.fits(types)).ok_or_else(unknown)
    }
}

impl ScalarUDFImpl for RowWise {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.variant(types)?.gives.arrow())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<ArrowType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let variant = self.variant(&types)?;
        for (at, literal) in args.scalar_arguments.iter().enumerate() {
            if variant.kind(at) == Some(Kind::Path)
                && let (Some(check), Some(text)) =
                    (variant.check, literal.and_then(|literal| literal.try_as_str().flatten()))
            {
                check(text).map_err(|error| DataFusionError::External(Box::new(error)))?;
            }
        }
        let field = Field::new(self.name, variant.gives.arrow(), true);
        let is_path = variant.gives == Kind::Path;
        Ok(Arc::new(if is_path { of_catalog(field, "jsonpath") } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let types: Vec<ArrowType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let variant = self.variant(&types)?;
        let kinds: Vec<Kind> = (0..types.len()).filter_map(|at| variant.kind(at)).collect();
        let mut arrays = Vec::with_capacity(kinds.len());
        for (arg, kind) in args.args.into_iter().zip(&kinds) {
            // What is one for all rows is read once.
            let is_one = matches!(arg, ColumnarValue::Scalar(_));
            arrays.push((kind.read(&arg.into_array(if is_one { 1 } else { rows })?)?, is_one));
        }
        let mut results = Vec::with_capacity(rows);
        for row in 0..rows {
            let cells: Vec<Option<Cell>> = kinds
                .iter()
                .zip(&arrays)
                .map(|(kind, (array, is_one))| kind.cell(array, if *is_one { 0 } else { row }))
                .collect();
            results.push(match !variant.sees_null && cells.contains(&None) {
                true => None,
                false => {
                    let computed = (variant.compute)(&cells);
                    computed.map_err(|error| DataFusionError::External(Box::new(error)))?
                }
            });
        }
        let computed = variant.gives.build(results)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

/// The text of a cell; empty if it is none.
pub(super) fn text(cell: Option<&Option<Cell>>) -> &str {
    match cell {
        Some(Some(Cell::Text(text))) => text,
        _ => "",
    }
}

/// The items of a cell that is an array.
pub(super) fn list(cell: Option<&Option<Cell>>) -> &[Option<Cell>] {
    match cell {
        Some(Some(Cell::List(items))) => items,
        _ => &[],
    }
}

/// The bytes of a cell; none if it has none.
pub(super) fn octets(cell: Option<&Option<Cell>>) -> &[u8] {
    match cell {
        Some(Some(Cell::Bytes(bytes))) => bytes,
        _ => &[],
    }
}

/// The whole number of a cell, or the microseconds or days of a time.
pub(super) fn whole(cell: Option<&Option<Cell>>) -> i64 {
    match cell {
        Some(Some(Cell::Integer(value) | Cell::Time(value))) => *value,
        _ => 0,
    }
}

/// The float of a cell.
pub(super) fn double(cell: Option<&Option<Cell>>) -> f64 {
    match cell {
        Some(Some(Cell::Double(value))) => *value,
        _ => 0.0,
    }
}

/// The interval of a cell.
pub(super) fn interval(cell: Option<&Option<Cell>>) -> IntervalMonthDayNano {
    match cell {
        Some(Some(Cell::Interval(value))) => *value,
        _ => IntervalMonthDayNano::new(0, 0, 0),
    }
}
