//! Operator classes and families: `pg_opclass`, `pg_opfamily`, and the classes of an index.
//!
//! The list has those of PostgreSQL 15 for the methods and types that there are, with its numbers; those that extensions bring there
//! have numbers that no object comes to. The ordered methods that are of this database alone have the default classes of `btree` under
//! numbers of their own, so that what joins an index with its classes finds them.
use std::sync::LazyLock;

use engine::{DataType, IndexMethod};

use super::cells::{Cell, Row, text};
use super::hidden::Hidden;
use super::oids::{ANY_ARRAY, ANY_ENUM, ANY_RANGE, CATALOG_OID, OWNER_OID, PUBLIC_OID};
use crate::values::pg_types;

use Cell::{Number, Truth};

/// Numbers of classes that PostgreSQL has in extensions start here.
const FIRST_OF_EXTENSIONS: i64 = 4_290_000_000;

/// Numbers of the classes of methods that PostgreSQL has not.
const FIRST_OF_KISS: i64 = 9_500;
const FIRST_OF_BWD: i64 = 9_700;

/// Each class: its method, number and name, the number and name of its family, the type that it is for, whether it is the default there,
/// and the type of what the index keeps, if it is another.
const CLASSES: &str = "\
    brin 10092 bytea_minmax_ops 4064 bytea_minmax_ops 17 t 17
    brin 10093 bytea_bloom_ops 4578 bytea_bloom_ops 17 f 17
    brin 10094 char_minmax_ops 4062 char_minmax_ops 18 t 18
    brin 10095 char_bloom_ops 4577 char_bloom_ops 18 f 18
    brin 10096 name_minmax_ops 4065 name_minmax_ops 19 t 19
    brin 10097 name_bloom_ops 4579 name_bloom_ops 19 f 19
    brin 10098 int8_minmax_ops 4054 integer_minmax_ops 20 t 20
    brin 10099 int8_minmax_multi_ops 4602 integer_minmax_multi_ops 20 f 20
    brin 10100 int8_bloom_ops 4572 integer_bloom_ops 20 f 20
    brin 10101 int2_minmax_ops 4054 integer_minmax_ops 21 t 21
    brin 10102 int2_minmax_multi_ops 4602 integer_minmax_multi_ops 21 f 21
    brin 10103 int2_bloom_ops 4572 integer_bloom_ops 21 f 21
    brin 10104 int4_minmax_ops 4054 integer_minmax_ops 23 t 23
    brin 10105 int4_minmax_multi_ops 4602 integer_minmax_multi_ops 23 f 23
    brin 10106 int4_bloom_ops 4572 integer_bloom_ops 23 f 23
    brin 10107 text_minmax_ops 4056 text_minmax_ops 25 t 25
    brin 10108 text_bloom_ops 4573 text_bloom_ops 25 f 25
    brin 10109 oid_minmax_ops 4068 oid_minmax_ops 26 t 26
    brin 10110 oid_minmax_multi_ops 4606 oid_minmax_multi_ops 26 f 26
    brin 10111 oid_bloom_ops 4580 oid_bloom_ops 26 f 26
    brin 10112 tid_minmax_ops 4069 tid_minmax_ops 27 t 27
    brin 10113 tid_bloom_ops 4581 tid_bloom_ops 27 f 27
    brin 10114 tid_minmax_multi_ops 4607 tid_minmax_multi_ops 27 f 27
    brin 10115 float4_minmax_ops 4070 float_minmax_ops 700 t 700
    brin 10116 float4_minmax_multi_ops 4608 float_minmax_multi_ops 700 f 700
    brin 10117 float4_bloom_ops 4582 float_bloom_ops 700 f 700
    brin 10118 float8_minmax_ops 4070 float_minmax_ops 701 t 701
    brin 10119 float8_minmax_multi_ops 4608 float_minmax_multi_ops 701 f 701
    brin 10120 float8_bloom_ops 4582 float_bloom_ops 701 f 701
    brin 10121 macaddr_minmax_ops 4074 macaddr_minmax_ops 829 t 829
    brin 10122 macaddr_minmax_multi_ops 4609 macaddr_minmax_multi_ops 829 f 829
    brin 10123 macaddr_bloom_ops 4583 macaddr_bloom_ops 829 f 829
    brin 10124 macaddr8_minmax_ops 4109 macaddr8_minmax_ops 774 t 774
    brin 10125 macaddr8_minmax_multi_ops 4610 macaddr8_minmax_multi_ops 774 f 774
    brin 10126 macaddr8_bloom_ops 4584 macaddr8_bloom_ops 774 f 774
    brin 10127 inet_minmax_ops 4075 network_minmax_ops 869 f 869
    brin 10128 inet_minmax_multi_ops 4611 network_minmax_multi_ops 869 f 869
    brin 10129 inet_bloom_ops 4585 network_bloom_ops 869 f 869
    brin 10130 inet_inclusion_ops 4102 network_inclusion_ops 869 t 869
    brin 10131 bpchar_minmax_ops 4076 bpchar_minmax_ops 1042 t 1042
    brin 10132 bpchar_bloom_ops 4586 bpchar_bloom_ops 1042 f 1042
    brin 10133 time_minmax_ops 4077 time_minmax_ops 1083 t 1083
    brin 10134 time_minmax_multi_ops 4612 time_minmax_multi_ops 1083 f 1083
    brin 10135 time_bloom_ops 4587 time_bloom_ops 1083 f 1083
    brin 10136 date_minmax_ops 4059 datetime_minmax_ops 1082 t 1082
    brin 10137 date_minmax_multi_ops 4605 datetime_minmax_multi_ops 1082 f 1082
    brin 10138 date_bloom_ops 4576 datetime_bloom_ops 1082 f 1082
    brin 10139 timestamp_minmax_ops 4059 datetime_minmax_ops 1114 t 1114
    brin 10140 timestamp_minmax_multi_ops 4605 datetime_minmax_multi_ops 1114 f 1114
    brin 10141 timestamp_bloom_ops 4576 datetime_bloom_ops 1114 f 1114
    brin 10142 timestamptz_minmax_ops 4059 datetime_minmax_ops 1184 t 1184
    brin 10143 timestamptz_minmax_multi_ops 4605 datetime_minmax_multi_ops 1184 f 1184
    brin 10144 timestamptz_bloom_ops 4576 datetime_bloom_ops 1184 f 1184
    brin 10145 interval_minmax_ops 4078 interval_minmax_ops 1186 t 1186
    brin 10146 interval_minmax_multi_ops 4613 interval_minmax_multi_ops 1186 f 1186
    brin 10147 interval_bloom_ops 4588 interval_bloom_ops 1186 f 1186
    brin 10148 timetz_minmax_ops 4058 timetz_minmax_ops 1266 t 1266
    brin 10149 timetz_minmax_multi_ops 4604 timetz_minmax_multi_ops 1266 f 1266
    brin 10150 timetz_bloom_ops 4575 timetz_bloom_ops 1266 f 1266
    brin 10151 bit_minmax_ops 4079 bit_minmax_ops 1560 t 1560
    brin 10152 varbit_minmax_ops 4080 varbit_minmax_ops 1562 t 1562
    brin 10153 numeric_minmax_ops 4055 numeric_minmax_ops 1700 t 1700
    brin 10154 numeric_minmax_multi_ops 4603 numeric_minmax_multi_ops 1700 f 1700
    brin 10155 numeric_bloom_ops 4574 numeric_bloom_ops 1700 f 1700
    brin 10156 uuid_minmax_ops 4081 uuid_minmax_ops 2950 t 2950
    brin 10157 uuid_minmax_multi_ops 4614 uuid_minmax_multi_ops 2950 f 2950
    brin 10158 uuid_bloom_ops 4589 uuid_bloom_ops 2950 f 2950
    brin 10159 range_inclusion_ops 4103 range_inclusion_ops 3831 t 3831
    brin 10160 pg_lsn_minmax_ops 4082 pg_lsn_minmax_ops 3220 t 3220
    brin 10161 pg_lsn_minmax_multi_ops 4615 pg_lsn_minmax_multi_ops 3220 f 3220
    brin 10162 pg_lsn_bloom_ops 4590 pg_lsn_bloom_ops 3220 f 3220
    brin 10163 box_inclusion_ops 4104 box_inclusion_ops 603 t 603
    btree 1978 int4_ops 1976 integer_ops 23 t 0
    btree 1979 int2_ops 1976 integer_ops 21 t 0
    btree 1981 oid_ops 1989 oid_ops 26 t 0
    btree 3122 date_ops 434 datetime_ops 1082 t 0
    btree 3123 float8_ops 1970 float_ops 701 t 0
    btree 3124 int8_ops 1976 integer_ops 20 t 0
    btree 3125 numeric_ops 1988 numeric_ops 1700 t 0
    btree 3126 text_ops 1994 text_ops 25 t 0
    btree 3127 timestamptz_ops 434 datetime_ops 1184 t 0
    btree 3128 timestamp_ops 434 datetime_ops 1114 t 0
    btree 4217 text_pattern_ops 2095 text_pattern_ops 25 f 0
    btree 4218 varchar_pattern_ops 2095 text_pattern_ops 25 f 0
    btree 4219 bpchar_pattern_ops 2097 bpchar_pattern_ops 1042 f 0
    btree 10000 array_ops 397 array_ops 2277 t 0
    btree 10003 bool_ops 424 bool_ops 16 t 0
    btree 10004 bpchar_ops 426 bpchar_ops 1042 t 0
    btree 10006 bytea_ops 428 bytea_ops 17 t 0
    btree 10007 char_ops 429 char_ops 18 t 0
    btree 10009 cidr_ops 1974 network_ops 869 f 0
    btree 10012 float4_ops 1970 float_ops 700 t 0
    btree 10015 inet_ops 1974 network_ops 869 t 0
    btree 10022 interval_ops 1982 interval_ops 1186 t 0
    btree 10028 name_ops 1994 text_ops 19 t 2275
    btree 10034 record_ops 2994 record_ops 2249 t 0
    btree 10036 record_image_ops 3194 record_image_ops 2249 f 0
    btree 10038 time_ops 1996 time_ops 1083 t 0
    btree 10041 timetz_ops 2000 timetz_ops 1266 t 0
    btree 10044 varchar_ops 1994 text_ops 25 f 0
    btree 10065 uuid_ops 2968 uuid_ops 2950 t 0
    btree 10069 enum_ops 3522 enum_ops 3500 t 0
    btree 10076 range_ops 3901 range_ops 3831 t 0
    btree 10088 jsonb_ops 4033 jsonb_ops 3802 t 0
    gin 10064 array_ops 2745 array_ops 2277 t 2283
    gin 10090 jsonb_ops 4036 jsonb_ops 3802 t 25
    gin 10091 jsonb_path_ops 4037 jsonb_path_ops 3802 f 23
    gin 4290000100 gin_trgm_ops 4290000101 gin_trgm_ops 25 f 23
    gist 10017 inet_ops 3550 network_ops 869 f 0
    gist 10060 box_ops 2593 box_ops 603 t 0
    gist 10061 point_ops 1029 point_ops 600 t 603
    gist 10063 circle_ops 2595 circle_ops 718 t 603
    gist 10078 range_ops 3919 range_ops 3831 t 0
    gist 4290000102 gist_oid_ops 4290000103 gist_oid_ops 26 t 0
    gist 4290000104 gist_int2_ops 4290000105 gist_int2_ops 21 t 0
    gist 4290000106 gist_int4_ops 4290000107 gist_int4_ops 23 t 0
    gist 4290000108 gist_int8_ops 4290000109 gist_int8_ops 20 t 0
    gist 4290000110 gist_float4_ops 4290000111 gist_float4_ops 700 t 0
    gist 4290000112 gist_float8_ops 4290000113 gist_float8_ops 701 t 0
    gist 4290000114 gist_timestamp_ops 4290000115 gist_timestamp_ops 1114 t 0
    gist 4290000116 gist_timestamptz_ops 4290000117 gist_timestamptz_ops 1184 t 0
    gist 4290000118 gist_time_ops 4290000119 gist_time_ops 1083 t 0
    gist 4290000120 gist_timetz_ops 4290000121 gist_timetz_ops 1266 t 0
    gist 4290000122 gist_date_ops 4290000123 gist_date_ops 1082 t 0
    gist 4290000124 gist_interval_ops 4290000125 gist_interval_ops 1186 t 0
    gist 4290000126 gist_text_ops 4290000127 gist_text_ops 25 t 0
    gist 4290000128 gist_bpchar_ops 4290000129 gist_bpchar_ops 1042 t 0
    gist 4290000130 gist_bytea_ops 4290000131 gist_bytea_ops 17 t 0
    gist 4290000132 gist_numeric_ops 4290000133 gist_numeric_ops 1700 t 0
    gist 4290000134 gist_inet_ops 4290000135 gist_inet_ops 869 t 0
    gist 4290000136 gist_uuid_ops 4290000137 gist_uuid_ops 2950 t 0
    gist 4290000138 gist_enum_ops 4290000139 gist_enum_ops 3500 t 0
    gist 4290000140 gist_bool_ops 4290000141 gist_bool_ops 16 t 0
    hash 10001 array_ops 627 array_ops 2277 t 0
    hash 10005 bpchar_ops 427 bpchar_ops 1042 t 0
    hash 10008 char_ops 431 char_ops 18 t 0
    hash 10010 cidr_ops 1975 network_ops 869 f 0
    hash 10011 date_ops 435 date_ops 1082 t 0
    hash 10013 float4_ops 1971 float_ops 700 t 0
    hash 10014 float8_ops 1971 float_ops 701 t 0
    hash 10016 inet_ops 1975 network_ops 869 t 0
    hash 10019 int2_ops 1977 integer_ops 21 t 0
    hash 10020 int4_ops 1977 integer_ops 23 t 0
    hash 10021 int8_ops 1977 integer_ops 20 t 0
    hash 10023 interval_ops 1983 interval_ops 1186 t 0
    hash 10029 name_ops 1995 text_ops 19 t 0
    hash 10030 numeric_ops 1998 numeric_ops 1700 t 0
    hash 10031 oid_ops 1990 oid_ops 26 t 0
    hash 10035 record_ops 6194 record_ops 2249 t 0
    hash 10037 text_ops 1995 text_ops 25 t 0
    hash 10039 time_ops 1997 time_ops 1083 t 0
    hash 10040 timestamptz_ops 1999 timestamptz_ops 1184 t 0
    hash 10042 timetz_ops 2001 timetz_ops 1266 t 0
    hash 10045 varchar_ops 1995 text_ops 25 f 0
    hash 10046 timestamp_ops 2040 timestamp_ops 1114 t 0
    hash 10048 bool_ops 2222 bool_ops 16 t 0
    hash 10049 bytea_ops 2223 bytea_ops 17 t 0
    hash 10056 text_pattern_ops 2229 text_pattern_ops 25 f 0
    hash 10057 varchar_pattern_ops 2229 text_pattern_ops 25 f 0
    hash 10058 bpchar_pattern_ops 2231 bpchar_pattern_ops 1042 f 0
    hash 10066 uuid_ops 2969 uuid_ops 2950 t 0
    hash 10070 enum_ops 3523 enum_ops 3500 t 0
    hash 10077 range_ops 3903 range_ops 3831 t 0
    hash 10089 jsonb_ops 4034 jsonb_ops 3802 t 0
    spgist 10018 inet_ops 3794 network_ops 869 t 0
    spgist 10079 range_ops 3474 range_ops 3831 t 0
    spgist 10083 box_ops 5000 box_ops 603 t 0
    spgist 10084 quad_point_ops 4015 quad_point_ops 600 t 0
    spgist 10085 kd_point_ops 4016 kd_point_ops 600 f 0
    spgist 10086 text_ops 4017 text_ops 25 t 0
    spgist 10087 poly_ops 5008 poly_ops 604 t 603
