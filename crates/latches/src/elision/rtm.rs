//! Restricted Transactional Memory: `xbegin`, `xend`, `xabort` and `xtest`, by inline assembly (the intrinsics of the
//! standard library are unstable).
//!
//! `xbegin` leaves `eax` alone when the transaction starts. When it aborts, registers and memory are as they were at
//! `xbegin`, execution goes on at its target (here the next instruction), and `eax` says why:
//!
//! ```text
//! bit 31 .. 24      5        4       3          2          1         0
//! | xabort code | nested | debug | overflow | conflict | may retry | xabort |
//! ```
//!
//! To the compiler an abort therefore looks like an `xbegin` that failed at once. Recent microcode may let every
//! transaction abort with status 0; the retry limits and the adaptivity deal with that.
use super::backend::{AbortCause, Backend, Begin};

#[cfg(any(target_arch = "x86_64", test))]
const EXPLICIT: u32 = 1 << 0;
#[cfg(any(target_arch = "x86_64", test))]
const CONFLICT: u32 = 1 << 2;
#[cfg(any(target_arch = "x86_64", test))]
const OVERFLOW: u32 = 1 << 3;

/// The code with which a section ends that has found its latch held.
#[cfg(any(target_arch = "x86_64", test))]
const CODE_LATCH_BUSY: u32 = 0xff;

/// Proof that this processor has the instructions.
#[derive(Debug, Clone, Copy)]
pub struct RtmPermission(());

impl RtmPermission {
    /// The proof, if the processor has the instructions.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("rtm") {
            return Some(RtmPermission(()));
        }
        None
    }
}

/// The processor's transactions, where it has any.
#[derive(Debug, Clone, Copy)]
pub struct Rtm(Option<RtmPermission>);

impl Default for Rtm {
    fn default() -> Self {
        Rtm(RtmPermission::detect())
    }
}

/// The cause that the processor reports. A transaction may have several; the one that says most about trying again
/// comes first.
#[cfg(any(target_arch = "x86_64", test))]
fn cause_of(status: u32) -> AbortCause {
    if status & EXPLICIT != 0 {
        return if status >> 24 == CODE_LATCH_BUSY { AbortCause::LatchBusy } else { AbortCause::Explicit };
    }
    if status & OVERFLOW != 0 {
        AbortCause::Overflow
    } else if status & CONFLICT != 0 {
        AbortCause::Conflict
    } else {
        AbortCause::Other
    }
}

#[cfg(target_arch = "x86_64")]
mod instructions {
    use std::arch::asm;

    /// The value of `eax` while no abort has written it.
    const STARTED: u32 = u32::MAX;

    /// Begins a transaction: `Ok` inside it, `Err` with the status after its abort.
    ///
    /// # Safety
    ///
    /// The processor has the instruction.
    #[inline]
    pub unsafe fn begin() -> Result<(), u32> {
        let mut status = STARTED;
        // SAFETY: the caller has the permission. The block touches `eax` only, and memory counts as clobbered, so that
        // nothing of the section moves out of it.
        unsafe { asm!("xbegin 2f", "2:", inout("eax") status, options(nostack)) };
        if status == STARTED { Ok(()) } else { Err(status) }
    }

    /// # Safety
    ///
    /// The calling thread is in a transaction.
    #[inline]
    pub unsafe fn commit() {
        // SAFETY: by the caller's promise; outside a transaction the instruction would fault.
        unsafe { asm!("xend", options(nostack)) };
    }

    /// # Safety
    ///
    /// The processor has the instruction. Within a transaction it does not return.
    #[inline]
    pub unsafe fn abort_latch_busy() {
        // SAFETY: by the caller's promise; memory and registers go back to where the transaction began.
        unsafe { asm!("xabort 0xff", options(nostack)) };
    }

    /// Whether this thread is in a transaction.
    ///
    /// # Safety
    ///
    /// The processor has the instruction.
    #[inline]
    pub unsafe fn is_active() -> bool {
        let active: u8;
        // SAFETY: by the caller's promise; the instruction writes flags, and these into the register.
        unsafe { asm!("xtest", "setnz {0}", out(reg_byte) active, options(nostack, nomem)) };
        active != 0
    }
}

#[cfg(target_arch = "x86_64")]
// SAFETY: the processor makes transactions atomic, and aborts one when a line of its read set is written.
unsafe impl Backend for Rtm {
    #[inline]
    fn is_available(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    fn is_active(&self) -> bool {
        // SAFETY: the permission is there.
        self.0.is_some() && unsafe { instructions::is_active() }
    }

    #[inline]
    unsafe fn begin(&self) -> Begin {
        // SAFETY: transactions are available, as the caller promises: the permission is there.
        match unsafe { instructions::begin() } {
            Ok(()) => Begin::Started,
            Err(status) => Begin::Aborted(cause_of(status)),
        }
    }

    #[inline]
    unsafe fn commit(&self) {
        // SAFETY: the caller's promise, passed on.
        unsafe { instructions::commit() }
    }

    #[inline]
    unsafe fn abort_latch_busy(&self) {
        // SAFETY: the caller's promise, passed on.
        unsafe { instructions::abort_latch_busy() }
    }
}

#[cfg(not(target_arch = "x86_64"))]
// SAFETY: no transaction ever begins.
unsafe impl Backend for Rtm {
    fn is_available(&self) -> bool {
        false
    }

    fn is_active(&self) -> bool {
        false
    }

    unsafe fn begin(&self) -> Begin {
        Begin::Aborted(AbortCause::Other)
    }

    unsafe fn commit(&self) {}

    unsafe fn abort_latch_busy(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_word_tells_the_cause() {
        assert_eq!(cause_of(0), AbortCause::Other, "microcode that disables transactions");
        assert_eq!(cause_of(0b10), AbortCause::Other);
        assert_eq!(cause_of(0b110), AbortCause::Conflict);
        assert_eq!(cause_of(0b1000), AbortCause::Overflow);
        assert_eq!(cause_of(0b10_1100), AbortCause::Overflow, "a section that is too large conflicts more as well");
        assert_eq!(cause_of(0xff00_0001), AbortCause::LatchBusy);
        assert_eq!(cause_of(0x0700_0003), AbortCause::Explicit);
    }

    #[test]
    fn there_are_transactions_only_with_the_permission() {
        assert_eq!(Rtm::default().is_available(), RtmPermission::detect().is_some());
        assert!(!Rtm(None).is_available() && !Rtm(None).is_active());
    }
}
