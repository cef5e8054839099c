//! How `bench micro` runs: its part of the command line.
use std::time::Duration;

use clap::{Args, ValueEnum};
use engine::Isolation;

use super::workload::COLUMNS;
use crate::seconds;

const EXAMPLES: &str = "\
Examples:
  lstore bench micro                                   all but the long cases
  lstore bench micro --case low high --threads 1,2     two levels of contention
  lstore bench micro --case low --scan                 with a SUM over and over
  lstore bench micro --case figure6 --merge-tail-records 1024,8192,65536
  lstore bench micro --case figure7 --read-mix 0,5,10  reads among 10 statements
  lstore bench micro --reads 10 --updates 0 --columns 1 --case low --layout row
  lstore bench micro --case isolation hot-row --threads 1,2
                                                       what do transactions cost?
  lstore bench micro --case keepup --seconds 600 --retention none
                                                       does the merge keep up?
  lstore bench micro --json > micro.jsonl              one JSON object a line

The table has 10 bigint columns, the first its primary key. A transaction is
8 point reads and 2 point updates, each of 4 columns chosen at random, of rows
chosen at random from the active set: all rows under low contention, a 100th
under medium, a 1000th under high. lstore is told the keys of a transaction
before its first statement (Transaction::prefetch).

Each figure stands beside what the same work costs without a database:
  storage alone   lstore's versions and index: no isolation, no rollback
  hash map        64 latched hash maps of rows: no isolation, no history
  bare columns    one array a column, the key is the position: no index either
  read bandwidth  the column's bytes at the rate of a large array summed
  array           an array of the column's size summed, in cache if it fits
Ratios are medians of the runs' ratios; above 1 lstore is the better.";

/// How `bench micro` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct MicroArgs {
    /// How many rows the table has
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub rows: u64,
    /// What to measure; by default all but isolation, hot-row, figure6, figure7 and keepup
    #[arg(long = "case", value_enum, value_name = "CASE", num_args = 1..)]
    pub cases: Vec<Case>,
    /// How many threads run transactions; several numbers measure each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Vec<u32>,
    /// Measure transactions with and without a thread beside them that sums up a column again and again
    #[arg(long)]
    pub scan: bool,
    /// How long one run of one contestant lasts; for keepup, how long all of it does
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub seconds: Duration,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Point reads in a transaction
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub reads: u32,
    /// Point updates in a transaction
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub updates: u32,
    /// How many of the 10 columns a statement touches; updates leave out the key
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=COLUMNS as i64))]
    pub columns: u32,
    /// Unmerged tail records at which a range is merged: figure6 goes through the list, by default from a 64th of a
    /// range to a whole one; the other cases take the first
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub merge_tail_records: Vec<u64>,
    /// Records in a range, which are merged together, rounded up to a power of two; 65536 by default
    #[arg(long, value_name = "RECORDS", value_parser = clap::value_parser!(u32).range(16..=1 << 16))]
    pub range_records: Option<u32>,
    /// Records in an update range, which share tail pages: a sixteenth of a range to a whole one
    #[arg(long, value_name = "RECORDS", value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub update_range_records: Option<u32>,
    /// Threads that merge in the background
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub merge_threads: Option<u32>,
    /// How pages of lstore are laid out
    #[arg(long, value_enum, default_value_t = Layout::Column)]
    pub layout: Layout,
    /// What transactions of lstore promise; `none` for its storage without transactions
    #[arg(long, value_enum, default_value_t = Access::Snapshot)]
    pub isolation: Access,
    /// How long lstore keeps old versions
    #[arg(long, value_enum, default_value_t = Retention::Forever)]
    pub retention: Retention,
    /// How lstore answers SUM
    #[arg(long, value_enum, default_value_t = SumMethod::Running)]
    pub sum: SumMethod,
    /// Let general calls look up the rows of a transaction one by one, without asking for all of them first
    #[arg(long)]
    pub no_prefetch: bool,
    /// How many of 10 statements are reads, for figure7
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,2,4,6,8,10",
          value_parser = clap::value_parser!(u32).range(0..=10))]
    pub read_mix: Vec<u32>,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The cases that can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Case {
    /// Loading the table
    Load,
    /// Transactions over all rows
    Low,
    /// Transactions over a 100th of the rows
    Medium,
    /// Transactions over a 1000th of the rows
    High,
    /// What transactions cost: each isolation level beside the storage without transactions, under low, medium and high
    /// contention
    Isolation,
    /// One row that all threads count in, by 1 to 16 threads unless --threads says otherwise
    HotRow,
    /// SUM of a column with nothing else going on
    SumIdle,
    /// SUM of a column directly after a 20th as many updates as there are rows
    SumPending,
    /// Transactions over all rows and SUM, alone and at once
    Mixed,
    /// SUM under updates by how many tail records are merged at a time
    Figure6,
    /// Transactions by the share of reads in them, low and medium
    Figure7,
    /// Updates only, at full speed: unmerged tail records and memory over time
    Keepup,
}

