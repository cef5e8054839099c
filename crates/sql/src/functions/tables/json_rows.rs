//! Functions that make rows of the parts of a JSON value, or of pairs of texts, each written as `unnest` of arrays.

/// Functions that give rows: their names, the functions that give their columns as arrays, and the names of the columns.
const GIVE_ROWS: [(&str, &[&str], &[&str]); 15] = [
    ("jsonb_array_elements", &["\0jsonb items"], &["value"]),
    ("jsonb_array_elements_text", &["\0jsonb item texts"], &["value"]),
    ("jsonb_object_keys", &["\0jsonb keys"], &["jsonb_object_keys"]),
    ("jsonb_each", &["\0jsonb names", "\0jsonb values"], &["key", "value"]),
    ("jsonb_each_text", &["\0jsonb names", "\0jsonb value texts"], &["key", "value"]),
    ("jsonb_path_query", &["\0jsonb path items"], &["jsonb_path_query"]),
    ("jsonb_path_query_tz", &["\0jsonb path items tz"], &["jsonb_path_query_tz"]),
    ("json_array_elements", &["\0json items"], &["value"]),
    ("json_array_elements_text", &["\0json item texts"], &["value"]),
    ("json_object_keys", &["\0json keys"], &["json_object_keys"]),
    ("json_each", &["\0json names", "\0json values"], &["key", "value"]),
    ("json_each_text", &["\0json names", "\0json value texts"], &["key", "value"]),
    ("skeys", &["akeys"], &["skeys"]),
    ("svals", &["avals"], &["svals"]),
    ("each", &["akeys", "avals"], &["key", "value"]),
];

/// For such a function, the functions that give its columns as arrays, and their names.
pub(crate) fn columns_of(name: &str) -> Option<(&'static [&'static str], &'static [&'static str])> {
    let found = GIVE_ROWS.iter().find(|(known, ..)| *known == name);
    found.map(|(_, functions, names)| (*functions, *names))
}
