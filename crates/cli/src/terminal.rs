//! How large the terminal is.
use rustix::termios::{Winsize, tcgetwinsize};

/// How many characters a line of the terminal on standard output has.
pub(crate) fn columns() -> Option<usize> {
    size().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// How many lines the terminal on standard output has.
pub(crate) fn lines() -> Option<usize> {
    size().map(|size| usize::from(size.ws_row)).filter(|lines| *lines > 0)
}

fn size() -> Option<Winsize> {
    tcgetwinsize(std::io::stdout()).ok()
}
