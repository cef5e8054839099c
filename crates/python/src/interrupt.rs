//! Ctrl-C ends the statement that the main thread waits for.
//!
//! Python runs signal handlers on the main thread, between instructions: never while that thread is in a statement. So a handler of
//! our own stands before Python's, which it calls: it wakes a thread, and that cancels the statement. The statement ends with
//! SQLSTATE 57014, and the caller asks Python which exception its handler has raised.
//!
//! ```text
//! SIGINT ──▶ on_interrupt ──▶ eventfd ──▶ thread "lstore-interrupt" ──▶ CancelHandle::cancel
//!                 └──▶ Python's handler, which notes the signal            └──▶ statement: 57014 ──▶ KeyboardInterrupt
//! ```
//!
//! Statements have numbers. The handler notes which one ran, and the thread cancels that one alone: when it gets there the statement may
//! have ended, and the next one is not meant. Where libraries have the handler called twice for one signal, it is woken twice.
//!
//! A program that sets another handler replaces this one; so each statement of the main thread looks whether it still stands. Libraries
//! (Polars among them) set handlers that call the one before; so ours may be called by the one that it calls, and then calls the first of
//! all. Where signals are ignored or have their default effect, nothing is set.
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsRawFd, OwnedFd};
use sql::CancelHandle;

/// A statement that the main thread waits for, with its number.
struct Running {
    number: u64,
    statement: CancelHandle,
}

/// The one that it waits for now.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);
/// Its number, for the handler; 0 for none.
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// The number of the one that the last signal has met.
static MET: AtomicU64 = AtomicU64::new(0);

/// The descriptor that wakes the thread; -1 as long as there is none.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// A handler that stood before ours: its address, and whether it is told more than the signal's number.
struct Chained {
    address: AtomicUsize,
    is_informed: AtomicBool,
}

impl Chained {
    const fn none() -> Chained {
        Chained { address: AtomicUsize::new(0), is_informed: AtomicBool::new(false) }
    }

    fn set(&self, action: &libc::sigaction) {
        self.is_informed.store(action.sa_flags & libc::SA_SIGINFO != 0, Ordering::Relaxed);
        self.address.store(action.sa_sigaction, Ordering::Relaxed);
    }

    /// Calls the handler, if there is one.
    fn call(&self, signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        match self.address.load(Ordering::Relaxed) {
            0 => {}
            address if self.is_informed.load(Ordering::Relaxed) => {
                // SAFETY: `set` stored the address of a handler with this signature, as its flags said.
                let handler: InformedHandler = unsafe { std::mem::transmute(address) };
                handler(signal, info, context);
            }
            address => {
                // SAFETY: `set` stored the address of a handler that takes the number of the signal and nothing else.
                let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(address) };
                handler(signal);
            }
        }
    }
}

type InformedHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// The handler that ours stands before, and the first of them.
static NEXT: Chained = Chained::none();
static FIRST: Chained = Chained::none();

/// How many calls of ours have not returned: a handler that was set after ours calls ours again where ours stands before it.
static DEPTH: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_interrupt(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the location of this thread's `errno`, which what was interrupted may still have to read.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: see above.
    let before = unsafe { *errno };
    MET.store(NUMBER.load(Ordering::Relaxed), Ordering::Release);
    let one = 1u64.to_ne_bytes();
    // SAFETY: writing is allowed in a handler; the descriptor is never closed, and the bytes are there.
    unsafe { libc::write(WAKE.load(Ordering::Relaxed), one.as_ptr().cast(), one.len()) };
    // SAFETY: see above.
    unsafe { *errno = before };
    let chained = if DEPTH.fetch_add(1, Ordering::Relaxed) == 0 { &NEXT } else { &FIRST };
    chained.call(signal, info, context);
    DEPTH.fetch_sub(1, Ordering::Relaxed);
}

