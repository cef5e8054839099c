//! Values that readers find at once, on a page that goes and comes back meanwhile: no reader finds what was given up.
use crate::codec::Damage;
use crate::memory::budget::{MemoryKind, Meter};
use crate::memory::clock::Evict;
use crate::memory::evictable::{Content, Evictable};
use crate::memory::flat::Flat;
use crate::memory::source::{HeldBlob, PageSource};
use crate::tests::shuttle_models::*;

const VALUES: usize = 8;
const BASE: u64 = 100;
const DISTANCE: u64 = 7;

/// Equal distances. Those of content that was given up can still be looked at, and are others.
struct Numbers(Vec<u64>);

impl Drop for Numbers {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.0).leak();
        words.fill(u64::MAX);
    }
}

impl Content for Numbers {
    type Outline = ();
    const KIND: MemoryKind = MemoryKind::Base;

    fn bytes(&self) -> usize {
        VALUES * size_of::<u64>()
    }

    fn outline_bytes((): &()) -> usize {
        0
    }

    fn flat(&self) -> Option<Flat<'_>> {
        let bytes = size_of::<u64>();
        // SAFETY: the words are that many bytes, any of which is one.
        let words = unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), self.0.len() * bytes) };
        Some(Flat { words, base: BASE, bytes })
    }

    fn decode((): &(), _: &[u8]) -> Result<Self, Damage> {
        Ok(Numbers(vec![DISTANCE; VALUES]))
    }
}

struct Anything;

impl PageSource for Anything {
    fn hold(&self, _: types::BlobRef) -> Option<Arc<dyn HeldBlob>> {
        Some(Arc::new(Anything))
    }
}

impl HeldBlob for Anything {
    fn read(&self) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Vec::new())
    }
}

fn page() -> Arc<Evictable<Numbers>> {
    let budget = Arc::new(MemoryBudget::default());
    budget.set_page_source(Arc::new(Anything));
    let blob = types::BlobRef { file: 1, offset: 0, len: 8, checksum: 0 };
    Evictable::new(Numbers(vec![DISTANCE; VALUES]), (), &Meter::new(budget), Some(blob))
}

/// What is found is right, for as long as the guard is there.
fn reads(page: &Arc<Evictable<Numbers>>) {
    for _ in 0..4 {
        let guard = sync::pin();
        for slot in 0..VALUES {
            let word = page.flat_word(&guard, slot);
            assert!(word.is_none_or(|word| word == BASE + DISTANCE), "given up: {word:?}");
        }
    }
}

#[test]
fn what_was_given_up_is_not_found() {
    explore(|| {
        let page = page();
        assert_eq!(page.flat_word(&sync::pin(), 0), Some(BASE + DISTANCE));
        let (reader, other) = (page.clone(), page.clone());
        let threads = [
            shuttle::thread::spawn(move || reads(&reader)),
            shuttle::thread::spawn(move || {
                for _ in 0..6 {
                    other.try_evict();
                }
            }),
            shuttle::thread::spawn(move || {
                for _ in 0..2 {
                    let guard = sync::pin();
                    assert!(page.get(&guard).is_ok_and(|numbers| numbers.0.iter().all(|number| *number == DISTANCE)));
                    reads(&page);
                }
            }),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
