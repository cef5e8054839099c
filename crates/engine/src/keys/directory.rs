//! The directory of an image: which blob has which of its runs, and the first entry of each, so that a run is read when it is needed.
//!
//! ```text
//! directory   kind, 9 (8 bits) | format, 1 (8) | section | section | ...        a section for each kind of keys
//! section     bytes of the run (32) | the first entries, as a run of their own | for each of them the place of its run
//! place       file (64) | offset (64) | length (32) | checksum (32)
//! ```
//!
//! The first entry of a run is the least that may be in it: of a key whose records are listed it has the least Rid. The reader believes
//! nothing of what it reads.
use types::BlobRef;

use super::entries::Entry;
use super::runs::{Run, write_run};

const KIND: u8 = 9;
const FORMAT: u8 = 1;
const PLACE_BYTES: usize = 24;

/// Writes the directory of runs.
pub(crate) fn write_directory(firsts: &[Entry], places: &[BlobRef]) -> Vec<u8> {
    debug_assert_eq!(firsts.len(), places.len(), "invariant 8: a run without a place");
    let (mut bytes, mut run, mut done) = (vec![KIND, FORMAT], Vec::new(), 0);
    while done < firsts.len() {
        run.clear();
        let count = write_run(&firsts[done..], &mut run);
        bytes.extend((run.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&run);
        for BlobRef { file, offset, len, checksum } in &places[done..done + count] {
            bytes.extend(file.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            bytes.extend(len.to_le_bytes());
            bytes.extend(checksum.to_le_bytes());
        }
        done += count;
    }
    debug_assert!(
        read_directory(&bytes).is_ok_and(|read| read.len() == firsts.len()),
        "invariant 8: it would not be read"
    );
    bytes
}

/// Reads a directory.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read_directory(bytes: &[u8]) -> Result<Vec<(Entry, BlobRef)>, &'static str> {
    const SHORT: &str = "it ends early";
    let (head, mut rest) = bytes.split_at_checked(2).ok_or(SHORT)?;
    if head != [KIND, FORMAT] {
        return Err("it is none of an index, or of a format that is not known");
    }
    let mut runs: Vec<(Entry, BlobRef)> = Vec::new();
    while !rest.is_empty() {
        let (len, behind) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
        let (run, behind) = behind.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or(SHORT)?;
        let firsts = Run::read(run)?.into_entries();
        let (places, behind) = firsts
            .len()
            .checked_mul(PLACE_BYTES)
            .and_then(|len| behind.split_at_checked(len))
            .filter(|_| !firsts.is_empty())
            .ok_or(SHORT)?;
        runs.extend(firsts.into_iter().zip(places.chunks_exact(PLACE_BYTES).map(place)));
        rest = behind;
    }
    if runs.is_sorted_by(|one, next| one.0 < next.0) { Ok(runs) } else { Err("its runs are out of order") }
}

fn place(bytes: &[u8]) -> BlobRef {
    let wide = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let narrow = |at: usize| (wide(at) & u64::from(u32::MAX)) as u32;
    BlobRef { file: wide(0), offset: wide(8), len: narrow(16), checksum: (wide(16) >> 32) as u32 }
}

#[cfg(test)]
mod tests {
    use types::Rid;

    use super::*;
    use crate::keys::order::IndexKey;

    #[test]
    fn runs_come_back_with_their_places_and_nothing_else_is_read() {
        let blob =
            |at: u64| BlobRef { file: at << 40, offset: at << 50 | 1, len: at as u32 + 7, checksum: !(at as u32) };
        let words = (0..300).map(|at| (IndexKey::Word(at / 2), Rid::base(0, at as usize)));
        let bytes = (0..3).map(|at| (IndexKey::Bytes([at, 7].into()), Rid::base(1, 0)));
        let nulls = (0..2).map(|at| (IndexKey::Null, Rid::base(2, at)));
        let firsts: Vec<Entry> = words.chain(bytes).chain(nulls).collect();
        let places: Vec<BlobRef> = (0..firsts.len() as u64).map(blob).collect();
        let written = write_directory(&firsts, &places);
        let read = read_directory(&written).unwrap();
        assert!(read.iter().map(|(first, _)| first).eq(&firsts) && read.iter().map(|(_, place)| place).eq(&places));
        assert!(read_directory(&write_directory(&[], &[])).unwrap().is_empty());
        for at in 0..written.len() {
            if let Ok(read) = read_directory(&written[..at]) {
                // Cut between two sections.
                assert!(firsts.starts_with(&read.into_iter().map(|(first, _)| first).collect::<Vec<_>>()));
            }
            let mut damaged = written.clone();
            damaged[at] ^= 1 << (at % 8);
            let _any = read_directory(&damaged);
        }
    }

    #[test]
    fn runs_out_of_order_are_refused() {
        let firsts = [2, 1].map(|word| (IndexKey::Word(word), Rid::base(0, 0)));
        let mut run = Vec::new();
        write_run(&firsts, &mut run);
        let mut bytes = vec![KIND, FORMAT];
        bytes.extend((run.len() as u32).to_le_bytes());
        bytes.extend(run);
        bytes.extend([0; 2 * PLACE_BYTES]);
        assert_eq!(read_directory(&bytes), Err("its runs are out of order"));
    }
}
