//! The fuzz targets of SQL on their kept corpus.
use testkit::fuzz::replay;

#[test]
fn no_statement_makes_the_front_end_panic() {
    replay("statements", 500, sql::fuzzing::statements);
}

#[test]
fn no_rows_make_copy_panic() {
    replay("copy", 1_000, sql::fuzzing::copy);
}
