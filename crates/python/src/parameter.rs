//! Parameters: Python's values, read once while the interpreter is held, and made values of the types that the statement wants later,
//! when it is not.
//!
//! A parameter takes the type that the statement gives it by where it stands. Where the value does not fit that, or the place says
//! nothing, the parameter gets the type that the Python value has by itself: `int` is `integer`, or `bigint` where it is larger,
//! `float` is `double precision`, and so on. Texts have no type of their own, as PostgreSQL's literals.
use engine::{DataType, Decimal, Interval, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyInt, PyList,
    PyMemoryView, PyString, PyTime, PyTimeAccess, PyTuple, PyTzInfoAccess,
};
use sql::{SqlError, read_value};

/// A value of Python's, without the interpreter.
#[derive(Clone, Debug)]
pub(crate) enum Parameter {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    /// Digits: of a `Decimal`, or of an `int` of more than 64 bits.
    Numeric(String),
    Text(String),
    Bytes(Vec<u8>),
    Date(i32),
    Timestamp(i64),
    TimestampTz(i64),
    Uuid([u8; 16]),
    /// Microseconds of a day.
    Time(i64),
    /// Days, and microseconds beside them.
    Interval(i32, i64),
    /// What travels as its text: arrays.
    Written(String),
}

pub(crate) const DAY_MICROS: i64 = 86_400_000_000;

fn micros_of_day(time: &impl PyTimeAccess) -> i64 {
    let seconds = i64::from(time.get_hour()) * 3600 + i64::from(time.get_minute()) * 60 + i64::from(time.get_second());
    seconds * 1_000_000 + i64::from(time.get_microsecond())
}

