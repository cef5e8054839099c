//! The numbers of the catalog, and names that are known by a number: relations, types, schemas.
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use engine::{DataType, IntervalFields, TypeDefinition, schema_and_name};

use super::columns::{EMPTY, INFORMATION, INFORMATION_PREFIX, RELATIONS};
use super::objects::{Objects, number_of};
use crate::error::{Result, SqlError};
use crate::interrupt::made_types;
use crate::names::name_in_text;
use crate::names::origin::modifier_of;
use crate::names::schemas::spelled;
use crate::names::tables::{SCHEMA, Tables};
use crate::syntax::dialect::SqlDialect;
use crate::values::pg_types::{self, TYPES};
use crate::values::types::column_type;

/// The schema of the catalog.
pub(crate) const CATALOG_SCHEMA: &str = "pg_catalog";

/// The owner of everything while there are no roles.
pub(super) const OWNER: &str = "lstore";
pub(super) const OWNER_OID: i64 = 10;

/// The role that `public` belongs to in PostgreSQL, of which the database's owner is the one member.
pub(super) const PUBLIC_OWNER: &str = "pg_database_owner";
pub(super) const PUBLIC_OWNER_OID: i64 = 6171;
pub(super) const CATALOG_OID: i64 = 11;
pub(super) const PUBLIC_OID: i64 = 2200;
pub(super) const INFORMATION_OID: i64 = 13_000;
pub(super) const DATABASE_OID: i64 = 5;

/// The numbers of the catalog's own tables, as PostgreSQL has them.
const CATALOG_OIDS: [(&str, i64); 64] = [
    ("pg_aggregate", 2600),
    ("pg_am", 2601),
    ("pg_amop", 2602),
    ("pg_amproc", 2603),
    ("pg_attrdef", 2604),
    ("pg_attribute", 1249),
    ("pg_auth_members", 1261),
    ("pg_authid", 1260),
    ("pg_cast", 2605),
    ("pg_class", 1259),
    ("pg_collation", 3456),
    ("pg_constraint", 2606),
    ("pg_conversion", 2607),
    ("pg_database", 1262),
    ("pg_db_role_setting", 2964),
    ("pg_default_acl", 826),
    ("pg_depend", 2608),
    ("pg_description", 2609),
    ("pg_enum", 3501),
    ("pg_event_trigger", 3466),
    ("pg_extension", 3079),
    ("pg_foreign_data_wrapper", 2328),
    ("pg_foreign_server", 1417),
    ("pg_foreign_table", 3118),
    ("pg_index", 2610),
    ("pg_inherits", 2611),
    ("pg_init_privs", 3394),
    ("pg_language", 2612),
    ("pg_largeobject", 2613),
    ("pg_largeobject_metadata", 2995),
    ("pg_namespace", 2615),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_opfamily", 2753),
    ("pg_parameter_acl", 6243),
    ("pg_partitioned_table", 3350),
    ("pg_policy", 3256),
    ("pg_proc", 1255),
    ("pg_publication", 6104),
    ("pg_publication_namespace", 6237),
    ("pg_publication_rel", 6106),
    ("pg_range", 3541),
    ("pg_replication_origin", 6000),
    ("pg_rewrite", 2618),
    ("pg_seclabel", 3596),
    ("pg_sequence", 2224),
    ("pg_shdepend", 1214),
    ("pg_shdescription", 2396),
    ("pg_shseclabel", 3592),
    ("pg_statistic", 2619),
    ("pg_statistic_ext", 3381),
    ("pg_statistic_ext_data", 3429),
    ("pg_subscription", 6100),
    ("pg_subscription_rel", 6102),
    ("pg_tablespace", 1213),
    ("pg_transform", 3576),
    ("pg_trigger", 2620),
    ("pg_ts_config", 3602),
    ("pg_ts_config_map", 3603),
    ("pg_ts_dict", 3600),
    ("pg_ts_parser", 3601),
    ("pg_ts_template", 3764),
    ("pg_type", 1247),
    ("pg_user_mapping", 1418),
];

/// The numbers of the catalog's views and of those of `information_schema` start here; PostgreSQL's are others in each of its clusters.
const FIRST_VIEW_OID: i64 = 12_000;
const FIRST_INFORMATION_OID: i64 = 13_001;

/// The number of a table of the catalog.
pub(super) fn catalog_oid(name: &str) -> Option<i64> {
    CATALOG_OIDS.iter().find(|known| known.0 == name).map(|(_, oid)| *oid)
}

/// The relations of the catalog and of `information_schema` with their numbers.
fn catalog_relations() -> impl Iterator<Item = (String, i64)> {
    let tables = CATALOG_OIDS.iter().map(|(name, oid)| ((*name).to_owned(), *oid));
    let views = RELATIONS.iter().chain(&EMPTY).map(|known| known.0).filter(|name| catalog_oid(name).is_none());
    let views = views.map(str::to_owned).zip(FIRST_VIEW_OID..);
    let information = INFORMATION.iter().map(|known| format!("{INFORMATION_PREFIX}{}", known.0));
    tables.chain(views).chain(information.zip(FIRST_INFORMATION_OID..))
}