";

/// An operator class.
pub(crate) struct OperatorClass {
    pub(super) oid: i64,
    method: IndexMethod,
    pub(super) name: &'static str,
    family: i64,
    family_name: &'static str,
    input: u32,
    is_default: bool,
    key: i64,
}

static ALL: LazyLock<Vec<OperatorClass>> = LazyLock::new(|| {
    let mut all: Vec<OperatorClass> = CLASSES.lines().filter_map(read).collect();
    let own = |(method, first): (IndexMethod, i64)| {
        let ordered = all.iter().filter(|class| class.method == IndexMethod::Btree && class.is_default);
        let of = |(oid, class): (i64, &OperatorClass)| OperatorClass { oid, method, ..*class };
        (first..).zip(ordered).map(of).collect::<Vec<_>>()
    };
    let own = [(IndexMethod::Kiss, FIRST_OF_KISS), (IndexMethod::Bwd, FIRST_OF_BWD)].map(own);
    all.extend(own.into_iter().flatten());
    all
});

fn read(line: &'static str) -> Option<OperatorClass> {
    let words: Vec<&'static str> = line.split_ascii_whitespace().collect();
    let &[method, oid, name, family, family_name, input, is_default, key] = &words[..] else { return None };
    Some(OperatorClass {
        oid: oid.parse().ok()?,
        method: IndexMethod::named(method)?,
        name,
        family: family.parse().ok()?,
        family_name,
        input: input.parse().ok()?,
        is_default: is_default == "t",
        key: key.parse().ok()?,
    })
}

