//! Whether a row is in a sample (see `planning::samples`).
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, BooleanArray};
use arrow_schema::DataType;
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::{Result, SqlError};

/// The function's name, which no statement can spell.
pub(crate) const NAME: &str = "\0sample";

/// How many ids are taken or left out together by `SYSTEM`, as a power of two.
const BLOCK_BITS: u32 = 6;

/// The function.
pub(crate) fn function() -> Arc<ScalarUDF> {
    // It gives the same for the same arguments, but is not to be moved away from its table.
    Arc::new(ScalarUDF::from(Sample { signature: Signature::any(4, Volatility::Volatile) }))
}

/// Refuses what is no percentage.
pub(crate) fn check_percentage(percentage: Option<f64>) -> Result<()> {
    match percentage {
        None => Err(SqlError::new("2202H", "TABLESAMPLE parameter cannot be null")),
        Some(percentage) if (0.0..=100.0).contains(&percentage) => Ok(()),
        Some(_) => Err(SqlError::new("2202H", "sample percentage must be between 0 and 100")),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sample {
    signature: Signature,
}

impl ScalarUDFImpl for Sample {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<PlanResult<Vec<_>>>()?;
        let [rids, percentages, seeds, by_blocks] = &arrays[..] else {
            return Err(DataFusionError::Internal("a sample takes four arguments".to_owned()));
        };
        let external = |error: SqlError| DataFusionError::External(Box::new(error));
        let first = |array: &Arc<dyn Array>| {
            let floats = array.as_primitive_opt::<Float64Type>();
            floats.filter(|floats| !floats.is_empty() && floats.is_valid(0)).map(|floats| floats.value(0))
        };
        let percentage = first(percentages);
        check_percentage(percentage).map_err(external)?;
        let seed = first(seeds)
            .ok_or_else(|| external(SqlError::new("2202G", "TABLESAMPLE REPEATABLE parameter cannot be null")))?;
        let is_by_blocks = by_blocks.as_boolean_opt().is_some_and(|truths| !truths.is_empty() && truths.value(0));
        let shift = if is_by_blocks { BLOCK_BITS } else { 0 };
        let Some(rids) = rids.as_primitive_opt::<UInt64Type>() else {
            return Err(DataFusionError::Internal("a sample is not of the ids of rows".to_owned()));
        };
        let share = percentage.unwrap_or_default() / 100.0;
        let is_in = |rid: &u64| fraction((rid >> shift) ^ mixed(seed.to_bits())) < share;
        let taken: BooleanArray = rids.values().iter().map(|rid| Some(is_in(rid))).collect();
        Ok(ColumnarValue::Array(Arc::new(taken)))
    }
}

/// A number from 0 on and below 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn fraction(number: u64) -> f64 {
    (mixed(number) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number whose bits all depend on all bits of another (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
