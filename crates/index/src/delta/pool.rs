//! The allocator of nodes and of long values: it hands out memory front to back and takes none back before the index
//! goes. In the tuned form each core has one (tsx-index, section 5.2.2), so that two inserts need not meet here.
//!
//! ```text
//! newest chunk:  | previous, length | handed out ........ | next ->   left_bytes   |
//!                       v
//! older chunks:  | previous, length | handed out ............................. |
//! ```
//!
//! Only the writer of the tree allocates. Memory that it is going to need can be prepared outside its critical
//! section: a request to the system in there would abort a hardware transaction.
use std::ptr::{NonNull, null_mut};

use sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::lines::{self, LINE_BYTES};

const CHUNK_BYTES_MIN: usize = 2 << 10;
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// The head of a chunk; takes a line.
#[repr(C, align(64))]
struct Chunk {
    previous: *mut Chunk,
    len_bytes: usize,
}

const HEAD_BYTES: usize = size_of::<Chunk>();
const _: () = assert!(HEAD_BYTES == LINE_BYTES);

/// The allocator.
#[derive(Default)]
pub struct Pool {
    next: AtomicPtr<u8>,
    left_bytes: AtomicUsize,
    newest: AtomicPtr<Chunk>,
    /// A chunk that was prepared.
    spare: AtomicPtr<Chunk>,
    total_bytes: AtomicUsize,
}

impl Pool {
    /// The memory that the pool holds.
    pub(super) fn bytes(&self) -> usize {
        self.total_bytes.load(Ordering::Relaxed)
    }

    /// Sees to it that the next `len_bytes` need no request to the system, unless others take them meanwhile.
    #[inline]
    pub(super) fn prepare(&self, len_bytes: usize) {
        if self.left_bytes.load(Ordering::Relaxed) < len_bytes && self.spare.load(Ordering::Relaxed).is_null() {
            self.prepare_chunk(len_bytes);
        }
    }

    #[cold]
    fn prepare_chunk(&self, len_bytes: usize) {
        let chunk = self.new_chunk(len_bytes);
        let entered = self.spare.compare_exchange(null_mut(), chunk.as_ptr(), Ordering::Release, Ordering::Relaxed);
        if entered.is_err() {
            // SAFETY: the chunk is new and no other thread knows of it.
            unsafe { self.free_chunk(chunk) };
        }
    }

    /// Memory for `len_bytes` (not 0), zeroed, from a multiple of `alignment` on, which divides a line. Valid until the pool is
    /// dropped.
    ///
    /// # Safety
    /// No other thread is in this function for this pool, and calls follow one another by happens-before.
    pub(super) unsafe fn allocate(&self, len_bytes: usize, alignment: usize) -> NonNull<u8> {
        debug_assert!(len_bytes > 0 && LINE_BYTES.is_multiple_of(alignment));
        let next = self.next.load(Ordering::Relaxed);
        let padding = next.addr().wrapping_neg() % alignment;
        let left_bytes = self.left_bytes.load(Ordering::Relaxed);
        if padding + len_bytes <= left_bytes {
            self.left_bytes.store(left_bytes - padding - len_bytes, Ordering::Relaxed);
            // SAFETY: `left_bytes` of the newest chunk begin at `next`.
            let start = unsafe { next.add(padding) };
            // SAFETY: as above.
            self.next.store(unsafe { start.add(len_bytes) }, Ordering::Relaxed);
            return NonNull::new(start).expect("bytes are left in a chunk");
        }
        // SAFETY: the caller's promise.
        unsafe { self.allocate_in_new_chunk(len_bytes) }
    }

    /// A large value gets a chunk of its own, and the rest of the newest one stays in use.
    ///
    /// # Safety
    /// As for [`Pool::allocate`].
    #[cold]
    unsafe fn allocate_in_new_chunk(&self, len_bytes: usize) -> NonNull<u8> {
        let spare = NonNull::new(self.spare.swap(null_mut(), Ordering::Acquire));
        // SAFETY: the heads of prepared chunks are written, and the chunk now belongs to this thread.
        let is_enough = |chunk: NonNull<Chunk>| unsafe { chunk.as_ref() }.len_bytes >= HEAD_BYTES + len_bytes;
        if let Some(spare) = spare.filter(|spare| !is_enough(*spare)) {
            // SAFETY: the chunk was taken out of its place by this thread, and is put into the list once.
            unsafe { self.enter(spare) };
        }
        let mut chunk = spare.filter(|spare| is_enough(*spare)).unwrap_or_else(|| self.new_chunk(len_bytes));
        // SAFETY: as above, or the chunk is new.
        unsafe { self.enter(chunk) };
        // SAFETY: as above.
        let chunk_bytes = unsafe { chunk.as_mut() }.len_bytes;
        // SAFETY: a chunk is longer than its head.
        let start = unsafe { chunk.cast::<u8>().add(HEAD_BYTES) };
        let rest_bytes = chunk_bytes - HEAD_BYTES - len_bytes;
        if rest_bytes > self.left_bytes.load(Ordering::Relaxed) {
            // SAFETY: the rest of the chunk begins there.
            self.next.store(unsafe { start.add(len_bytes) }.as_ptr(), Ordering::Relaxed);
            self.left_bytes.store(rest_bytes, Ordering::Relaxed);
        }
        start
    }