/// The number of a relation of the catalog or of `information_schema` that a text names.
pub(super) fn catalog_relation_oid(text: &str) -> Option<i64> {
    let name = text.strip_prefix("pg_catalog.").unwrap_or(text);
    catalog_relations().find(|known| known.0 == name).map(|known| known.1)
}

/// The name of the relation of the catalog or of `information_schema` that has a number.
pub(super) fn catalog_relation(oid: i64) -> Option<String> {
    catalog_relations().find(|known| known.1 == oid).map(|known| known.0)
}

/// Numbers of schemas that were made start here, above those of tables.
const FIRST_SCHEMA_OID: i64 = 1 << 29;

/// Numbers of the rules of views start here, above those of tables.
const FIRST_RULE_OID: i64 = 1 << 27;

/// The number of the rule that makes a relation a view.
pub(super) fn rule_oid(view: i64) -> i64 {
    FIRST_RULE_OID + view
}

/// The number of the type of a relation's rows. Relations have every other number.
pub(super) fn row_type_oid(relation: i64) -> i64 {
    relation + 1
}

/// The number of a schema.
pub(super) fn schema_oid(schema: &str) -> i64 {
    match schema {
        SCHEMA => PUBLIC_OID,
        made => FIRST_SCHEMA_OID + (number_of(made) & (FIRST_SCHEMA_OID - 1)),
    }
}

/// All schemas by their numbers.
pub(super) fn numbered_schemas(objects: &Objects) -> impl Iterator<Item = (i64, &str)> {
    let names = [(CATALOG_OID, CATALOG_SCHEMA), (INFORMATION_OID, "information_schema"), (PUBLIC_OID, SCHEMA)];
    names.into_iter().chain(objects.schemas.iter().map(|name| (schema_oid(name), name.as_str())))
}

/// The text that stands for no relation.
pub(super) const NO_RELATION: &str = "-";

/// The number of the relation that a text names.
pub(super) fn relation_oid(tables: &Tables, text: &str) -> Result<i64> {
    // The number of no relation.
    if text == NO_RELATION {
        return Ok(0);
    }
    // The catalog comes before all schemas.
    if let Some(oid) = catalog_relation_oid(text) {
        return Ok(oid);
    }
    let name = tables.resolved(name_in_text(text)?);
    if let Some(oid) = catalog_relation_oid(&name) {
        return Ok(oid);
    }
    let found = Objects::of(tables).found();
    let missing = || SqlError::new("42P01", format!("relation \"{}\" does not exist", unquoted(text)));
    found.get(&name).copied().ok_or_else(missing)
}

/// The number of the type that a text names.
pub(super) fn type_oid(text: &str) -> Option<i64> {
    let unquoted = unquoted(text);
    let name = unquoted.strip_prefix("pg_catalog.").unwrap_or(&unquoted);
    let plain = TYPES.iter().find(|known| known.name == name || known.shown == name).map(|known| known.number);
    let item = name.strip_suffix("[]").or_else(|| name.strip_prefix('_'));
    let array = || TYPES.iter().find(|known| Some(known.name) == item || Some(known.shown) == item);
    let short = || match name {
        "int" => Some(pg_types::INT4),
        "decimal" => Some(pg_types::NUMERIC),
        _ => ANY.iter().find(|(_, known)| *known == name).map(|(number, _)| *number),
    };
    let made = || made_number(text);
    let spelled = || number_of_spelled(text);
    let known = plain.or_else(|| array().map(|known| known.array)).or_else(short);
    known.or_else(made).or_else(spelled).map(i64::from)
}

/// The number of a type as statements spell it, with its length or digits: `decimal(12,2)`, `timestamp(6) without time zone`.
fn number_of_spelled(text: &str) -> Option<u32> {
    let dialect = SqlDialect::default();
    let mut parser = Parser::new(&dialect).try_with_sql(text).ok()?;
    let spelled = parser.parse_data_type().ok()?;
    parser.expect_token(&Token::EOF).ok()?;
    let (data_type, _) = column_type(&spelled).ok()?;
    Some(pg_types::number_of(data_type))
}

/// A name in a text, without its quotes.
fn unquoted(text: &str) -> String {
    let part = |part: &str| match part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => part.to_owned(),
    };
    text.split('.').map(part).collect::<Vec<_>>().join(".")
}

/// The number of a type that a user has made, or of its arrays.
fn made_number(text: &str) -> Option<u32> {
    let item = text.strip_suffix("[]").or_else(|| text.strip_prefix('_').filter(|_| find_made(text).is_none()));
    match (find_made(item.unwrap_or(text))?, item) {
        (TypeDefinition::Enum(labels), None) => Some(labels.of.number()),
        (TypeDefinition::Enum(labels), Some(_)) => Some(labels.of.array_number()),
        (TypeDefinition::Domain(domain), None) => Some(domain.number),
        (TypeDefinition::Domain(_), Some(_)) => None,
    }
}

