//! The functions of the catalog as a statement has them: each makes its answer from what the statement sees when a plan first has it.
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::comments::Comments;
use super::constraints;
use super::defaults::SerialSequences;
use super::functions::{ALWAYS, Answer, Arguments, NAME_LIST, last_values, roles, sizes};
use super::objects::{FunctionObject, Objects};
use super::oids::numbered_schemas;
use super::properties;
use super::routines;
use crate::access::index_expressions::write::Style;
use crate::names::schemas::told;
use crate::names::tables::Tables;
use crate::state::view::View;
use crate::syntax::identifiers::quoted;
use crate::values::types::{LETTER, NAMES, catalog_type, of_catalog, type_name_of_field};

/// How a function's answer is made.
type Make = fn(&Known) -> Answer;

/// A function of the catalog.
struct Function {
    name: &'static str,
    make: Make,
    known: Arc<Known>,
    /// Made when a plan first has the function: nearly all statements call few of them, and an answer may be as long as the catalog.
    answer: OnceLock<Answer>,
    signature: Signature,
}

impl Function {
    fn answer(&self) -> &Answer {
        self.answer.get_or_init(|| (self.make)(&self.known))
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.name).finish()
    }
}

/// Functions of one name are one within a statement, which has its own.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.known, &other.known)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// What the functions of a statement know.
struct Known {
    tables: Tables,
    settings: Arc<BTreeMap<String, String>>,
    objects: OnceLock<Objects>,
}

impl Known {
    fn objects(&self) -> &Objects {
        self.objects.get_or_init(|| Objects::of(&self.tables))
    }

    /// The numbers of relations by their names.
    fn names(&self) -> BTreeMap<String, i64> {
        self.objects().found()
    }

    fn comments(&self) -> Comments {
        // What cannot be read is as good as none for a description.
        super::comments::all(self.objects(), &self.tables).unwrap_or_default()
    }

    fn of_functions(&self, of: fn(&FunctionObject) -> String) -> Answer {
        Answer::OfRelation(routines::texts(self.objects(), of), BTreeMap::new())
    }

    fn definitions_of_indexes(&self) -> Answer {
        let definition = |(table, index): (&super::objects::TableObject, &super::objects::IndexObject)| {
            let of = |style| {
                [vec![table.definition(index, style)], table.parts(index, style), table.included(index)].concat()
            };
            (index.oid, [of(Style::Plain), of(Style::Pretty)])
        };
        Answer::Index(self.objects().indexes().map(definition).collect())
    }

    fn definitions_of_constraints(&self) -> Answer {
        let objects = self.objects();
        Answer::Definition(constraints::definitions(objects, &objects.visible()).collect())
    }

    fn queries_of_views(&self) -> Answer {
        let objects = self.objects();
        let views = objects.views.iter().map(|view| (view.oid, view.definition()));
        let views = views.chain(objects.materialized().map(|(view, query, _)| (view.oid, query))).collect();
        Answer::OfRelation(views, self.names())
    }

    fn names_of_relations(&self) -> Answer {
        let (objects, visible) = (self.objects(), self.objects().visible());
        let name = |(key, oid): (&str, i64)| (oid, told(key, visible.contains(&oid)));
        Answer::RelationName(objects.names().map(name).collect(), self.names())
    }

    fn names_of_schemas(&self) -> Answer {
        let schemas = numbered_schemas(self.objects()).map(|(number, name)| (number, quoted(name))).collect();
        Answer::RelationName(schemas, BTreeMap::new())
    }

    fn numbers_of_types(&self) -> Answer {
        let types = self.objects().made_types();
        Answer::Type(types.into_iter().map(|(number, name)| (name, number)).collect())
    }

