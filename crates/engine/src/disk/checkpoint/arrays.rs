//! The image of an array table in a checkpoint: what a snapshot of its array has, in parts.
//!
//! ```text
//! part    whole leaves, as they lie in the array: 64-bit words, little-endian
//! ```
//!
//! The snapshot is of one instant, and writers go on meanwhile. Parts without rows are left out, and so are the leaves after the
//! last row of a part. A part is written anew by each
//! checkpoint: rows that are updated in place leave hardly any part as it was.
use durability::CheckpointError;
use types::{BlobRef, Timestamp};

use super::manifest::{ArrayContents, RangeContents};
use crate::error::{Error, Result};
use crate::state::core::Core;
use crate::state::table_data::TableData;

/// About so many words are a part.
const PART_WORDS: usize = 1 << 17;

/// Writes the image of a table, if it is an array table, by `put`.
pub(super) fn take(
    core: &Core,
    data: &TableData,
    put: &mut dyn FnMut(&[u8]) -> Result<BlobRef, CheckpointError>,
) -> Result<Option<ArrayContents>> {
    let Some(array) = &data.array else { return Ok(None) };
    // A commit takes the latch before its number: one that is not in the image has a later number than this one.
    let (image, at) = array.image(&data.name, || core.transactions.0.now())?;
    debug_assert!(image.at <= at, "invariant 3: the image has {:?}, which is still to come", image.at);
    let leaf_words = image.shape.leaf_words();
    let leaves = (PART_WORDS / leaf_words).max(1);
    let (mut parts, mut bytes) = (Vec::new(), Vec::new());
    for (number, words) in image.words().chunks(leaves * leaf_words).enumerate() {
        let Some(last) = words.chunks(leaf_words).rposition(|leaf| leaf[0] != 0) else { continue };
        bytes.clear();
        bytes.extend(words[..(last + 1) * leaf_words].iter().flat_map(|word| word.to_le_bytes()));
        parts.push((number * leaves, RangeContents::new(at, put(&bytes)?)));
    }
    Ok(Some(ArrayContents { at: at.0, newest: image.at.0, parts }))
}

/// Puts the rows of an image into a table, which is empty.
pub(super) fn restore(
    data: &TableData,
    contents: &ArrayContents,
    get: &mut dyn FnMut(BlobRef) -> Result<Vec<u8>, CheckpointError>,
) -> Result<()> {
    let bad = |why: &str| Error::BadCheckpoint(format!("the rows of \"{}\" {why}", data.name));
    let array = data.array.as_ref().ok_or_else(|| bad("are those of an array, which it is not"))?;
    for (first, part) in &contents.parts {
        let bytes = get(part.blob())?;
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || !words.len().is_multiple_of(array.shape.leaf_words()) {
            return Err(bad(&format!("from leaf {first} on are not whole")));
        }
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        array.restore(&data.name, *first, &words)?;
    }
    array.restored_at(Timestamp(contents.newest));
    debug_assert!(array.newest() == Timestamp(contents.newest), "invariant 4: readers are told another commit");
    Ok(())
}