fn find_made(text: &str) -> Option<TypeDefinition> {
    let name = name_in_text(text).ok()?;
    let (schema, local) = schema_and_name(&name);
    let said = text.contains('.').then_some(schema);
    made_types::find(said, local).map(|(_, of_type)| of_type)
}

/// A number of bytes as `pg_size_pretty` shows it.
pub(super) fn size_text(bytes: i64) -> String {
    if bytes.unsigned_abs() < 10 * 1024 {
        return format!("{bytes} bytes");
    }
    // Twice the number of units, so that it can be rounded.
    let mut double = bytes >> 9;
    let mut units = ["kB", "MB", "GB", "TB"].into_iter();
    let unit = units.find(|_| {
        let fits = double.unsigned_abs() < 20 * 1024 - 1;
        double = if fits { double } else { double >> 10 };
        fits
    });
    format!("{} {}", (double + double.signum()) / 2, unit.unwrap_or("PB"))
}

/// The number of a column's type, and what it was made with.
pub(super) fn type_of(data_type: DataType) -> (i64, i64) {
    (pg_types::number_of(data_type).into(), modifier_of(data_type).into())
}

const TIME: u32 = 1083;
const TIMESTAMP: u32 = 1114;
const TIMESTAMP_TZ: u32 = 1184;
const INTERVAL: u32 = 1186;
const TIME_TZ: u32 = 1266;

/// The types that stand for any array, any enum, any range, and those that functions alone have: what is there for all of them says that
/// it is for these.
pub(super) const ANY_ARRAY: u32 = 2277;
pub(super) const ANY_ENUM: u32 = 3500;
pub(super) const ANY_RANGE: u32 = 3831;
const ANY: [(u32, &str); 8] = [
    (ANY_ARRAY, "anyarray"),
    (ANY_ENUM, "anyenum"),
    (ANY_RANGE, "anyrange"),
    (18, "\"char\""),
    (2249, "record"),
    (2278, "void"),
    (2279, "trigger"),
    (3838, "event_trigger"),
];

/// A type's name with what it was made with, as `format_type` gives it.
pub(crate) fn format_type(oid: i64, modifier: Option<i64>) -> String {
    let number = u32::try_from(oid).unwrap_or(0);
    if let Some(item) = pg_types::item_of(number) {
        return format!("{}[]", format_type(item.number.into(), modifier));
    }
    if let Some(made) = pg_types::made_type(number) {
        return pg_types::kept_name(made);
    }
    if let Some((_, name)) = ANY.iter().find(|(any, _)| *any == number) {
        return (*name).to_owned();
    }
    let Some(known) = pg_types::numbered(number) else {
        return made_types::numbered(number).map_or_else(|| "???".to_owned(), |name| spelled(&name));
    };
    // How many digits seconds have; of an interval beside a mask of its fields.
    let digits = modifier.map(|modifier| modifier & 0xffff).filter(|digits| *digits <= 6);
    if let (TIME | TIMESTAMP | TIMESTAMP_TZ | TIME_TZ, Some(digits)) = (number, digits) {
        let (word, rest) = known.shown.split_once(' ').unwrap_or((known.shown, ""));
        return format!("{word}({digits}) {rest}");
    }
    if let (INTERVAL, Some(modifier)) = (number, modifier.filter(|modifier| *modifier >= 0)) {
        let mask = i32::try_from(modifier >> 16).unwrap_or(0);
        let fields = IntervalFields::of_mask(mask).map_or("", IntervalFields::name);
        let fields = if fields.is_empty() { String::new() } else { format!(" {fields}") };
        return format!("interval{fields}{}", digits.map_or_else(String::new, |digits| format!("({digits})")));
    }
    match (number, modifier.filter(|modifier| *modifier >= 4)) {
        (pg_types::NUMERIC, Some(modifier)) => format!("numeric({},{})", (modifier - 4) >> 16, (modifier - 4) & 0x7ff),
        (pg_types::BPCHAR | pg_types::VARCHAR, Some(modifier)) => format!("{}({})", known.shown, modifier - 4),
        _ => known.shown.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_shown_with_what_they_were_made_with() {
        let shown = |data_type| {
            let (oid, modifier) = type_of(data_type);
            format_type(oid, Some(modifier))
        };
        assert_eq!(shown(DataType::Decimal { precision: 10, scale: 2 }), "numeric(10,2)");
        assert_eq!(shown(DataType::Text { max_chars: Some(22) }), "character varying(22)");
        assert_eq!((shown(DataType::TEXT), shown(DataType::Integer)), ("text".into(), "integer".into()));
        assert_eq!((format_type(1007, None), format_type(1, None)), ("integer[]".into(), "???".into()));
        assert_eq!((type_oid("int4[]"), type_oid("_text"), type_oid("ltree")), (Some(1007), Some(1009), None));
        let sizes = [0, 10_239, 10_240, 1 << 20, 20 << 20, i64::MAX].map(size_text);
        assert_eq!(sizes, ["0 bytes", "10239 bytes", "10 kB", "1024 kB", "20 MB", "8192 PB"]);
    }
}
