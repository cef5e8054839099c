//! Threads on processors of their own, for measurements in which threads must run at once.

/// Lets the calling thread run on one processor only, the `number`th of those that it may use now, counted from 0; whether that
/// was done. It is not where there are fewer, nor on systems other than Linux.
pub fn pin_thread(number: usize) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::mem::size_of;
        // SAFETY: a set of processors is a mask of bits, of which all values are valid, zero among them.
        let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a set of this frame, of the size that is told; 0 is the calling thread.
        let told = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed) };
        if told != 0 {
            return false;
        }
        // SAFETY: the number is below that of the bits of a set.
        let is_allowed = |processor: &usize| unsafe { libc::CPU_ISSET(*processor, &allowed) };
        let Some(processor) = (0..libc::CPU_SETSIZE as usize).filter(is_allowed).nth(number) else { return false };
        // SAFETY: as above: a mask of bits, a number below that of its bits, and a pointer to a set of this frame.
        unsafe {
            let mut chosen: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(processor, &mut chosen);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const chosen) == 0
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = number;
        false
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_pinned_may_use_one_processor() {
        let pinned = std::thread::spawn(|| {
            let before = std::thread::available_parallelism().map_or(1, usize::from);
            (pin_thread(before - 1), std::thread::available_parallelism().map_or(0, usize::from), pin_thread(1))
        });
        assert_eq!(pinned.join().unwrap(), (true, 1, false), "then there is no second one");
    }
}
