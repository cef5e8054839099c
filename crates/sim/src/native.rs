//! Memory of this computer behind the same trait: programs run on it by the threads of the system. Simulated runs are checked by
//! it: what a structure holds in the end must be the same.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;
use crate::random::Random;

/// Words that threads share, in lines of this computer.
pub struct NativeMemory {
    words: Box<[AtomicU64]>,
    /// Where the first line begins.
    first: usize,
    begun: Instant,
}

/// Looks at a word before a waiting thread lets others run.
const LOOKS: u32 = 20_000;
/// Computing that takes longer looks at the clock.
const CLOCKED_CYCLES: u64 = 8_192;

impl NativeMemory {
    /// So many words, all 0.
    pub fn new(words: usize) -> Self {
        let line = LINE_WORDS as usize;
        let words: Box<[AtomicU64]> = (0..words + line).map(|_| AtomicU64::new(0)).collect();
        let beyond = words.as_ptr().addr() / size_of::<u64>() % line;
        NativeMemory { words, first: (line - beyond) % line, begun: Instant::now() }
    }

    /// The memory for one thread.
    pub fn thread(&self, number: usize, seed: u64) -> NativeThread<'_> {
        NativeThread { memory: self, number, random: RefCell::new(Random::of(seed, number as u64)) }
    }
}

/// The memory as one thread sees it.
pub struct NativeThread<'a> {
    memory: &'a NativeMemory,
    number: usize,
    random: RefCell<Random>,
}

impl NativeThread<'_> {
    fn word(&self, at: Address) -> &AtomicU64 {
        &self.memory.words[self.memory.first + at as usize]
    }
}

impl Memory for NativeThread<'_> {
    async fn load(&self, at: Address) -> Result<u64, Aborted> {
        Ok(self.word(at).load(Ordering::Acquire))
    }

    async fn store(&self, at: Address, value: u64) -> Result<(), Aborted> {
        self.word(at).store(value, Ordering::Release);
        Ok(())
    }

    async fn compare_and_swap(&self, at: Address, expected: u64, new: u64) -> Result<u64, Aborted> {
        let swapped = self.word(at).compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
        Ok(swapped.unwrap_or_else(|found| found))
    }

    async fn fetch_add(&self, at: Address, value: u64) -> Result<u64, Aborted> {
        Ok(self.word(at).fetch_add(value, Ordering::AcqRel))
    }

    /// A cycle counts as about a quarter of a nanosecond: a multiplication takes one. The clock is asked only where the time is long
    /// beside that question.
    async fn compute(&self, cycles: u64) -> Result<(), Aborted> {
        if cycles <= CLOCKED_CYCLES {
            let product = (0..cycles / 4).fold(cycles, |product, step| product.wrapping_mul(product | 5) ^ step);
            std::hint::black_box(product);
            return Ok(());
        }
        let end = self.now() + cycles / 4;
        while self.now() < end {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Looks without the processor's pause, which is up to 140 cycles long: a thread notices the change as soon as its line comes.
    async fn wait_while(&self, at: Address, value: u64) -> Result<u64, Aborted> {
        let mut looks = 0;
        loop {
            let found = self.word(at).load(Ordering::Acquire);
            if found != value {
                return Ok(found);
            }
            looks += 1;
            if looks % LOOKS == 0 {
                std::thread::yield_now();
            }
        }
    }

    fn now(&self) -> u64 {
        self.memory.begun.elapsed().as_nanos() as u64
    }

    fn core(&self) -> usize {
        self.number
    }

    fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().below(end)
    }
}
