//! The fuzz target of redo on its kept corpus.
use testkit::fuzz::replay;

#[test]
fn redo_is_refused_or_decodes_to_what_it_encodes() {
    replay("redo", 60_000, engine::fuzzing::redo);
}