    /// Puts a chunk into the list by which it is freed.
    ///
    /// # Safety
    /// The chunk comes from `new_chunk`, belongs to the caller alone and is in no list; no other thread enters one.
    unsafe fn enter(&self, mut chunk: NonNull<Chunk>) {
        // SAFETY: the caller's promise.
        unsafe { chunk.as_mut() }.previous = self.newest.load(Ordering::Relaxed);
        self.newest.store(chunk.as_ptr(), Ordering::Relaxed);
    }

    /// A chunk with room for `len_bytes`; chunks double in size, up to a limit.
    fn new_chunk(&self, len_bytes: usize) -> NonNull<Chunk> {
        let usual_bytes = self.bytes().clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let chunk_bytes = usual_bytes.max((HEAD_BYTES + len_bytes).next_multiple_of(LINE_BYTES));
        let chunk = lines::allocate(chunk_bytes).cast::<Chunk>();
        // SAFETY: the memory is new, and begins at a line.
        unsafe { chunk.write(Chunk { previous: null_mut(), len_bytes: chunk_bytes }) };
        self.total_bytes.fetch_add(chunk_bytes, Ordering::Relaxed);
        chunk
    }

    /// # Safety
    /// The chunk comes from `new_chunk` and belongs to the caller alone.
    unsafe fn free_chunk(&self, chunk: NonNull<Chunk>) {
        // SAFETY: the head was written when the chunk was made.
        let chunk_bytes = unsafe { chunk.as_ref() }.len_bytes;
        self.total_bytes.fetch_sub(chunk_bytes, Ordering::Relaxed);
        // SAFETY: allocated with this length, and the caller gives it up.
        unsafe { lines::free(chunk.cast(), chunk_bytes) };
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut next = *self.newest.get_mut();
        while let Some(chunk) = NonNull::new(next) {
            // SAFETY: chunks in the list are whole, and `enter` has set what is before them.
            next = unsafe { chunk.as_ref() }.previous;
            // SAFETY: the list is given up with the pool.
            unsafe { self.free_chunk(chunk) };
        }
        if let Some(spare) = NonNull::new(*self.spare.get_mut()) {
            // SAFETY: a spare chunk is in no list.
            unsafe { self.free_chunk(spare) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_handed_out_once() {
        let pool = Pool::default();
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for round in 0..2_000usize {
            let len_bytes = if round % 97 == 0 { 5_000 + round } else { 1 + round % 400 };
            let alignment = 1 << (round % 7);
            if round % 3 == 0 {
                pool.prepare(len_bytes);
            }
            // SAFETY: one thread.
            let start = unsafe { pool.allocate(len_bytes, alignment) };
            assert!(start.as_ptr().addr().is_multiple_of(alignment));
            for offset in 0..len_bytes {
                // SAFETY: within the memory just handed out.
                let byte = unsafe { &mut *start.as_ptr().add(offset) };
                assert_eq!(std::mem::replace(byte, 0xA5), 0);
            }
            taken.push((start.as_ptr().addr(), len_bytes));
        }
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "two spans overlap");
        let used: usize = taken.iter().map(|(_, len_bytes)| len_bytes).sum();
        assert!(pool.bytes() > used && pool.bytes() < 2 * used, "{} bytes for {used}", pool.bytes());
    }

    #[test]
    fn what_was_prepared_is_there_without_asking_the_system() {
        let pool = Pool::default();
        for len_bytes in [10, 3_000, 100_000, 10, 64] {
            pool.prepare(len_bytes);
            let before = pool.bytes();
            // SAFETY: one thread.
            unsafe { pool.allocate(len_bytes, 1) };
            assert_eq!(pool.bytes(), before);
        }
    }
}
