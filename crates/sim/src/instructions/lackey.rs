//! Traces from what valgrind's tool lackey prints of a program (`valgrind --tool=lackey --trace-mem=yes`).
//!
//! ```text
//! I  04015ac0,3      an instruction of 3 bytes
//!  L 1ffeffe7e0,8    a load            S 1ffeffe7d8,8    a store            M 0421c7cc,4    both
//! ==42== ...         anything else is passed over
//! ```
//!
//! The program marks its transactions by writing words of an array, which it does not use otherwise: word 0 ends one, word 1 + type
//! begins one of a type. What happens outside of transactions is passed over.
//!
//! Transactions are recorded one after the other, in one thread: all of them use one stack, and the allocator gives each what the
//! one before has given back. They are replayed as threads of their own. So each gets a stack of its own, and memory of its own
//! for the blocks that it writes before it reads them: what it finds in a block that it reads first is what others have left.

use std::collections::HashMap;
use std::io::BufRead;
use std::ops::Range;

use super::trace::{Access, Touch, Trace};
use crate::machine::LineNumber;

/// Types of transactions are below this: the array of marks has a word more.
const TYPES: u64 = 32;
const WORD_BYTES: u64 = 8;
const BLOCK_BYTES: u64 = 64;

/// Where valgrind has the stack of a program's first thread, in blocks.
const STACK: Range<LineNumber> = 0x7ffa_0000..0x7ffc_0040;
/// Above all blocks of a program are the stacks that transactions get, each of so many blocks.
const STACKS: LineNumber = 0x8000_0000;
const STACK_BLOCKS: LineNumber = 1 << 12;
/// Above the stacks are the pages that transactions get, each of so many blocks.
const PAGES: LineNumber = 0xc000_0000;
const PAGE_BLOCKS: LineNumber = 64;

/// Makes traces of the lines that lackey prints.
#[derive(Debug, Default)]
pub struct Lackey {
    traces: Vec<Trace>,
    /// The transaction that is running.
    running: Option<Trace>,
    /// The place of the last touch of code in it.
    code: Option<usize>,
    /// Pages that transactions have got.
    pages: LineNumber,
}

impl Lackey {
    /// Reads all lines. `marks` is the address of the array of marks once it is known.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(mut self, mut lines: impl BufRead, marks: impl Fn() -> Option<u64>) -> std::io::Result<Vec<Trace>> {
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            if let Some((kind, at)) = parse(&line) {
                self.note(kind, at, &marks);
            }
            line.clear();
        }
        Ok(self.traces)
    }

    fn note(&mut self, kind: u8, at: u64, marks: &impl Fn() -> Option<u64>) {
        if matches!(kind, b'S' | b'M')
            && let Some(mark) = marks().and_then(|marks| at.checked_sub(marks))
            && mark / WORD_BYTES <= TYPES
        {
            return self.mark(mark / WORD_BYTES);
        }
        let stack = STACKS + self.traces.len() as LineNumber % (STACKS / STACK_BLOCKS) * STACK_BLOCKS;
        let Some(trace) = &mut self.running else { return };
        // Addresses of programs under valgrind have 37 bits.
        let mut block = (at / BLOCK_BYTES) as LineNumber;
        if STACK.contains(&block) {
            block = stack + block % STACK_BLOCKS;
        }
        let touches = &mut trace.touches;
        if kind == b'I' {
            if let Some(touch) = self.code.map(|at| &mut touches[at])
                && touch.block == block
                && let Access::Code(count) = &mut touch.access
            {
                *count += 1;
                return;
            }
            self.code = Some(touches.len());
            touches.push(Touch { block, access: Access::Code(1) });
            return;
        }
        let access = if kind == b'L' { Access::Read } else { Access::Write };
        // A block that is read again, or read after it was written, is a hit whatever happens.
        let is_again = |last: &Touch| last.block == block && (last.access == access || last.access == Access::Write);
        if !touches.last().is_some_and(is_again) {
            touches.push(Touch { block, access });
        }
    }

    fn mark(&mut self, word: u64) {
        self.code = None;
        let ended = match word {
            0 => self.running.take(),
            begun => self.running.replace(Trace { kind: (begun - 1) as u8, touches: Vec::new() }),
        };
        // An atomic instruction is printed as two accesses: it marks once.
        if let Some(mut trace) = ended.filter(|trace| !trace.touches.is_empty()) {
            self.give_memory(&mut trace);
            self.traces.push(trace);
        }
    }

    /// Gives a transaction memory of its own for the blocks of data that it writes before it reads them.
    fn give_memory(&mut self, trace: &mut Trace) {
        let mut is_written_first = HashMap::new();
        for touch in &trace.touches {
            if !matches!(touch.access, Access::Code(_)) {
                is_written_first.entry(touch.block).or_insert(touch.access == Access::Write);
            }
        }
        let mut pages = HashMap::new();
        let is_data = |touch: &&mut Touch| !matches!(touch.access, Access::Code(_));
        for touch in trace.touches.iter_mut().filter(is_data).filter(|touch| touch.block < STACKS) {
            if is_written_first[&touch.block] {
                let page = *pages.entry(touch.block / PAGE_BLOCKS).or_insert_with(|| {
                    self.pages = (self.pages + 1) % ((LineNumber::MAX - PAGES) / PAGE_BLOCKS);
                    PAGES + self.pages * PAGE_BLOCKS
                });
                touch.block = page + touch.block % PAGE_BLOCKS;
            }
        }
    }
}

