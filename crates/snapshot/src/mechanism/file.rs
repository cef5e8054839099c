//! What [`super::rewire`] and [`super::protect`] share: memory that is a file, and snapshots that are further mappings of it.
//!
//! ```text
//! array       | page 0 | page 1 | page 2 | page 3 |   one mapping of the memory file, never rewired
//!                 |                 |        |
//! memory file | page 0 | page 1 | page 2 | page 3 |
//!                 |                 |        |
//! snapshot    | page 0 |   *    | page 2 | page 3 |   a second mapping, read only
//!                          |
//! copies               | page 1 |                     a file with holes, one for each snapshot
//! ```
//!
//! A private mapping of the file would be no snapshot, as it shows what others write to pages that it has not copied. So before
//! the array's page 1 is written for the first time, its bytes go to the same place of the snapshot's file of copies, and that
//! part of the snapshot's mapping is rewired to the file of copies, in one step. A reader sees the same bytes before and after,
//! and needs no latch and no test. The array's own mapping never falls into pieces and keeps its large pages.
//!
//! Each piece of a snapshot's mapping counts against `vm.max_map_count`. As a copy lies where its page lies, neighbours that were
//! both copied are one piece. When the pieces of an array's snapshots come near its limit, or those of all arrays near half of the
//! system's, the snapshot copies the rest at once and becomes one mapping of its file of copies: a physical snapshot.
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError};

use sync::blocking::Mutex;

use super::memory::{Image, read_here, reduce_here};
use crate::error::SnapshotError;
use crate::item::Reduce;
use crate::kind::Mechanism;
use crate::machine;
use crate::mapping::{Access, Mapping, memory_file};
use crate::sharing::{Preserve, Sharing};

/// The pages of a file and the snapshots that share them.
pub(crate) type FileSharing = Sharing<View>;

/// A memory file and the array's mapping of it.
pub(crate) struct MemoryFile {
    file: OwnedFd,
    pub(crate) live: Arc<Mapping>,
    granule_bytes: usize,
    reductions: [Reduce; 3],
    pub(crate) sharing: Arc<FileSharing>,
    pieces: Arc<Pieces>,
}

/// The mappings that the snapshots of an array have, and how many they may have.
#[derive(Debug)]
struct Pieces {
    used: AtomicUsize,
    limit: usize,
}

/// Those of all arrays of the process.
static OF_PROCESS: AtomicUsize = AtomicUsize::new(0);

/// As many as they may have: the rest of the system's limit is for what else the process maps.
static PROCESS_LIMIT: LazyLock<usize> = LazyLock::new(|| machine::mapping_limit() / 2);

impl Pieces {
    /// Whether a page in the middle of others may become a piece.
    fn has_room(&self) -> bool {
        let is_below = |used: &AtomicUsize, limit: usize| used.load(Ordering::Relaxed) + 2 <= limit;
        is_below(&self.used, self.limit) && is_below(&OF_PROCESS, *PROCESS_LIMIT)
    }

    fn grow(&self, growth: isize) {
        self.used.fetch_add(growth.cast_unsigned(), Ordering::Relaxed);
        OF_PROCESS.fetch_add(growth.cast_unsigned(), Ordering::Relaxed);
    }

    fn give_up(&self, pieces: usize) {
        self.used.fetch_sub(pieces, Ordering::Relaxed);
        OF_PROCESS.fetch_sub(pieces, Ordering::Relaxed);
    }
}

impl MemoryFile {
    /// Zeros, of which snapshots keep `granule_bytes` at a time.
    pub(crate) fn new(
        mechanism: Mechanism,
        len_bytes: usize,
        granule_bytes: usize,
        is_huge: bool,
        piece_limit: usize,
        reductions: [Reduce; 3],
    ) -> Result<MemoryFile, SnapshotError> {
        let refused =
            |reason| SnapshotError::refused(mechanism, format!("a file of {} KiB in memory", len_bytes >> 10), reason);
        let file = memory_file(len_bytes).map_err(refused)?;
        let live = Mapping::of_file(&file, len_bytes, Access::ReadWrite).map_err(refused)?;
        if is_huge {
            live.prefer_huge();
        }
        let sharing = Arc::new(Sharing::new(len_bytes / granule_bytes));
        let pieces = Arc::new(Pieces { used: AtomicUsize::new(0), limit: piece_limit });
        Ok(MemoryFile { file, live: Arc::new(live), granule_bytes, reductions, sharing, pieces })
    }

    /// Begins a snapshot; `then` runs before any page is kept for it. The gate is closed.
    pub(crate) fn begin(
        &self,
        mechanism: Mechanism,
        then: impl FnOnce() -> Result<(), SnapshotError>,
    ) -> Result<Box<dyn Image>, SnapshotError> {
        let (number, view) = self.sharing.begin(|| {
            let view =
                self.new_view().map_err(|reason| SnapshotError::refused(mechanism, "a second mapping", reason))?;
            then()?;
            Ok::<_, SnapshotError>(Arc::new(view))
        })?;
        Ok(Box::new(FileImage { number, view, sharing: self.sharing.clone(), reductions: self.reductions }))
    }

