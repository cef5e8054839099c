//! Views on the device beside the CPU: `lstore_devices`, a row if there is one, `lstore_device_residents`, the columns of tables and
//! the indexes that stay there, and `lstore_device_decisions`, which sections of plans went there or not, why, and how it went.
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;

use super::cells::{numbers, optional_texts, texts};
use crate::access::computed;
use crate::coprocessor::Offload;
use crate::coprocessor::decisions::Noted;
use crate::error::{Result, SqlError};
use crate::state::view::View;

const DEVICES: &str = "lstore_devices";
const RESIDENTS: &str = "lstore_device_residents";
const DECISIONS: &str = "lstore_device_decisions";

/// Whether a view has this name.
pub(super) fn is_view(name: &str) -> bool {
    [DEVICES, RESIDENTS, DECISIONS].contains(&name)
}

/// The view of this name.
pub(super) fn view(name: &str, view: &View) -> datafusion::error::Result<Option<Arc<dyn TableProvider>>> {
    let offload = view.offload.clone();
    match name {
        RESIDENTS => computed::table(RESIDENTS, residents_schema(), move || residents(offload.as_ref())).map(Some),
        DEVICES => computed::table(DEVICES, devices_schema(), move || devices(offload.as_ref())).map(Some),
        DECISIONS => computed::table(DECISIONS, decisions_schema(), move || decisions(offload.as_ref())).map(Some),
        _ => Ok(None),
    }
}

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8View, nullable)
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

fn devices_schema() -> SchemaRef {
    let emulated = Field::new("emulated", DataType::Boolean, false);
    let used = ["memory_bytes", "used_bytes", "resident_bytes", "calls", "calls_refused"].map(number);
    let fields = [text("name", false), emulated].into_iter().chain(used).chain([text("lost", true)]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn devices(offload: Option<&Offload>) -> Result<RecordBatch> {
    let all = || offload.into_iter();
    let columns: Vec<ArrayRef> = vec![
        texts(all().map(|device| device.facts().name.clone())),
        Arc::new(all().map(|device| Some(device.facts().is_emulated)).collect::<BooleanArray>()),
        numbers(all().map(|device| Some(device.facts().memory_bytes))),
        numbers(all().map(|device| Some(device.used_bytes()))),
        numbers(all().map(|device| Some(device.resident_bytes()))),
        numbers(all().map(|device| Some(device.calls().0))),
        numbers(all().map(|device| Some(device.calls().1))),
        optional_texts(all().map(Offload::lost)),
    ];
    RecordBatch::try_new(devices_schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

fn residents_schema() -> SchemaRef {
    let texts = [text("table_name", false), text("column_name", false)];
    Arc::new(Schema::new(texts.into_iter().chain(["ranges", "bytes", "uses"].map(number)).collect::<Vec<_>>()))
}

fn residents(offload: Option<&Offload>) -> Result<RecordBatch> {
    let residents = offload.map(|offload| offload.all_residents()).unwrap_or_default();
    let all = || residents.iter();
    let columns: Vec<ArrayRef> = vec![
        texts(all().map(|resident| resident.table.clone())),
        texts(all().map(|resident| resident.column.clone())),
        numbers(all().map(|resident| Some(resident.ranges))),
        numbers(all().map(|resident| Some(resident.bytes))),
        numbers(all().map(|resident| Some(resident.uses))),
    ];
    RecordBatch::try_new(residents_schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}

fn decisions_schema() -> SchemaRef {
    let time = |name, nullable| Field::new(name, DataType::Float64, nullable);
    Arc::new(Schema::new(vec![
        number("number"),
        text("operator", false),
        number("rows"),
        time("device_ms", false),
        time("cpu_ms", false),
        text("device", true),
        text("reason", false),
        number("portions"),
        time("device_ms_spent", true),
        text("continued_on_cpu", true),
    ]))
}

/// Of a device that is emulated there are no times.
fn decisions(offload: Option<&Offload>) -> Result<RecordBatch> {
    let noted: Vec<Arc<Noted>> = offload.map(Offload::decisions).unwrap_or_default();
    let facts = offload.map(Offload::facts);
    let name = facts.map(ToString::to_string);
    let is_emulated = facts.is_some_and(|facts| facts.is_emulated);
    let all = || noted.iter().map(|noted| &noted.decision);
    let courses: Vec<_> = noted.iter().map(|noted| noted.course()).collect();
    let times = |times: Vec<Option<f64>>| Arc::new(Float64Array::from(times)) as ArrayRef;
    let spent = courses.iter().map(|course| (course.portions > 0 && !is_emulated).then_some(course.device_ns / 1e6));
    let columns: Vec<ArrayRef> = vec![
        numbers(all().map(|decision| Some(decision.number))),
        texts(all().map(|decision| decision.operator.to_owned())),
        numbers(all().map(|decision| Some(decision.rows))),
        times(all().map(|decision| Some(decision.device_ns / 1e6)).collect()),
        times(all().map(|decision| Some(decision.cpu_ns / 1e6)).collect()),
        optional_texts(all().map(|decision| name.clone().filter(|_| decision.is_on_device))),
        texts(all().map(|decision| decision.reason.to_owned())),
        numbers(courses.iter().map(|course| Some(course.portions))),
        times(spent.collect()),
        optional_texts(courses.iter().map(|course| course.continued_why.clone())),
    ];
    RecordBatch::try_new(decisions_schema(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}
