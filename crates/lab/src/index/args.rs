//! How `bench index` runs: its part of the command line.
use clap::{Args, ValueEnum};

use crate::peers::Peer;
use crate::workload::Order;

const EXAMPLES: &str = "\
Examples:
  lstore bench index                                    everything, a million keys
  lstore bench index --case kiss --keys 16000000 --order uniform
  lstore bench index --case kiss --keys 64000000 --among kiss,congee
  lstore bench index --case sizes --keys 65536,1000000,16000000
                                                        KISS figures 5, 7, 9, 10
  lstore bench index --case updates batches             KISS figures 6 and 11
  lstore bench index --case latches delta-latches       tsx-index figures 3 to 10
  lstore bench index --case delta-lines --keys 20000000 cache lines of a lookup
  lstore bench index --json > index.jsonl               one JSON object a line

Keys have 32 bits, values 64. Each turn builds its index anew; reads are of
keys chosen at random, and the sum of all values read is checked. Structures that
pin an epoch do so for 512 lookups. Operations that several threads can't do at
once with a peer (writes to rart, BTreeMap, hashbrown, the arrays) are left out.
Peers without batched reads stand beside ours with their single reads. Memory
is what the process of one index grows by while it is filled by one thread.";

/// How `bench index` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct IndexArgs {
    /// What to measure; by default everything
    #[arg(long = "case", value_enum, value_name = "CASE", num_args = 1..)]
    pub cases: Vec<Case>,
    /// How many keys; several numbers measure each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1000000",
          value_parser = clap::value_parser!(u32).range(1000..=1 << 30))]
    pub keys: Vec<u32>,
    /// How the keys lie
    #[arg(long = "order", value_enum, value_name = "LIST", value_delimiter = ',', default_value = "dense,uniform")]
    pub orders: Vec<Order>,
    /// How many threads are at work; several numbers measure each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Vec<u32>,
    /// The structures to measure; by default all that the case has. Of ours the first one does where none is named
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub among: Vec<Peer>,
    /// How many reads or other operations a run has, over all threads
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1000..=1 << 32))]
    pub operations: u64,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
    /// Load this one with the first of --keys and --order, print the bytes of memory that it takes, and leave
    #[arg(long, value_enum, value_name = "NAME", hide = true)]
    pub memory_of: Option<Peer>,
}

/// The cases that can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Case {
    /// The KISS-Tree beside other indexes: inserts, reads single and batched, a mix, memory
    Kiss,
    /// The B+tree beside other ordered indexes, the same
    Btree,
    /// The KISS-Tree's figures 5, 7, 9 and 10: reads, updates, memory and the gain of batches by tree size, beside PT-4
    Sizes,
    /// Its figure 6: throughput by the share of updates, beside PT-4
    Updates,
    /// Its figure 11: reads by the size of the batch
    Batches,
    /// What each latch costs by itself, and what throttling by socket adds to it
    Acquire,
    /// What each latch costs around the B+tree, from no inserts to nothing but inserts
    Latches,
    /// What each latch costs around the Delta Storage Index, original and tuned
    DeltaLatches,
    /// Cache lines that a lookup in the Delta Storage Index touches, original and tuned
    DeltaLines,
}

impl IndexArgs {
    /// The cases asked for, or all.
    pub(super) fn chosen_cases(&self) -> &[Case] {
        if self.cases.is_empty() { Case::value_variants() } else { &self.cases }
    }

    /// The participants of a case that were asked for.
    pub(super) fn chosen(&self, participants: &[Peer]) -> Vec<Peer> {
        let is_chosen = |peer: &&Peer| self.among.is_empty() || self.among.contains(peer);
        participants.iter().filter(is_chosen).copied().collect()
    }

    /// The operations of one of so many threads.
    pub(super) fn operations_of_one(&self, threads: usize) -> usize {
        (self.operations as usize / threads).max(1)
    }

    /// The largest number of threads asked for: the paper's figures are made with all that there are.
    pub(super) fn threads_max(&self) -> usize {
        self.threads.iter().copied().max().unwrap_or(1) as usize
    }
}
