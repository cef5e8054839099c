//! The fuzz target of messages on its kept corpus.
use testkit::fuzz::replay;

#[test]
fn messages_are_the_same_wherever_their_bytes_break() {
    replay("messages", 20_000, server::fuzzing::messages);
}