/// The kind and the address of an access.
fn parse(line: &[u8]) -> Option<(u8, u64)> {
    let (kind, rest) = match line {
        [b'I', b' ', b' ', rest @ ..] => (b'I', rest),
        [b' ', kind @ (b'L' | b'S' | b'M'), b' ', rest @ ..] => (*kind, rest),
        _ => return None,
    };
    let digits = rest.iter().position(|&byte| byte == b',')?;
    let digit = |at: u64, &byte: &u8| Some(at << 4 | u64::from((byte as char).to_digit(16)?));
    Some((kind, rest[..digits].iter().try_fold(0, digit)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
==7== Lackey, an example Valgrind tool
I  00001000,3
 S 00008010,8
I  00001003,3
I  00001006,4
 L 00009000,8
I  0000100a,2
 L 00009008,8
 M 00009010,8
 L 00009010,8
I  00001040,2
I  zz,2
 S 00008000,8
I  00001044,2
 M 00008008,8
 S 00008008,8
I  00001080,1
 S 00008000,8
==7== done
";

    #[test]
    fn lines_between_marks_become_the_touches_of_a_transaction_of_the_type_marked() {
        let traces = Lackey::default().read(PRINTED.as_bytes(), || Some(0x8000)).unwrap();
        let touch = |block, access| Touch { block, access };
        let first = vec![
            touch(0x40, Access::Code(3)),
            touch(0x240, Access::Read),
            touch(0x240, Access::Write),
            touch(0x41, Access::Code(1)),
        ];
        let expected =
            [Trace { kind: 1, touches: first }, Trace { kind: 0, touches: vec![touch(0x42, Access::Code(1))] }];
        assert_eq!(traces, expected);
    }

    #[test]
    fn each_transaction_has_a_stack_of_its_own() {
        let transaction = " S 00008008,8\nI  00001000,1\n S 1ffefff000,8\n S 00008000,8\n";
        let traces = Lackey::default().read(transaction.repeat(2).as_bytes(), || Some(0x8000)).unwrap();
        let written = |at: usize| traces[at].touches[1].block;
        assert_eq!((traces.len(), written(1) - written(0)), (2, STACK_BLOCKS));
    }

    #[test]
    fn a_transaction_has_memory_of_its_own_for_what_it_writes_before_it_reads_it() {
        let mark = |word: &str| format!(" S {word},8\n");
        let written_first = "I  00001000,1\n S 00009000,8\nI  00001040,1\n L 00009000,8\n";
        let read_first = " L 0000a000,8\n S 0000a000,8\n";
        let transaction = [&mark("00008008"), written_first, read_first, &mark("00008000")].concat();
        let traces = Lackey::default().read(transaction.repeat(2).as_bytes(), || Some(0x8000)).unwrap();
        let data = |at: usize| {
            let is_data = |touch: &&Touch| !matches!(touch.access, Access::Code(_));
            traces[at].touches.iter().filter(is_data).map(|touch| touch.block).collect::<Vec<_>>()
        };
        assert_ne!(data(0)[0], data(1)[0], "written first");
        assert!(data(0)[0] == data(0)[1] && data(0)[0] % 64 == 0x240 % 64, "one block of it, in the set where it was");
        assert_eq!((data(0)[2], data(1)[2], data(0)[3]), (0x280, 0x280, 0x280), "read first");
    }

    #[test]
    fn nothing_is_a_transaction_until_the_marks_are_known() {
        let traces = Lackey::default().read(PRINTED.as_bytes(), || None).unwrap();
        assert_eq!(traces, []);
    }
}
