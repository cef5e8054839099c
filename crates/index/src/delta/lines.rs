//! Zeroed memory that starts at a cache line and is backed by the system only where it is touched.
//!
//! An aligned request makes the allocator of `std` write the zeros itself, so that an array of which half is in use would
//! take memory for all of it. Here the request has the ordinary alignment, which the allocator serves with fresh
//! pages, and a few bytes more:
//!
//! ```text
//! | up to 48 bytes | start of the request | memory handed out ...
//! ^ start                                 ^ multiple of 64
//! ```
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Bytes of a cache line.
pub(super) const LINE_BYTES: usize = 64;

/// The alignment that the allocator gives in any case.
const ORDINARY: usize = 16;

/// Room for the alignment and for the start of the request in front.
const SLACK: usize = LINE_BYTES;

const _: () = assert!(size_of::<*mut u8>() <= ORDINARY && LINE_BYTES.is_multiple_of(ORDINARY));

fn layout(len_bytes: usize) -> Layout {
    Layout::from_size_align(len_bytes + SLACK, ORDINARY).expect("an allocation is smaller than the address space")
}

/// `len_bytes` zeros from the start of a cache line on.
pub(super) fn allocate(len_bytes: usize) -> NonNull<u8> {
    let layout = layout(len_bytes);
    // SAFETY: the layout has a size, if only for the slack.
    let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
    // A start at a line leaves a whole line in front, any other what is missing to the next one: 16 bytes or more.
    let head = LINE_BYTES - start.as_ptr().addr() % LINE_BYTES;
    // SAFETY: the head is at most the slack, so `len_bytes` are left behind it.
    let lines = unsafe { start.add(head) };
    // SAFETY: the head has room for a pointer, and its end is a multiple of 64.
    unsafe { lines.cast::<NonNull<u8>>().sub(1).write(start) };
    lines
}

/// Gives memory back.
///
/// # Safety
/// `lines` comes from [`allocate`] with the same `len_bytes`, is given back once and not used any more.
pub(super) unsafe fn free(lines: NonNull<u8>, len_bytes: usize) {
    // SAFETY: `allocate` has put the start of the request there.
    let start = unsafe { lines.cast::<NonNull<u8>>().sub(1).read() };
    // SAFETY: the start and the layout are those of the request.
    unsafe { dealloc(start.as_ptr(), layout(len_bytes)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_starts_at_a_line_and_is_zero_up_to_its_end() {
        for len_bytes in [0, 1, 63, 64, 65, 4_096, 1 << 20] {
            let held: Vec<_> = (0..9).map(|_| allocate(len_bytes)).collect();
            for lines in held {
                assert!(lines.as_ptr().addr().is_multiple_of(LINE_BYTES));
                for offset in (0..len_bytes).step_by(61).chain(len_bytes.checked_sub(1)) {
                    // SAFETY: within the memory, which belongs to this test.
                    let byte = unsafe { &mut *lines.as_ptr().add(offset) };
                    assert!(*byte == 0 || offset + 1 == len_bytes);
                    *byte = 0xA5;
                }
                // SAFETY: allocated above with this length.
                unsafe { free(lines, len_bytes) };
            }
        }
    }
}