/// The type whose classes a type of columns has.
fn input_of(data_type: DataType) -> u32 {
    match data_type {
        DataType::Array(_) => ANY_ARRAY,
        DataType::Enum(_) => ANY_ENUM,
        DataType::Range(_) => ANY_RANGE,
        DataType::Text { .. } => pg_types::TEXT,
        DataType::Network(_) => pg_types::INET,
        other => pg_types::number_of(other),
    }
}

/// The class that an index has for a part of a type where none is named. That of addresses in a search tree PostgreSQL has for those
/// alone that ask for it.
pub(crate) fn default_of(method: IndexMethod, data_type: DataType) -> Option<&'static OperatorClass> {
    if let (IndexMethod::Gist, DataType::Network(_)) = (method, data_type) {
        return named(method, "inet_ops");
    }
    let input = input_of(data_type);
    ALL.iter().find(|class| class.method == method && class.is_default && class.input == input)
}

/// The class of a name.
pub(super) fn named(method: IndexMethod, name: &str) -> Option<&'static OperatorClass> {
    ALL.iter().find(|class| class.method == method && class.name == name)
}

/// Whether a class of a method takes a type, if there is one of this name.
pub(crate) fn accepts(method: IndexMethod, name: &str, data_type: DataType) -> Option<bool> {
    named(method, name).map(|class| class.input == input_of(data_type))
}

