//! Ctrl-C in the shell at a terminal: the statement that runs is cancelled, and the shell goes on.
//!
//! While a line is typed the line editor takes Ctrl-C itself. A thread waits for the signal otherwise, so that it finds a statement
//! wherever that is. Scripts are left to the signal's own meaning, which ends them.
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use sql::CancelHandle;

/// Whether the user has had enough of what runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// Has Ctrl-C cancel what a session runs from now on.
    ///
    /// # Errors
    /// If the signal cannot be waited for.
    pub(crate) fn cancel(&self, session: CancelHandle) -> io::Result<()> {
        let mut signals = Signals::new([SIGINT])?;
        let has_come = self.0.clone();
        thread::Builder::new().name("ctrl-c".to_owned()).spawn(move || {
            for _ in signals.forever() {
                has_come.store(true, Ordering::Relaxed);
                if session.cancel() {
                    // The signal stands at the end of a line; a terminal that is gone hears nothing.
                    let _ = writeln!(io::stderr(), "Cancel request sent");
                }
            }
        })?;
        Ok(())
    }

    /// Something begins that Ctrl-C ends.
    pub(crate) fn begin(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether Ctrl-C has come since.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
