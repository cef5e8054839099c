//! How large the terminal is, and whether something has been typed.
use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{Winsize, tcgetwinsize};

/// How many characters a line of the terminal on standard output has.
pub(crate) fn columns() -> Option<usize> {
    size().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// How many lines the terminal on standard output has.
pub(crate) fn lines() -> Option<usize> {
    size().map(|size| usize::from(size.ws_row)).filter(|lines| *lines > 0)
}

/// Waits until there is something to read on standard input, but not for longer; whether there is.
pub(crate) fn has_input(patience: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let timeout = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
    match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        // A signal has come, after which its receiver may have something to say.
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn size() -> Option<Winsize> {
    tcgetwinsize(io::stdout()).ok()
}