/// Whether the class of this name is that which its type has without a name.
pub(crate) fn is_default(method: IndexMethod, name: &str) -> bool {
    named(method, name).is_some_and(|class| class.is_default)
}

/// The schema that a class or family of this number is in.
fn schema_of(oid: i64) -> i64 {
    if oid < FIRST_OF_EXTENSIONS { CATALOG_OID } else { PUBLIC_OID }
}

impl OperatorClass {
    /// The extension that brings it in PostgreSQL, if any does.
    pub(super) fn extension(&self) -> Option<&'static str> {
        match self.method {
            _ if self.oid < FIRST_OF_EXTENSIONS => None,
            IndexMethod::Gin => Some("pg_trgm"),
            _ => Some("btree_gist"),
        }
    }

    /// Its name as a definition says it.
    pub(super) fn told(&self, hidden: &Hidden) -> String {
        match self.extension() {
            Some(_) => hidden.of_extension(self.name),
            None => self.name.to_owned(),
        }
    }

    /// Whether a definition has to name it: it is not what a type has without a name.
    pub(super) fn is_told(&self, data_type: DataType) -> bool {
        // PostgreSQL has no default for addresses in a search tree but by an extension.
        !self.is_default || default_of(self.method, data_type).is_none_or(|default| default.oid != self.oid)
    }
}