/// Starts the thread; whether there is one.
fn start() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let Ok(wake) = eventfd(0, EventfdFlags::CLOEXEC) else { return false };
        WAKE.store(wake.as_raw_fd(), Ordering::Relaxed);
        let thread = std::thread::Builder::new().name("lstore-interrupt".to_owned());
        thread.spawn(move || cancel_when_woken(&wake)).is_ok()
    })
}

fn cancel_when_woken(wake: &OwnedFd) {
    let mut count = [0; 8];
    loop {
        match rustix::io::read(wake, &mut count) {
            Ok(_) => {
                let met = MET.load(Ordering::Acquire);
                // No other statement begins while this is held.
                let running = RUNNING.lock();
                if let Some(Running { statement, .. }) = running.as_ref().filter(|running| running.number == met) {
                    // Whether there was something to cancel is of no interest here.
                    let _ = statement.cancel();
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// The address of our handler, as the system keeps it.
fn own_handler() -> usize {
    on_interrupt as InformedHandler as usize
}

/// Puts our handler before the one that is there, if there is one.
fn stand_before() {
    // SAFETY: a structure of numbers and a set of signals, for which zeros are values.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action this fills the structure.
    if unsafe { libc::sigaction(libc::SIGINT, std::ptr::null(), &mut action) } != 0 {
        return;
    }
    let found = action.sa_sigaction;
    if found == own_handler() || found == libc::SIG_DFL || found == libc::SIG_IGN || !start() {
        return;
    }
    if FIRST.address.load(Ordering::Relaxed) == 0 {
        FIRST.set(&action);
    }
    NEXT.set(&action);
    action.sa_sigaction = own_handler();
    action.sa_flags |= libc::SA_SIGINFO;
    // SAFETY: the action is the one that was there, with a handler that is as careful as a handler has to be.
    unsafe { libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut()) };
}

thread_local! {
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether this is the thread on which Python runs handlers of signals.
fn is_main_thread() -> bool {
    IS_MAIN.get().unwrap_or_else(|| {
        let is_main = rustix::process::getpid() == rustix::thread::gettid();
        IS_MAIN.set(Some(is_main));
        is_main
    })
}

/// A statement that Ctrl-C ends, until this is dropped. None on other threads than the main one.
pub(crate) struct Interruptible {
    is_noted: bool,
    /// The statement around it, where one is run while another waits.
    around: Option<Running>,
}

/// Says which statement the main thread waits for from now on; returns the one before.
fn run(running: Option<Running>) -> Option<Running> {
    let mut known = RUNNING.lock();
    NUMBER.store(running.as_ref().map_or(0, |running| running.number), Ordering::Relaxed);
    std::mem::replace(&mut known, running)
}

/// As [`run`], of a statement that begins.
fn begin(statement: &CancelHandle) -> Option<Running> {
    static BEGUN: AtomicU64 = AtomicU64::new(0);
    let number = BEGUN.fetch_add(1, Ordering::Relaxed) + 1;
    run(Some(Running { number, statement: statement.clone() }))
}

impl Interruptible {
    /// # Errors
    /// The exception of a handler that is due already.
    pub(crate) fn enter(py: Python<'_>, statement: &CancelHandle) -> PyResult<Interruptible> {
        if !is_main_thread() {
            return Ok(Interruptible { is_noted: false, around: None });
        }
        stand_before();
        let around = begin(statement);
        let entered = Interruptible { is_noted: true, around };
        // A signal that came before is Python's; one that comes from here on finds the statement.
        py.check_signals()?;
        Ok(entered)
    }

    /// As [`enter`](Self::enter), for a caller that may not hold the interpreter.
    pub(crate) fn without_interpreter(statement: &CancelHandle) -> Interruptible {
        if !is_main_thread() {
            return Interruptible { is_noted: false, around: None };
        }
        stand_before();
        Interruptible { is_noted: true, around: begin(statement) }
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        if self.is_noted {
            run(self.around.take());
        }
    }
}
