//! Bytes of any kind: what can't be is an error, and what is read can be used.
use std::collections::BTreeMap;

use types::{BlobRef, Timestamp};

use super::Blobs;
use super::sample::{Random, Sample, answers, history, versions};
use crate::Layout;
use crate::image::{PageReading, RestoreError};

/// Samples with blobs of every kind and form.
fn samples() -> Vec<Sample> {
    let of = |(layout, distinct, seed): (Layout, u64, u64)| {
        let mut sample = Sample::new(layout, 64, distinct, seed);
        sample.change(0, 220);
        sample.change(1, 30);
        sample
    };
    [(Layout::Column, 1 << 30, 1), (Layout::Column, 3, 2), (Layout::Column, 1, 3), (Layout::Row, 30, 4)].map(of).into()
}

/// One way in which a blob may not be what it was.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => bytes[at] = random.next() as u8,
        2 => bytes[at] ^= 1 << random.below(8),
        3 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
        4 => {
            let word = [0, 1, u64::MAX, 1 << 63, 1 << 32, 1 << 20, 65_535][random.below(7)];
            let end = bytes.len().min(at + 8);
            bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
        }
        5 => bytes.extend((0..random.below(20)).map(|i| i as u8)),
        6 => {
            let end = bytes.len().min(at + random.below(40));
            bytes[at..end].iter_mut().for_each(|byte| *byte = random.next() as u8);
        }
        _ => {
            bytes.remove(at);
        }
    }
}

/// Restores with one blob damaged, and if that goes well asks everything.
fn restore_and_read(sample: &Sample, images: &[(BlobRef, bool)], blobs: &Blobs) -> bool {
    match sample.restored(images, blobs) {
        Ok(table) => {
            for at in [sample.now / 2, sample.now] {
                answers(&table, at);
            }
            history(&table, sample.now);
            versions(&table, 0, &[3, 8]);
            true
        }
        Err(RestoreError::Damaged { what, .. }) => {
            assert!(what.len() > 10, "says what is wrong: {what}");
            false
        }
        Err(RestoreError::Source { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn damaged_blobs_are_errors_or_can_be_read() {
    let mut random = Random(77);
    let (mut refused, mut taken) = (BTreeMap::new(), 0);
    for sample in samples() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let mut all: Vec<BlobRef> = blobs.bytes.keys().copied().collect();
        all.sort_by_key(|blob| blob.offset);
        for round in 0..200 {
            let blob = all[round % all.len()];
            let whole = blobs.bytes[&blob].clone();
            let mut bytes = whole.clone();
            (0..1 + random.below(2)).for_each(|_| {
                if !bytes.is_empty() {
                    damage(&mut bytes, &mut random);
                }
            });
            let kind = whole[0];
            blobs.bytes.insert(blob, bytes);
            if restore_and_read(&sample, &images, &blobs) {
                taken += 1;
            } else {
                *refused.entry(kind).or_insert(0) += 1;
            }
            blobs.bytes.insert(blob, whole);
        }
    }
    assert_eq!(refused.len(), 6, "every kind of blob was damaged so that it showed: {refused:?}");
    assert!(taken > 0, "and some values were only others");
}

/// A page that is read when it is used is refused by the operation that needs it.
#[test]
fn damaged_blobs_that_are_read_late_are_errors_of_their_readers() {
    let mut random = Random(78);
    let (mut refused, mut told) = (0, 0);
    for sample in samples() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let mut all: Vec<BlobRef> = blobs.bytes.keys().copied().collect();
        all.sort_by_key(|blob| blob.offset);
        for round in 0..100 {
            let blob = all[round % all.len()];
            let whole = blobs.bytes[&blob].clone();
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut random);
            blobs.bytes.insert(blob, bytes);
            match sample.restored_unread(&images, &blobs) {
                Ok((table, _)) => {
                    let answers = [answers(&table, sample.now), history(&table, sample.now)].concat();
                    told += usize::from(answers.iter().any(|answer| answer.contains("PageError")));
                }
                Err(RestoreError::Damaged { what, .. }) => {
                    assert!(what.len() > 10, "says what is wrong: {what}");
                    refused += 1;
                }
                Err(RestoreError::Source { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
            blobs.bytes.insert(blob, whole);
        }
    }
    assert!(refused > 0 && told > 20, "range images are read at once, pages are not: {refused} and {told}");
}

/// What an image says of a page that is read later has to be true.
#[test]
fn pages_of_another_range_are_refused_when_they_are_read() {
    for (at, sample) in samples().into_iter().enumerate() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let all: Vec<BlobRef> = blobs.bytes.keys().copied().collect();
        let mut told = 0;
        for blob in &all {
            for other in all.iter().filter(|other| *other != blob && blobs.bytes[other][0] == blobs.bytes[blob][0]) {
                let mut blobs = blobs.clone();
                let bytes = blobs.bytes[other].clone();
                let is_range = images.iter().any(|(image, _)| image == blob);
                if is_range || blobs.bytes.insert(*blob, bytes.clone()) == Some(bytes) {
                    continue;
                }
                let (table, _) = sample.restored_unread(&images, &blobs).unwrap();
                let answers = [answers(&table, sample.now), history(&table, sample.now)].concat();
                told += usize::from(answers.iter().any(|answer| answer.contains("PageError")));
            }
        }
        assert!(told > 0, "sample {at}");
    }
}

#[test]
fn noise_is_no_blob() {
    let mut random = Random(5);
    for sample in samples() {
        let mut blobs = Blobs::default();
        let images = sample.image(&mut blobs);
        let all: Vec<BlobRef> = blobs.bytes.keys().copied().collect();
        for blob in all {
            let whole = blobs.bytes[&blob].clone();
            let mut noise: Vec<u8> = (0..random.below(400)).map(|_| random.next() as u8).collect();
            let keep = random.below(noise.len() + 1).min(whole.len());
            noise[..keep].copy_from_slice(&whole[..keep]);
            blobs.bytes.insert(blob, noise);
            restore_and_read(&sample, &images, &blobs);
            blobs.bytes.insert(blob, whole);
        }
        assert!(sample.restored(&images, &blobs).is_ok());
    }
}

#[test]
fn an_image_of_another_table_is_refused() {
    let column = Sample::new(Layout::Column, 64, 30, 1);
    let row = Sample::new(Layout::Row, 64, 30, 1);
    let small = Sample::new(Layout::Column, 32, 30, 1);
    let mut blobs = Blobs::default();
    let images = column.image(&mut blobs);
    for (other, reason) in [(row, "layout"), (small, "64 records")] {
        let Err(RestoreError::Damaged { what, .. }) = other.restored(&images, &blobs) else { panic!("it is another") };
        assert!(what.contains(reason), "{what}");
    }
    let Err(error) =
        column.table.restore_range(7, BlobRef { file: 9, ..images[0].0 }, &blobs, (PageReading::AtOnce, "t"))
    else {
        panic!("there is no such blob")
    };
    assert!(error.to_string().contains("of file 9"), "{error}");
    assert_eq!(column.table.horizon(), Timestamp::ZERO);
}