/// The classes of a database that has these extensions.
fn there<'a>(given: &'a [&str]) -> impl Iterator<Item = &'static OperatorClass> + use<'a> {
    ALL.iter().filter(|class| class.extension().is_none_or(|extension| given.contains(&extension)))
}

/// What of extensions is an operator class or family: the relation of which it is a row, its number, the extension.
pub(super) fn members() -> impl Iterator<Item = (&'static str, i64, &'static str)> {
    let of = |class: &'static OperatorClass| Some((class, class.extension()?));
    let both = |(class, extension): (&OperatorClass, &'static str)| {
        [("pg_opclass", class.oid, extension), ("pg_opfamily", class.family, extension)]
    };
    ALL.iter().filter_map(of).flat_map(both)
}

/// The rows of `pg_opclass`, of a database that has these extensions.
pub(super) fn classes(given: &[&str]) -> Vec<Row> {
    let row = |class: &OperatorClass| -> Row {
        vec![
            ("oid", Number(class.oid)),
            ("opcmethod", Number(class.method.number().into())),
            ("opcname", text(class.name)),
            ("opcnamespace", Number(schema_of(class.oid))),
            ("opcowner", Number(OWNER_OID)),
            ("opcfamily", Number(class.family)),
            ("opcintype", Number(class.input.into())),
            ("opcdefault", Truth(class.is_default)),
            ("opckeytype", Number(class.key)),
        ]
    };
    there(given).map(row).collect()
}

/// The rows of `pg_opfamily`.
pub(super) fn families(given: &[&str]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut seen = Vec::new();
    for class in there(given) {
        // A method of this database shares the families of the ordered classes.
        if seen.contains(&class.family) {
            continue;
        }
        seen.push(class.family);
        rows.push(vec![
            ("oid", Number(class.family)),
            ("opfmethod", Number(class.method.number().into())),
            ("opfname", text(class.family_name)),
            ("opfnamespace", Number(schema_of(class.family))),
            ("opfowner", Number(OWNER_OID)),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_read_and_has_a_number_of_its_own() {
        assert_eq!(CLASSES.lines().filter_map(read).count(), CLASSES.lines().filter(|line| !line.is_empty()).count());
        let mut numbers: Vec<i64> = ALL.iter().map(|class| class.oid).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
