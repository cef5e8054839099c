//! Names that nobody gave: of indexes, constraints and sequences, put together as PostgreSQL does.
//!
//! ```text
//! table, columns, label      orders + (customer) + fkey            -> orders_customer_fkey
//! with a number if taken     orders + (customer) + fkey + 1        -> orders_customer_fkey1
//! at most 63 bytes           the longer of table and columns is cut, byte by byte, until all of it fits
//! ```
use engine::{name_in_schema, schema_and_name};

/// The most that PostgreSQL keeps of a name.
const NAME_BYTES: usize = 63;

/// The first of the names of this kind that is free. `table` is a table's name in the catalog, and the name is in its schema.
pub(crate) fn free_name(table: &str, columns: &str, label: &str, is_free: impl Fn(&str) -> bool) -> String {
    let (schema, table) = schema_and_name(table);
    let numbered = (1..).map(|number| format!("{label}{number}"));
    let mut names = std::iter::once(label.to_owned())
        .chain(numbered)
        .map(|label| name_in_schema(schema, &made_name(table, columns, &label)));
    names.find(|name| is_free(name)).expect("numbers do not end")
}

/// A name of three parts, the second of which may be empty.
fn made_name(first: &str, second: &str, label: &str) -> String {
    let joints = 1 + usize::from(!second.is_empty());
    let room = NAME_BYTES.saturating_sub(label.len() + joints);
    let (mut first_bytes, mut second_bytes) = (first.len(), second.len());
    while first_bytes + second_bytes > room {
        *(if first_bytes > second_bytes { &mut first_bytes } else { &mut second_bytes }) -= 1;
    }
    let cut = |name: &str, bytes: usize| name[..name.floor_char_boundary(bytes)].to_owned();
    let parts = [cut(first, first_bytes), cut(second, second_bytes), label.to_owned()];
    let said = parts.iter().enumerate().filter(|(at, _)| *at != 1 || !second.is_empty()).map(|(_, part)| part.as_str());
    let name = said.collect::<Vec<_>>().join("_");
    debug_assert!(name.len() <= NAME_BYTES, "{name} would be cut where it is looked up");
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_postgresql_cuts_them() {
        let (table, column) = ("t".repeat(63), "c".repeat(44));
        assert_eq!(made_name("orders", "customer", "fkey"), "orders_customer_fkey");
        assert_eq!(made_name("orders", "", "check"), "orders_check");
        assert_eq!(made_name(&table, "id", "seq"), format!("{}_id_seq", "t".repeat(56)));
        assert_eq!(
            made_name(&table, &format!("{column}_b"), "idx"),
            format!("{}_{}_idx", "t".repeat(29), "c".repeat(29))
        );
        assert_eq!(made_name(&table, &column, "idx1"), format!("{}_{}_idx1", "t".repeat(29), "c".repeat(28)));
        assert_eq!(made_name(&"ä".repeat(40), "", "check"), format!("{}_check", "ä".repeat(28)));
    }

    #[test]
    fn the_first_free_one_is_taken_in_the_schema_of_the_table() {
        let in_s = |name| name_in_schema("s", name);
        let taken = [in_s("t_a_key"), in_s("t_a_key1"), "t_a_key2".to_owned()];
        let is_free = |name: &str| !taken.iter().any(|known| known == name);
        assert_eq!(free_name(&in_s("t"), "a", "key", is_free), in_s("t_a_key2"));
        assert_eq!(free_name("t", "a", "key", is_free), "t_a_key");
    }
}
