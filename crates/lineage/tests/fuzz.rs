//! The fuzz targets of pages on their kept corpus.
use testkit::fuzz::replay;

#[test]
fn pages_are_refused_or_decode_to_what_they_encode() {
    replay("pages", 60_000, lineage::fuzzing::pages);
}