    fn sizes(&self, parts: [bool; 2]) -> Answer {
        Answer::Size(sizes(self.objects(), parts))
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.answer().data_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(self.name, self.answer().data_type(), true);
        Ok(Arc::new(if matches!(self.answer(), Answer::Names) { of_catalog(field, NAMES) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let name = |field: &FieldRef| match catalog_type(field) {
            Some(LETTER) => "\"char\"".to_owned(),
            Some(name) => name.to_owned(),
            None => type_name_of_field(field),
        };
        let first = args.arg_fields.first().map_or_else(|| "unknown".to_owned(), name);
        let arrays = args.args.into_iter().map(|value| value.into_array(rows)).collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(self.answer().answer(&Arguments { arrays, rows, first })?))
    }
}

/// Functions with answers that go by what there is.
const MADE: [(&str, Make); 40] = [
    ("pg_function_is_visible", |known| Answer::Visible(routines::visible(known.objects()))),
    ("pg_get_function_result", |known| known.of_functions(FunctionObject::result)),
    ("pg_get_function_arguments", |known| known.of_functions(|function| function.arguments(true))),
    ("pg_get_function_identity_arguments", |known| known.of_functions(|function| function.arguments(false))),
    ("pg_get_functiondef", |known| known.of_functions(FunctionObject::definition)),
    ("regprocedureout", |known| known.of_functions(|function| function.function.signature())),
    ("pg_get_function_sqlbody", |known| {
        Answer::OfRelation(routines::standard_bodies(known.objects()), BTreeMap::new())
    }),
    ("pg_table_is_visible", |known| Answer::Visible(known.objects().visible())),
    ("pg_type_is_visible", |known| Answer::Unhidden(known.objects().hidden_types())),
    ("obj_description", |known| Answer::Comment(known.comments(), false)),
    ("shobj_description", |known| Answer::Comment(known.comments(), false)),
    ("col_description", |known| Answer::Comment(known.comments(), true)),
    ("pg_get_indexdef", Known::definitions_of_indexes),
    ("pg_index_column_has_property", |known| Answer::Property(properties::of_columns(known.objects()), true)),
    ("pg_index_has_property", |known| Answer::Property(properties::of_indexes(known.objects()), false)),
    ("pg_indexam_has_property", |_| Answer::Property(properties::of_methods(), false)),
    ("pg_get_expr", |_| Answer::Expression),
    ("pg_get_serial_sequence", |known| Answer::Sequence(SerialSequences::of(known.objects(), known.names()))),
    ("pg_partition_ancestors", |_| Answer::Same),
    ("pg_get_constraintdef", Known::definitions_of_constraints),
    ("pg_get_viewdef", Known::queries_of_views),
    ("regclassout", Known::names_of_relations),
    ("pg_get_userbyid", |_| Answer::RelationName(roles(), BTreeMap::new())),
    ("regnamespaceout", Known::names_of_schemas),
    ("to_regclass", |known| Answer::Relation(known.names())),
    ("to_regtype", Known::numbers_of_types),
    ("oidvectortypes", |known| Answer::TypeNames(known.objects().made_types())),
    ("format_type", |known| Answer::TypeName(known.objects().made_types())),
    ("pg_typeof", |_| Answer::TypeOf),
    ("pg_relation_size", |known| known.sizes([true, false])),
    ("pg_table_size", |known| known.sizes([true, false])),
    ("pg_indexes_size", |known| known.sizes([false, true])),
    ("pg_total_relation_size", |known| known.sizes([true, true])),
    ("pg_database_size", |known| Answer::Number(known.objects().tables.iter().map(|table| table.bytes).sum())),
    ("pg_sequence_last_value", |known| Answer::Size(last_values(known.objects()))),
    ("pg_size_pretty", |_| Answer::SizeText),
    (NAME_LIST, |_| Answer::Names),
    ("current_setting", |known| Answer::Setting((*known.settings).clone())),
    ("_pg_expandarray", |_| Answer::Expanded),
    ("generate_subscripts", |_| Answer::Positions),
];

/// All functions, with what they know of what the statement sees.
pub(super) fn all(view: &View) -> Vec<ScalarUDF> {
    let known = Known { tables: view.tables.clone(), settings: view.settings.clone(), objects: OnceLock::new() };
    let known = Arc::new(known);
    let signature = || Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], Volatility::Stable);
    let function = |(name, make, answer): (&'static str, Make, OnceLock<Answer>)| {
        ScalarUDF::from(Function { name, make, known: known.clone(), answer, signature: signature() })
    };
    let always = ALWAYS.into_iter().map(|(name, answer)| (name, (|_| Answer::Null) as Make, answer.into()));
    always.chain(MADE.map(|(name, make)| (name, make, OnceLock::new()))).map(function).collect()
}
