//! Dictionaries of text under writers of the same value and readers of what was published: a reader that resolves a
//! word finds the value whole, whichever writer entered it, and all of its memory is charged once.
use sync::atomic::{AtomicU64, Ordering};

use crate::memory::budget::Meter;
use crate::page::text::{TextOptions, Texts, simple};
use crate::page::wide::WideValues;
use crate::tests::shuttle_models::*;

const VALUES: [&str; 3] = ["a value that both writers have", "that of the first", "that of the second"];

/// Pages of one column with words that are published one by one; 0 = not yet.
struct Pages {
    values: WideValues,
    words: [AtomicU64; 4],
    meter: Arc<Meter>,
}

impl Pages {
    fn new() -> Pages {
        let schema = Schema::new(vec![Column::new("t", DataType::TEXT)], &[]).unwrap();
        let meter = Meter::new(Arc::default());
        let texts = Texts::new(&TextOptions::of_tails(&schema, Some(simple::new), 2), &meter);
        Pages { values: WideValues::new(Arc::new(texts)), words: std::array::from_fn(|_| AtomicU64::new(0)), meter }
    }

    /// The values of a writer: the one that both have, and its own.
    fn write(&self, writer: usize) {
        for (at, value) in [(2 * writer, VALUES[0]), (2 * writer + 1, VALUES[1 + writer])] {
            let word = self.values.store(0, value.as_bytes(), |_| {});
            self.words[at].store(word, Ordering::Release);
        }
    }

    /// Looks at all words, and returns how many were there.
    fn read(&self) -> usize {
        let expected = [VALUES[0], VALUES[1], VALUES[0], VALUES[2]];
        let words = self.words.iter().map(|word| word.load(Ordering::Acquire));
        let found = words.zip(expected).filter(|(word, _)| *word != 0).inspect(|(word, value)| {
            // SAFETY: the word comes from `store` for this column; it was read by an acquire load.
            assert_eq!(unsafe { self.values.get(0, *word) }, value.as_bytes());
        });
        found.count()
    }
}

#[test]
fn writers_of_the_same_value_share_it_and_readers_find_it_whole() {
    explore(|| {
        let pages = Arc::new(Pages::new());
        let mut threads: Vec<_> = (0..2)
            .map(|writer| {
                let pages = pages.clone();
                shuttle::thread::spawn(move || pages.write(writer))
            })
            .collect();
        let reader = pages.clone();
        threads.push(shuttle::thread::spawn(move || {
            let seen = reader.read();
            assert!(reader.read() >= seen);
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(pages.read(), 4);
        let word = |at: usize| pages.words[at].load(Ordering::Relaxed);
        assert_eq!(word(0), word(2), "one value has one id");
        let bytes = VALUES.iter().map(|value| 100 + value.len() as u64).sum::<u64>();
        assert_eq!(pages.meter.used().tail_bytes, bytes);
    });
}
