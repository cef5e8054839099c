//! `pg_notify(channel, payload)`, which sends a word as `NOTIFY` does, and the channels that a session listens to.
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Float64Array, StringViewArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::cast::as_string_view_array;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::told_by;
use crate::error::{Result, external};
use crate::state::notifications::Notifications;
use crate::state::view::View;
use crate::values::types::{VOID, of_catalog};

/// The function behind `pg_listening_channels()`, which gives an array.
pub(crate) const CHANNELS: &str = "listening_channels";

const NAMES: [&str; 3] = ["pg_notify", CHANNELS, "pg_notification_queue_usage"];

/// Whether a function is one of these.
pub(super) fn is_one(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> DataFusionResult<()> {
    for name in NAMES {
        let signature = match name {
            "pg_notify" => Signature::string(2, Volatility::Volatile),
            _ => Signature::nullary(Volatility::Volatile),
        };
        let function = NotifyFunction { name, signature, notifications: view.notifications.clone() };
        state.register_udf(Arc::new(ScalarUDF::from(function)))?;
    }
    Ok(())
}

/// A function for one statement.
struct NotifyFunction {
    name: &'static str,
    signature: Signature,
    notifications: Arc<Notifications>,
}

impl NotifyFunction {
    /// Sends the words of all rows. Without a channel there is nowhere to send them.
    fn notify(&self, channels: &StringViewArray, payloads: &StringViewArray) -> Result<()> {
        for (channel, payload) in channels.iter().zip(payloads) {
            self.notifications.notify(channel.unwrap_or(""), payload.unwrap_or(""))?;
        }
        Ok(())
    }
}

fn of_texts() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)))
}

impl ScalarUDFImpl for NotifyFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(match self.name {
            "pg_notify" => DataType::Utf8View,
            CHANNELS => of_texts(),
            _ => DataType::Float64,
        })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> DataFusionResult<FieldRef> {
        let field = Field::new(self.name, self.return_type(&[])?, true);
        Ok(Arc::new(if self.name == "pg_notify" { of_catalog(field, VOID) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let rows = args.number_rows;
        let computed: ArrayRef = match (self.name, &args.args[..]) {
            ("pg_notify", [channels, payloads]) => {
                let text = |arg: &ColumnarValue| arrow_cast::cast(&arg.to_array(rows)?, &DataType::Utf8View);
                let (channels, payloads) = (text(channels)?, text(payloads)?);
                let sent = self.notify(as_string_view_array(&channels)?, payloads.as_string_view());
                sent.map_err(external)?;
                // PostgreSQL's type for nothing is sent as an empty text.
                Arc::new(StringViewArray::from_iter_values((0..rows).map(|_| "")))
            }
            (CHANNELS, _) => {
                let mut lists = ListBuilder::new(StringViewBuilder::new());
                let names = self.notifications.channels();
                for _ in 0..rows {
                    lists.append_value(names.iter().map(Some));
                }
                Arc::new(lists.finish())
            }
            _ => Arc::new(Float64Array::from(vec![0.0; rows])),
        };
        Ok(ColumnarValue::Array(computed))
    }
}

told_by!(NotifyFunction, name);
