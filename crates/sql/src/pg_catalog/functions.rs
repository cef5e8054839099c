//! The functions of the catalog: texts by the number of what they are about, and answers that are the same for everything.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringViewArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::{OWNER, format_type};

/// What a function answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Text(&'static str),
    Truth(bool),
    Null,
    /// The text of the number that is the first argument.
    ByNumber(BTreeMap<i64, String>),
    /// The name of the type that the first argument is, made with the second.
    TypeName,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    answer: Answer,
    signature: Signature,
}

/// Functions that say the same of everything.
const ALWAYS: [(&str, Answer); 21] = [
    ("pg_table_is_visible", Answer::Truth(true)),
    ("pg_type_is_visible", Answer::Truth(true)),
    ("pg_function_is_visible", Answer::Truth(true)),
    ("pg_get_userbyid", Answer::Text(OWNER)),
    ("pg_encoding_to_char", Answer::Text("UTF8")),
    ("pg_get_expr", Answer::Null),
    ("pg_get_viewdef", Answer::Null),
    ("pg_get_serial_sequence", Answer::Null),
    ("obj_description", Answer::Null),
    ("col_description", Answer::Null),
    ("shobj_description", Answer::Null),
    ("pg_get_statisticsobjdef_columns", Answer::Null),
    ("pg_is_in_recovery", Answer::Truth(false)),
    ("pg_relation_is_publishable", Answer::Truth(false)),
    ("has_table_privilege", Answer::Truth(true)),
    ("has_schema_privilege", Answer::Truth(true)),
    ("has_database_privilege", Answer::Truth(true)),
    ("has_column_privilege", Answer::Truth(true)),
    ("has_any_column_privilege", Answer::Truth(true)),
    ("has_sequence_privilege", Answer::Truth(true)),
    ("pg_get_partkeydef", Answer::Null),
];

/// All functions, with the definitions of the indexes and constraints that there are.
pub(super) fn all(indexes: BTreeMap<i64, String>, constraints: BTreeMap<i64, String>) -> Vec<ScalarUDF> {
    let own = [
        ("pg_get_indexdef", Answer::ByNumber(indexes)),
        ("pg_get_constraintdef", Answer::ByNumber(constraints)),
        ("format_type", Answer::TypeName),
    ];
    let signature = || Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], Volatility::Stable);
    let function = |(name, answer)| ScalarUDF::from(Function { name, answer, signature: signature() });
    ALWAYS.into_iter().chain(own).map(function).collect()
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if matches!(self.answer, Answer::Truth(_)) { DataType::Boolean } else { DataType::Utf8View })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let number = |at: usize| -> Result<Option<ArrayRef>> {
            let array = args.args.get(at).map(|value| value.to_array(rows)).transpose()?;
            Ok(array.map(|array| cast(&array, &DataType::Int64)).transpose()?)
        };
        let none: ArrayRef = Arc::new(Int64Array::new_null(rows));
        let answer: ArrayRef = match &self.answer {
            Answer::Text(text) => Arc::new(StringViewArray::from(vec![Some(*text); rows])),
            Answer::Truth(truth) => Arc::new(BooleanArray::from(vec![Some(*truth); rows])),
            Answer::Null => Arc::new(StringViewArray::new_null(rows)),
            Answer::ByNumber(texts) => {
                let numbers = number(0)?.unwrap_or(none);
                let text = |number: Option<i64>| number.and_then(|number| texts.get(&number)).map(String::as_str);
                Arc::new(numbers.as_primitive::<Int64Type>().iter().map(text).collect::<StringViewArray>())
            }
            Answer::TypeName => {
                let (numbers, modifiers) = (number(0)?.unwrap_or_else(|| none.clone()), number(1)?.unwrap_or(none));
                let modifiers = modifiers.as_primitive::<Int64Type>();
                let pairs = numbers.as_primitive::<Int64Type>().iter().zip(modifiers);
                let texts = pairs.map(|(oid, modifier)| oid.map(|oid| format_type(oid, modifier)));
                Arc::new(texts.collect::<StringViewArray>())
            }
        };
        Ok(ColumnarValue::Array(answer))
    }
}
