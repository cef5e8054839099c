//! Traces of transactions from a seed, with the traits that the paper measured: code of several times L1-I, which comes again after
//! long periods; most of it common to transactions of a type, much of it to all; data with a hot part and records that are seen
//! once.
//!
//! ```text
//! functions    runs of blocks of code, spread over the program
//! operations   look up, insert, update, scan, ...: some twenty functions each, in order; two belong to all types, three to each
//! types        scripts of operations; each transaction goes through the script of its type, with loops of its own length
//! ```
//!
//! Half of the places of an operation have four functions of which each call takes one (plans, types of values, kinds of pages).
//! Within a function a transaction leaves out blocks by chance (branches) and repeats a few (loops).

use super::trace::{Access, Touch, Trace};
use crate::machine::LineNumber;
use crate::random::Random;

/// Which benchmark the transactions are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// TPC-C: five types with long scripts of few operations.
    TpcC,
    /// TPC-E: ten types with more operations and more branches.
    TpcE,
}

/// A function: its first block and how many there are.
#[derive(Clone, Copy)]
struct Function {
    first: LineNumber,
    blocks: u32,
}

struct Program {
    /// For each operation its places, each with the functions that may run there.
    operations: Vec<Vec<Vec<Function>>>,
    /// For each type the operations of its script, each with how often it is repeated at most.
    scripts: Vec<Vec<(usize, u64)>>,
    skipped_percent: u64,
}

/// Blocks of data that all transactions use.
const HOT_BLOCKS: u64 = 160;
/// Blocks of the upper parts of indexes.
const WARM_BLOCKS: u64 = 4_000;
/// Blocks of records.
const COLD_BLOCKS: u64 = 2_000_000;
/// Blocks of a transaction's own: its stack and its state.
const OWN_BLOCKS: u64 = 40;

/// Operations that all types have, and those of one type.
const COMMON_OPERATIONS: u64 = 2;
const OWN_OPERATIONS: u64 = 3;
/// Operations of a script.
const SCRIPT_OPERATIONS: u64 = 7;

impl Program {
    fn new(mix: Mix, random: &mut Random) -> Self {
        let (types, per_operation, skipped_percent) = match mix {
            Mix::TpcC => (5, 9, 12),
            Mix::TpcE => (10, 7, 20),
        };
        let mut next: LineNumber = 1_000;
        let mut function = |random: &mut Random| {
            let blocks = 8 + random.below(40) as u32;
            let first = next;
            next += blocks + random.below(24) as u32;
            Function { first, blocks }
        };
        // A quarter of each operation is of the functions that all use: latches, pages, the log.
        let common: Vec<Function> = (0..24).map(|_| function(random)).collect();
        let mut place = |random: &mut Random| match random.below(4) {
            0 => vec![common[random.below(24) as usize]],
            1 => vec![function(random)],
            _ => vec![function(random), function(random), function(random), function(random)],
        };
        let mut operation = |random: &mut Random| (0..per_operation).map(|_| place(random)).collect::<Vec<_>>();
        let operations = COMMON_OPERATIONS + types * OWN_OPERATIONS;
        let operations: Vec<Vec<Vec<Function>>> = (0..operations).map(|_| operation(random)).collect();
        let script = |kind: u64, random: &mut Random| {
            let mut pick = || match random.below(COMMON_OPERATIONS + OWN_OPERATIONS) {
                common if common < COMMON_OPERATIONS => (common as usize, 1 + random.below(5)),
                own => ((kind * OWN_OPERATIONS + own) as usize, 1 + random.below(5)),
            };
            (0..SCRIPT_OPERATIONS).map(|_| pick()).collect()
        };
        let scripts = (0..types).map(|kind| script(kind, random)).collect();
        Program { operations, scripts, skipped_percent }
    }

    fn run(&self, kind: usize, number: u64, random: &mut Random) -> Trace {
        let mut trace = Trace { kind: kind as u8, touches: Vec::new() };
        for &(operation, repeated) in &self.scripts[kind] {
            for _ in 0..1 + random.below(repeated) {
                for functions in &self.operations[operation] {
                    let function = functions[random.below(functions.len() as u64) as usize];
                    self.call(function, number, random, &mut trace.touches);
                }
            }
        }
        trace
    }

    fn call(&self, function: Function, number: u64, random: &mut Random, touches: &mut Vec<Touch>) {
        let mut block = 0;
        while block < function.blocks {
            // What is left out differs a little from one transaction to the next.
            if random.below(100) >= self.skipped_percent {
                let instructions = 6 + random.below(12) as u32;
                touches.push(Touch { block: function.first + block, access: Access::Code(instructions) });
                if random.below(100) < 30 {
                    touches.push(data(number, random));
                }
            }
            block += 1;
            if block >= 4 && random.below(100) < 18 {
                block -= 4;
            }
        }
    }
}

/// An access to data.
fn data(number: u64, random: &mut Random) -> Touch {
    let own = HOT_BLOCKS + WARM_BLOCKS + COLD_BLOCKS + number * OWN_BLOCKS;
    let (block, write_percent) = match random.below(100) {
        0..64 => (own + random.below(OWN_BLOCKS), 40),
        64..84 => (random.below(HOT_BLOCKS), 4),
        84..95 => (HOT_BLOCKS + random.below(WARM_BLOCKS), 2),
        _ => (HOT_BLOCKS + WARM_BLOCKS + random.below(COLD_BLOCKS), 30),
    };
    let access = if random.below(100) < write_percent { Access::Write } else { Access::Read };
    Touch { block: block as LineNumber, access }
}

/// So many transactions, their types by chance.
pub fn traces(mix: Mix, count: usize, seed: u64) -> Vec<Trace> {
    let mut random = Random::of(seed, mix as u64);
    let program = Program::new(mix, &mut random);
    let types = program.scripts.len() as u64;
    (0..count as u64)
        .map(|number| {
            let kind = random.below(types) as usize;
            program.run(kind, number, &mut random)
        })
        .collect()
}
