//! `avg`, `var_pop`, `var_samp`, `stddev_pop` and `stddev_samp` of integers and numerics: exact sums of the numbers and their
//! squares, of which the result is worked out in the end, where DataFusion computes in floats. Of floats it serves.
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::group_averages::{DECIMALS, GroupAverages};
use super::group_moments::GroupMoments;
use super::interval_averages::{self, IntervalAverage};
use super::one_moment::{Kind, Moment, WIDE};
use super::unlimited::{self, Gives};
use super::wide_averages::{self, WideAverage};
use crate::functions::times::intervals::INTERVAL;
use crate::values::numerics::{NUMERIC, is_numeric};
use crate::values::types::taken;

/// The decimals that numbers of 256 bits keep.
const MOST_DECIMALS: i8 = 20;

#[derive(Debug, PartialEq, Eq)]
struct Moments {
    kind: Kind,
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

/// There is one of each kind, see [`super::sum`].
impl Hash for Moments {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

/// The function in the place of the library's, if it is one of these.
pub(crate) fn function(inner: &Arc<AggregateUDF>) -> Option<AggregateUDF> {
    let kind = match inner.name() {
        "avg" => Kind::Average,
        "var_pop" => Kind::Variance { of_population: true },
        "var" => Kind::Variance { of_population: false },
        "stddev_pop" => Kind::Deviation { of_population: true },
        "stddev" => Kind::Deviation { of_population: false },
        _ => return None,
    };
    let signature = Signature::user_defined(Volatility::Immutable);
    Some(AggregateUDF::from(Moments { kind, inner: inner.clone(), signature }))
}

fn is_exact(data_type: &DataType) -> bool {
    data_type.is_signed_integer() || matches!(data_type, DataType::Decimal128(_, 0..))
}

fn are_exact(fields: &[FieldRef]) -> bool {
    matches!(fields, [field] if is_exact(field.data_type()))
}

fn are_unlimited(fields: &[FieldRef]) -> bool {
    matches!(fields, [field] if is_numeric(field.data_type()))
}

/// The decimals of the numbers.
fn scale_of(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

impl Moments {
    fn is_of_intervals(&self, data_type: &DataType) -> bool {
        self.kind == Kind::Average && interval_averages::is_interval(data_type)
    }

    /// The type of the numbers, if this is the average of such of 256 bits.
    fn wide<'f>(&self, fields: &'f [FieldRef]) -> Option<&'f DataType> {
        let [field] = fields else { return None };
        (self.kind == Kind::Average && wide_averages::is_wide(field.data_type())).then(|| field.data_type())
    }

    fn are_intervals(&self, fields: &[FieldRef]) -> bool {
        matches!(fields, [field] if self.is_of_intervals(field.data_type()))
    }
}

impl AggregateUDFImpl for Moments {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [one] if self.is_of_intervals(one) => Ok(vec![INTERVAL]),
            [one] if is_exact(one) || is_numeric(one) => Ok(types.to_vec()),
            [one] if self.kind == Kind::Average && wide_averages::is_wide(one) => Ok(types.to_vec()),
            // The squares of numbers of 256 bits have no room; those of as many as most columns hold are exact all the same.
            [DataType::Decimal256(_, scale @ 0..)] => Ok(vec![DataType::Decimal128(38, (*scale).min(MOST_DECIMALS))]),
            _ => taken(self.inner.as_ref(), types),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [one] if self.is_of_intervals(one) => Ok(INTERVAL),
            [one] if is_numeric(one) => Ok(NUMERIC),
            [one] if is_exact(one) => Ok(DataType::Decimal128(38, scale_of(one).max(DECIMALS))),
            [one] if self.kind == Kind::Average && wide_averages::is_wide(one) => Ok(wide_averages::return_type(one)),
            _ => self.inner.return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if self.are_intervals(args.expr_fields) {
            return match args.is_distinct {
                true => Err(interval_averages::distinct_is_refused()),
                false => Ok(Box::new(IntervalAverage::default())),
            };
        }
        if are_unlimited(args.expr_fields) {
            return Ok(unlimited::accumulator(Gives::Moment(self.kind), args.is_distinct));
        }
        if let Some(data_type) = self.wide(args.expr_fields) {
            return Ok(Box::new(WideAverage::new(data_type)));
        }
        if !are_exact(args.expr_fields) {
            return self.inner.accumulator(args);
        }
        let scale = args.expr_fields.first().map_or(0, |field| scale_of(field.data_type()));
        Ok(Box::new(Moment::new(self.kind, scale)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let fields = args.expr_fields;
        match are_exact(fields) || are_unlimited(fields) || self.are_intervals(fields) || self.wide(fields).is_some() {
            true => self.accumulator(args),
            false => self.inner.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if self.are_intervals(args.input_fields) {
            return Ok(interval_averages::state_fields(args.name));
        }
        if are_unlimited(args.input_fields) {
            return Ok(unlimited::state_fields(args.name));
        }
        if let Some(data_type) = self.wide(args.input_fields) {
            return Ok(wide_averages::state_fields(args.name, data_type));
        }
        if !are_exact(args.input_fields) {
            return self.inner.state_fields(args);
        }
        let scale = args.input_fields.first().map_or(0, |field| scale_of(field.data_type()));
        let field = |part: &str, data_type| Arc::new(Field::new(format_state_name(args.name, part), data_type, true));
        let count = field("count", DataType::Int64);
        Ok(match self.kind {
            Kind::Average => vec![count, field("sum", DataType::Decimal128(38, scale))],
            _ => vec![count, field("sum", WIDE), field("squares", WIDE)],
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        let fields = args.expr_fields;
        if self.are_intervals(fields) || self.wide(fields).is_some() || are_unlimited(fields) {
            return false;
        }
        are_exact(args.expr_fields) || self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if !are_exact(args.expr_fields) {
            return self.inner.create_groups_accumulator(args);
        }
        let scale = args.expr_fields.first().map_or(0, |field| scale_of(field.data_type()));
        Ok(match self.kind {
            Kind::Average => Box::new(GroupAverages::new(scale)),
            kind => Box::new(GroupMoments::new(kind, scale)),
        })
    }
}
