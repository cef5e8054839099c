//! Room on the stack for trees that are walked by recursion: parsing, rewriting, cloning and dropping a statement.
//!
//! How deep a statement's tree is is not known before it is parsed, but it is no deeper than the text is long. So a caller
//! that works on a statement asks for room by the length of its text: short ones run where they are, and the others on a stack
//! of their own if that of the thread, which may be a library caller's small one, has not enough left. Memory of a stack is
//! taken as it is touched.
//!
//! The library's own recursion, its visitors' and parser's, looks at what is left of the stack and goes on on another one if
//! that is little. What it calls in between, ours among that, has to fit into that little, so it is told how much that is.
//! What is planned and run by the library is on threads with room enough ([`crate::interrupt::runtimes`]).
use std::sync::Once;

/// How much a byte of the text may take. A level of a tree is two bytes at the least, such as `+1` or `()`.
const BYTES_OF_BYTE: usize = if cfg!(debug_assertions) { 8 << 10 } else { 2 << 10 };

/// What is taken whatever the text is.
const BYTES_OF_NONE: usize = 256 << 10;

/// What the deepest of statements takes; [`crate::syntax::limits`] refuses deeper ones.
const BYTES_MAX: usize = 256 << 20;

/// What the library leaves at the least, and the stacks that it goes on on: the frames of an unoptimized build are large.
const BYTES_LEFT: usize = if cfg!(debug_assertions) { 4 << 20 } else { 512 << 10 };
const BYTES_OF_NEXT: usize = 16 << 20;

static TOLD: Once = Once::new();

/// Does what walks through the tree of a statement whose text is so long.
pub(crate) fn with_room<T>(text_len: usize, work: impl FnOnce() -> T) -> T {
    TOLD.call_once(|| {
        recursive::set_minimum_stack_size(BYTES_LEFT);
        recursive::set_stack_allocation_size(BYTES_OF_NEXT);
    });
    let needed = text_len.saturating_mul(BYTES_OF_BYTE).saturating_add(BYTES_OF_NONE).min(BYTES_MAX);
    stacker::maybe_grow(needed, needed, work)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{Database, Value};

    use crate::statements::copy::input::NoInput;
    use crate::{Outcome, Session, SessionOptions};

    /// Runs a statement in every way there is; whether it was run, in all of them.
    fn run_in_every_way(session: &mut Session, text: &str) -> Vec<Option<&'static str>> {
        let rows = |outcome: Outcome| match outcome {
            Outcome::Rows(rows) => rows.into_iter().collect::<Result<Vec<_>, _>>().map(drop),
            Outcome::Done(_) => Ok(()),
        };
        let run = session.execute(text).and_then(rows);
        let prepared = session.prepare(text, &[]).and_then(|prepared| {
            let prepared = Arc::new(prepared);
            session.describe(&prepared)?;
            session.execute_prepared(&prepared, &[] as &[Value], &mut NoInput).and_then(rows)
        });
        let named = session.execute(&format!("PREPARE p AS {text}")).and_then(|_| {
            let executed = session.execute("EXECUTE p").and_then(rows);
            session.execute("DEALLOCATE p").and(executed)
        });
        [run, prepared, named].into_iter().map(|done| done.err().map(|error| error.sqlstate)).collect()
    }

    fn run_deep_statements() {
        let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
        session.execute("CREATE TABLE t (id int PRIMARY KEY, a int)").unwrap();
        let nested = |open: &str, inner: &str, close: &str, depth| {
            format!("SELECT {}{inner}{} FROM t", open.repeat(depth), close.repeat(depth))
        };
        for deep in [
            nested("", "1", " + 1", 200),
            nested("(", "1", ")", 190),
            nested("abs(", "id", ")", 60),
            nested("CASE WHEN true THEN ", "id", " END", 60),
            format!("UPDATE t SET a = 1{} WHERE id > 1", " + 1".repeat(200)),
            format!("SELECT 1 WHERE 1 = 1{}", " OR 1 = 2".repeat(500)),
        ] {
            assert_eq!(run_in_every_way(&mut session, &deep), [None, None, None], "{}", &deep[..40]);
        }
        for too_deep in [nested("(", "1", ")", 20_000), nested("", "1", " + 1", 20_000)] {
            assert_eq!(run_in_every_way(&mut session, &too_deep), [Some("54001"); 3], "{}", &too_deep[..40]);
        }
    }

    #[test]
    fn a_caller_with_a_small_stack_runs_deep_statements() {
        let caller = std::thread::Builder::new().stack_size(1 << 20);
        caller.spawn(run_deep_statements).unwrap().join().unwrap();
    }
}