/// Days since 1970-01-01 of the calendar, which goes on before its beginning (Howard Hinnant's `days_from_civil`).
fn days_of(date: &impl PyDateAccess) -> i32 {
    let (year, month, day) = (date.get_year(), i32::from(date.get_month()), i32::from(date.get_day()));
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn micros_of_delta(delta: &Bound<'_, PyDelta>) -> i64 {
    i64::from(delta.get_days()) * DAY_MICROS
        + i64::from(delta.get_seconds()) * 1_000_000
        + i64::from(delta.get_microseconds())
}

fn interval(delta: &Bound<'_, PyDelta>) -> Parameter {
    let micros = i64::from(delta.get_seconds()) * 1_000_000 + i64::from(delta.get_microseconds());
    Parameter::Interval(delta.get_days(), micros)
}

fn datetime(value: &Bound<'_, PyDateTime>) -> PyResult<Parameter> {
    let micros = i64::from(days_of(value)) * DAY_MICROS + micros_of_day(value);
    if value.get_tzinfo().is_none() {
        return Ok(Parameter::Timestamp(micros));
    }
    let offset = value.call_method0("utcoffset")?;
    match offset.cast::<PyDelta>() {
        Ok(offset) => Ok(Parameter::TimestampTz(micros - micros_of_delta(offset))),
        Err(_) => Ok(Parameter::Timestamp(micros)),
    }
}

/// The items of a list in PostgreSQL's syntax of arrays.
fn array_text<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<String> {
    let mut text = String::from("{");
    for (at, item) in items.enumerate() {
        if at > 0 {
            text.push(',');
        }
        match Parameter::of(&item)? {
            Parameter::Null => text.push_str("NULL"),
            Parameter::Written(nested) if nested.starts_with('{') => text.push_str(&nested),
            other => {
                text.push('"');
                text.push_str(&other.natural_text().replace('\\', "\\\\").replace('"', "\\\""));
                text.push('"');
            }
        }
    }
    text.push('}');
    Ok(text)
}

impl Parameter {
    /// # Errors
    /// `TypeError` for objects that stand for no value.
    pub(crate) fn of(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
        if value.is_none() {
            return Ok(Parameter::Null);
        }
        if let Ok(value) = value.cast::<PyBool>() {
            return Ok(Parameter::Boolean(value.is_true()));
        }
        if let Ok(value) = value.cast::<PyInt>() {
            return Ok(match value.extract::<i64>() {
                Ok(number) => Parameter::Integer(number),
                Err(_) => Parameter::Numeric(value.str()?.to_str()?.to_owned()),
            });
        }
        if let Ok(value) = value.cast::<PyString>() {
            return Ok(Parameter::Text(value.to_str()?.to_owned()));
        }
        if let Ok(value) = value.cast::<PyFloat>() {
            return Ok(Parameter::Double(value.value()));
        }
        if let Ok(value) = value.cast::<PyDateTime>() {
            return datetime(value);
        }
        if let Ok(value) = value.cast::<PyDate>() {
            return Ok(Parameter::Date(days_of(value)));
        }
        if let Ok(value) = value.cast::<PyTime>() {
            return Ok(Parameter::Time(micros_of_day(value)));
        }
        if let Ok(value) = value.cast::<PyDelta>() {
            return Ok(interval(value));
        }
        if let Ok(value) = value.cast::<PyBytes>() {
            return Ok(Parameter::Bytes(value.as_bytes().to_vec()));
        }
        Parameter::of_other(value)
    }

    /// What is asked about less often.
    fn of_other(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
        if let Ok(items) = value.cast::<PyList>() {
            return array_text(items.iter()).map(Parameter::Written);
        }
        if let Ok(items) = value.cast::<PyTuple>() {
            return array_text(items.iter()).map(Parameter::Written);
        }
        if value.cast::<PyByteArray>().is_ok() || value.cast::<PyMemoryView>().is_ok() {
            let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
            return Ok(Parameter::Bytes(bytes.cast::<PyBytes>()?.as_bytes().to_vec()));
        }
        let kind = value.get_type();
        let name = kind.fully_qualified_name()?;
        match name.to_str()? {
            "decimal.Decimal" => Ok(Parameter::Numeric(value.str()?.to_str()?.to_owned())),
            "uuid.UUID" => Ok(Parameter::Uuid(value.getattr("bytes")?.extract()?)),
            // NumPy's scalars, and what else knows to become a number of Python's.
            _ if value.hasattr("item")? && value.hasattr("dtype")? => Parameter::of(&value.call_method0("item")?),
            name => {
                Err(PyTypeError::new_err(format!("a parameter of type {name} has no type in SQL; convert it first")))
            }
        }
    }

    /// The type that the value has by itself; `None` of texts and NULL.
    pub(crate) fn natural(&self) -> Option<DataType> {
        Some(match self {
            Parameter::Null | Parameter::Text(_) | Parameter::Written(_) => return None,
            Parameter::Boolean(_) => DataType::Boolean,
            Parameter::Integer(number) if i32::try_from(*number).is_ok() => DataType::Integer,
            Parameter::Integer(_) => DataType::BigInt,
            Parameter::Double(_) => DataType::Double,
            Parameter::Numeric(_) => DataType::Decimal { precision: 38, scale: 0 },
            Parameter::Bytes(_) => DataType::Bytea,
            Parameter::Date(_) => DataType::Date,
            Parameter::Timestamp(_) => DataType::Timestamp,
            Parameter::TimestampTz(_) => DataType::TimestampTz,
            Parameter::Uuid(_) => DataType::Uuid,
            Parameter::Time(_) => DataType::Time,
            Parameter::Interval(..) => DataType::Interval,
        })
    }

    /// The value's text, as PostgreSQL writes it.
    fn natural_text(&self) -> String {
        match self {
            Parameter::Text(text) | Parameter::Written(text) | Parameter::Numeric(text) => text.clone(),
            Parameter::Integer(number) => number.to_string(),
            other => {
                other.natural().and_then(|own| other.fitted(own)).map(|value| value.to_string()).unwrap_or_default()
            }
        }
    }

    /// The value in exactly this type, if it is one; texts are not looked at.
    fn fitted(&self, wanted: DataType) -> Option<Value> {
        Some(match (self, wanted) {
            (Parameter::Null, _) => Value::Null,
            (Parameter::Boolean(value), DataType::Boolean) => Value::Boolean(*value),
            (Parameter::Integer(value), DataType::SmallInt) => Value::SmallInt(i16::try_from(*value).ok()?),
            (Parameter::Integer(value), DataType::Integer) => Value::Integer(i32::try_from(*value).ok()?),
            (Parameter::Integer(value), DataType::BigInt) => Value::BigInt(*value),
            (Parameter::Integer(value), DataType::Decimal { .. } | DataType::Numeric) => {
                Value::Decimal(Decimal { unscaled: i128::from(*value), scale: 0 })
            }
            (Parameter::Integer(value), DataType::Double) if value.unsigned_abs() < 1 << 53 => {
                Value::Double(*value as f64)
            }
            (Parameter::Double(value), DataType::Double) => Value::Double(*value),
            (Parameter::Double(value), DataType::Real) => Value::Real(*value as f32),
            (Parameter::Bytes(value), DataType::Bytea) => Value::Bytea(value.clone()),
            (Parameter::Date(days), DataType::Date) => Value::Date(*days),
            (Parameter::Date(days), DataType::Timestamp) => Value::Timestamp(i64::from(*days) * DAY_MICROS),
            (Parameter::Date(days), DataType::TimestampTz) => Value::TimestampTz(i64::from(*days) * DAY_MICROS),
            (Parameter::Timestamp(micros), DataType::Timestamp) => Value::Timestamp(*micros),
            // One without a zone is of UTC, whatever the zone of the session.
            (Parameter::Timestamp(micros) | Parameter::TimestampTz(micros), DataType::TimestampTz) => {
                Value::TimestampTz(*micros)
            }
            (Parameter::Uuid(bytes), DataType::Uuid) => Value::Uuid(*bytes),
            (Parameter::Time(micros), DataType::Time) => Value::Time(*micros),
            (Parameter::Interval(days, micros), DataType::Interval) => {
                Value::Interval(Interval { months: 0, days: *days, micros: *micros })
            }
            _ => return None,
        })
    }

    /// The value for a parameter of this type; `None` if the parameter is to get the value's own type instead.
    ///
    /// # Errors
    /// The error of a text that is none of the type.
    pub(crate) fn value(&self, wanted: DataType, is_array: bool) -> Result<Option<Value>, SqlError> {
        match self {
            Parameter::Text(text) | Parameter::Written(text)
                if is_array || matches!(wanted, DataType::Text { max_chars: None }) =>
            {
                Ok(Some(Value::Text(text.clone())))
            }
            Parameter::Text(text) | Parameter::Written(text) => read_value(text, wanted).map(Some),
            Parameter::Numeric(digits) if matches!(wanted, DataType::Decimal { .. } | DataType::Numeric) => {
                read_value(digits, wanted).map(Some)
            }
            Parameter::Numeric(digits) if matches!(wanted, DataType::Double) => read_value(digits, wanted).map(Some),
            other => Ok(other.fitted(wanted)),
        }
    }
}
