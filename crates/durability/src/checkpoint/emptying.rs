//! Which files are emptied: what lives in them is copied into the new checkpoint, so that they can go.
//!
//! A file goes only as a whole, so a single page that lives long would keep a large file for ever, and a small
//! checkpoint every minute would leave a file a minute. Two rules hold against it, and each bounds what it costs:
//!
//! - **Less than half of a file lives**: it is emptied. So the files of a checkpoint never take up more than twice what
//!   lives in them, give or take what died since the last one; and as emptying copies less than it frees, each byte put
//!   pays for less than one byte copied. (At a quarter it would be a third of a byte, and four times the space. Pages
//!   that live long are the rule here, and space is what users see, so half it is.)
//! - **More than 16 files are small**, their blobs less than a sixteenth of a full one: they are emptied, all at once. So there
//!   are not many more files than full ones would be, and what is copied for it is at most a full file's worth.
//!
//! A blob lives if the newest checkpoint refers to it. That is decided once, when a checkpoint begins, so that a
//! file is emptied wholly or not at all.

use std::collections::HashSet;

use super::blob_file::FileUse;

const SMALL_FILES_MAX: usize = 16;
const SMALL_PART: u64 = 16;

/// The numbers of the files to be emptied, of those that the newest checkpoint needs.
pub(super) fn choose(files: &[FileUse], file_bytes: u64) -> HashSet<u64> {
    let small: Vec<&FileUse> = files.iter().filter(|file| file.share().0 < file_bytes / SMALL_PART).collect();
    let has_many = small.len() > SMALL_FILES_MAX;
    let small = small.into_iter().filter(|_| has_many);
    small.chain(files.iter().filter(|file| is_mostly_dead(file))).map(|file| file.number).collect()
}

fn is_mostly_dead(file: &FileUse) -> bool {
    let (all, live) = file.share();
    live < all.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::blob_file::PREFIX_BYTES;

    /// A file of `all` blobs of 100 bytes, `live` of which live.
    fn file(number: u64, all: u64, live: u64) -> FileUse {
        let bytes = 512 + all * (100 + PREFIX_BYTES);
        FileUse { number, salt: 1, bytes, live_blobs: live, live_bytes: live * 100 }
    }

    #[test]
    fn a_file_of_which_less_than_half_lives_is_emptied() {
        let files = [file(1, 100, 49), file(2, 100, 50), file(3, 100, 100), file(4, 1, 1), file(5, 2, 0)];
        assert_eq!(choose(&files, 1000), HashSet::from([1, 5]));
    }

    #[test]
    fn many_small_files_are_emptied_and_a_few_are_not() {
        let mut files: Vec<FileUse> = (1..=16).map(|number| file(number, 1, 1)).collect();
        files.push(file(90, 100, 100));
        assert!(choose(&files, 16_000).is_empty());
        files.push(file(17, 1, 1));
        assert_eq!(choose(&files, 16_000), (1..=17).collect());
        assert!(choose(&files, 1_000).is_empty(), "they are not small");
    }
}
