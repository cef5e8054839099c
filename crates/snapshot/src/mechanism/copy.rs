//! Copying much memory by several threads.
//!
//! The span is cut into one section for each thread (section 2.2 of the paper). A copy that is larger than half of the
//! last-level cache is written by non-temporal stores, which go to memory in whole cache lines and push nothing out of the caches
//! (section 2.1); below that, ordinary stores leave the copy where its reader finds it. More threads than a machine has memory
//! channels do not copy faster (section 3.1), and a thread costs tens of microseconds to start, so small spans get one.
use std::ptr::NonNull;

/// A thread is worth starting for so many bytes.
const THREAD_BYTES_MIN: usize = 8 << 20;

/// Sections are cut at multiples of a page.
const SECTION_UNIT: usize = 4096;

/// How a span is copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyPlan {
    /// The most threads that copy.
    pub(crate) threads: usize,
    /// From how many bytes on stores bypass the caches.
    pub(crate) bypass_from_bytes: usize,
}

#[derive(Clone, Copy)]
struct Section {
    from: *const u8,
    to: *mut u8,
    len: usize,
    bypasses: bool,
}

// SAFETY: sections do not overlap, and each is copied by the one thread that receives it.
unsafe impl Send for Section {}

/// Copies `len` bytes.
///
/// # Safety
/// Both spans have `len` bytes, do not overlap and begin at multiples of a page; nobody writes the first, and nobody else uses the
/// second.
pub(crate) unsafe fn copy(from: NonNull<u8>, to: NonNull<u8>, len: usize, plan: CopyPlan) {
    let thread_count = plan.threads.min(len / THREAD_BYTES_MIN).max(1);
    let unit_count = len.div_ceil(SECTION_UNIT);
    let bypasses = len >= plan.bypass_from_bytes;
    let sections = (0..thread_count).map(|index| {
        let start = unit_count * index / thread_count * SECTION_UNIT;
        let end = (unit_count * (index + 1) / thread_count * SECTION_UNIT).min(len);
        // SAFETY: the section lies within both spans.
        let (from, to) = unsafe { (from.as_ptr().cast_const().add(start), to.as_ptr().add(start)) };
        Section { from, to, len: end - start, bypasses }
    });
    let mut sections = sections.collect::<Vec<_>>().into_iter();
    let own = sections.next();
    std::thread::scope(|threads| {
        sections.for_each(|section| {
            threads.spawn(move || copy_section(section));
        });
        own.into_iter().for_each(copy_section);
    });
}

fn copy_section(section: Section) {
    let Section { from, to, len, bypasses } = section;
    #[cfg(target_arch = "x86_64")]
    if bypasses && to.addr().is_multiple_of(16) {
        let streamed = len / 64 * 64;
        // SAFETY: a section has `len` bytes on both sides, of which this copies the first `streamed`, and `to` is aligned.
        unsafe { stream(from, to, streamed) };
        // SAFETY: the rest of the section, likewise.
        unsafe { std::ptr::copy_nonoverlapping(from.add(streamed), to.add(streamed), len - streamed) };
        return;
    }
    let _ = bypasses;
    // SAFETY: a section has `len` bytes on both sides, which do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
}

/// Copies by non-temporal stores, a cache line at a time.
///
/// # Safety
/// Both spans have `len` bytes, a multiple of 64, and do not overlap; `to` is aligned to 16.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    for offset in (0..len).step_by(64) {
        // SAFETY: four pieces of 16 bytes from `offset` on lie within both spans. Stores of this width are part of x86-64.
        unsafe {
            let (from, to) = (from.add(offset).cast::<__m128i>(), to.add(offset).cast::<__m128i>());
            let line = [0, 1, 2, 3].map(|piece| _mm_loadu_si128(from.add(piece)));
            for (piece, bytes) in line.into_iter().enumerate() {
                _mm_stream_si128(to.add(piece), bytes);
            }
        }
    }
    // SAFETY: the fence is part of x86-64. Non-temporal stores are not ordered with others, and the copy is to be complete before
    // anybody is told of it.
    unsafe { _mm_sfence() };
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::mapping::Mapping;

    #[test]
    fn every_byte_arrives_by_any_number_of_threads_with_and_without_the_caches() {
        for len in [1, 4096, 4096 + 80, 3 * THREAD_BYTES_MIN + 4096 + 7] {
            for (threads, bypass_from_bytes) in [(1, usize::MAX), (1, 0), (3, 0), (3, usize::MAX)] {
                let span = || Mapping::anonymous(len.next_multiple_of(SECTION_UNIT)).unwrap();
                let (from, to) = (span(), span());
                // SAFETY: both mappings have `len` bytes, and this test alone uses them.
                let (source, target) = unsafe {
                    let source = std::slice::from_raw_parts_mut(from.start().as_ptr(), len);
                    source.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 31 % 251) as u8);
                    copy(from.start(), to.start(), len, CopyPlan { threads, bypass_from_bytes });
                    (&*source, std::slice::from_raw_parts(to.start().as_ptr(), len))
                };
                assert!(source == target, "{len} bytes, {threads} threads, bypass from {bypass_from_bytes}");
            }
        }
    }
}