    fn new_view(&self) -> io::Result<View> {
        let len_bytes = self.live.len_bytes();
        Ok(View {
            live: self.live.clone(),
            mapping: Mapping::of_file(&self.file, len_bytes, Access::Read)?,
            copies: memory_file(len_bytes)?,
            granule_bytes: self.granule_bytes,
            kept: Mutex::new(Kept {
                bits: vec![0; (len_bytes / self.granule_bytes).div_ceil(64)],
                count: 0,
                pieces: 0,
                is_all: false,
            }),
            pieces: self.pieces.clone(),
        })
    }
}

/// A snapshot's mapping of the memory file and its file of copies.
#[derive(Debug)]
pub(crate) struct View {
    live: Arc<Mapping>,
    mapping: Mapping,
    copies: OwnedFd,
    granule_bytes: usize,
    kept: Mutex<Kept>,
    pieces: Arc<Pieces>,
}

/// Which pages of a snapshot are copies.
#[derive(Debug)]
struct Kept {
    bits: Vec<u64>,
    count: usize,
    /// The mappings beyond the first, at most.
    pieces: usize,
    /// Every page is a copy.
    is_all: bool,
}

impl Kept {
    fn has(&self, page: usize) -> bool {
        self.bits.get(page / 64).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// How many mappings more there are once `page` is a copy: it begins two, or joins its neighbours.
    fn growth(&self, page: usize) -> isize {
        let neighbours = usize::from(page > 0 && self.has(page - 1)) + usize::from(self.has(page + 1));
        2 - 2 * neighbours as isize
    }

    fn add(&mut self, page: usize) {
        self.bits[page / 64] |= 1 << (page % 64);
        self.count += 1;
    }
}

impl View {
    /// Copies `page_count` pages to the file of copies.
    fn copy_out(&self, page: usize, page_count: usize) -> io::Result<()> {
        let (offset, len_bytes) = (page * self.granule_bytes, page_count * self.granule_bytes);
        let from = self.live.at(offset, len_bytes);
        // SAFETY: the pages lie within the array's mapping, and nobody writes them: each is still to be kept for this snapshot,
        // and its writers wait for that.
        let mut bytes = unsafe { std::slice::from_raw_parts(from.as_ptr(), len_bytes) };
        while !bytes.is_empty() {
            let at = offset + len_bytes - bytes.len();
            match rustix::io::pwrite(&self.copies, bytes, at as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Copies all pages that are not kept yet, and makes the snapshot one mapping of its file of copies.
    fn keep_all(&self, kept: &mut Kept) -> io::Result<()> {
        let page_count = self.mapping.len_bytes() / self.granule_bytes;
        let mut page = 0;
        while page < page_count {
            let run = (page..page_count).take_while(|page| !kept.has(*page)).count();
            if run > 0 {
                self.copy_out(page, run)?;
            }
            page += run.max(1);
        }
        self.mapping.show(self.copies.as_fd(), 0, self.mapping.len_bytes(), Access::Read)?;
        self.pieces.give_up(kept.pieces);
        (kept.is_all, kept.pieces, kept.count) = (true, 0, page_count);
        Ok(())
    }
}

impl Preserve for View {
    fn preserve(&self, page: usize) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_all {
            return Ok(());
        }
        let growth = kept.growth(page);
        if growth > 0 && !self.pieces.has_room() {
            return self.keep_all(&mut kept);
        }
        self.copy_out(page, 1)?;
        let offset = page * self.granule_bytes;
        self.mapping.show(self.copies.as_fd(), offset, self.granule_bytes, Access::Read)?;
        kept.add(page);
        kept.pieces = kept.pieces.checked_add_signed(growth).expect("a run of copies has two ends");
        self.pieces.grow(growth);
        Ok(())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.pieces.give_up(kept.pieces);
    }
}

struct FileImage {
    number: u64,
    view: Arc<View>,
    sharing: Arc<FileSharing>,
    reductions: [Reduce; 3],
}

impl Image for FileImage {
    fn bytes(&self) -> Option<NonNull<u8>> {
        Some(self.view.mapping.start())
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), SnapshotError> {
        let start = self.view.mapping.at(offset, into.len());
        // SAFETY: the part lies within the snapshot's mapping, whose bytes do not change: before the memory behind them does,
        // they are rewired to a copy.
        unsafe { read_here(start, 0, into) };
        Ok(())
    }

    fn reduce(&self, number: usize, offset: usize, len: usize) -> Result<[u8; 16], SnapshotError> {
        // SAFETY: the caller passes a range of the array's items, and the bytes do not change, as above.
        Ok(unsafe { reduce_here(self.reductions[number], self.view.mapping.start(), offset, len) })
    }

    fn own_bytes(&self) -> usize {
        self.view.kept.lock().unwrap_or_else(PoisonError::into_inner).count * self.view.granule_bytes
    }
}

impl Drop for FileImage {
    fn drop(&mut self) {
        self.sharing.end(self.number);
    }
}