impl Case {
    /// The cases measured if none is named.
    const DEFAULT: [Case; 7] =
        [Case::Load, Case::Low, Case::Medium, Case::High, Case::SumIdle, Case::SumPending, Case::Mixed];
}

/// The isolation of transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Access {
    /// There are none: keys, versions and nothing else
    None,
    /// Each statement sees what was committed before it
    ReadCommitted,
    /// A transaction reads one snapshot
    #[default]
    Snapshot,
    /// As if one ran after the other
    Serializable,
}

impl Access {
    /// All that are transactions.
    pub(super) const LEVELS: [Access; 3] = [Access::ReadCommitted, Access::Snapshot, Access::Serializable];

    /// The isolation level of its transactions.
    pub(super) fn isolation(self) -> Option<Isolation> {
        match self {
            Access::None => None,
            Access::ReadCommitted => Some(Isolation::ReadCommitted),
            Access::Snapshot => Some(Isolation::Snapshot),
            Access::Serializable => Some(Isolation::Serializable),
        }
    }

    /// The name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Access::None => "storage alone",
            Access::ReadCommitted => "read committed",
            Access::Snapshot => "snapshot",
            Access::Serializable => "serializable",
        }
    }
}

/// How pages are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Layout {
    /// The values of a column next to each other
    #[default]
    Column,
    /// The values of a row next to each other
    Row,
}

/// How long old versions are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Retention {
    /// Without end
    #[default]
    Forever,
    /// As long as a snapshot reads them
    None,
}

/// How a column is summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum SumMethod {
    /// From running totals, as the SQL aggregate is
    #[default]
    Running,
    /// Anew on the encoded pages: whole blocks by the sums kept for them
    Encoded,
    /// From Arrow batches, as a query does that needs each value
    Batches,
}

impl MicroArgs {
    /// The cases to measure, in order.
    pub(super) fn chosen_cases(&self) -> &[Case] {
        if self.cases.is_empty() { &Case::DEFAULT } else { &self.cases }
    }

    /// The numbers of tail records that figure 6 goes through.
    pub(super) fn merge_sweep(&self) -> Vec<u64> {
        if !self.merge_tail_records.is_empty() {
            return self.merge_tail_records.clone();
        }
        let range = u64::from(self.range_records.unwrap_or(1 << 16).next_power_of_two());
        [64, 16, 8, 4, 2, 1].into_iter().map(|part| (range / part).max(1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: MicroArgs,
    }

    fn parse(text: &str) -> Result<MicroArgs, clap::Error> {
        Command::try_parse_from(["micro"].into_iter().chain(text.split_whitespace())).map(|command| command.args)
    }

    #[test]
    fn cases_and_lists_are_read() {
        let args =
            parse("--case low figure6 --threads 1,2 --seconds 0.5 --range-records 4096 --read-mix 0,10").unwrap();
        assert_eq!(args.chosen_cases(), [Case::Low, Case::Figure6]);
        assert_eq!((args.threads.as_slice(), args.read_mix.as_slice()), ([1, 2].as_slice(), [0, 10].as_slice()));
        assert_eq!(args.seconds, Duration::from_millis(500));
        assert_eq!(args.merge_sweep(), [64, 256, 512, 1024, 2048, 4096]);
        assert_eq!(parse("--merge-tail-records 7,9").unwrap().merge_sweep(), [7, 9]);
        assert_eq!(parse("").unwrap().chosen_cases(), Case::DEFAULT);
    }

    #[test]
    fn nonsense_is_refused() {
        let bad = ["--seconds 0", "--seconds nan", "--rows 0", "--columns 0", "--columns 11", "--read-mix 11"];
        for text in bad.into_iter().chain(["--threads 0", "--runs 0", "--case nosuch", "--range-records 100000"]) {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
