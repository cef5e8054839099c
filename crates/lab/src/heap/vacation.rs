//! Vacation: the travel agency of the STAMP benchmarks (Minh et al., IISWC 2008), for which the paper gives its figures.
//!
//! An agency keeps tables of cars, flights and rooms, each with a number of places and a price, and one of customers with
//! what they have reserved. Clients, one a thread, run three kinds of transactions:
//!
//! | share | transaction |
//! |---|---|
//! | u percent | look at up to n things; reserve the dearest of each kind that is still free for a customer |
//! | half the rest | delete a customer with all reservations, if there is one of that number |
//! | half the rest | for up to n things: add 100 places and set the price, or take 100 places away if they are free |
//!
//! The benchmark's parameters keep their letters: n things a transaction, of q percent of the r numbers of each table, u
//! percent reservations, t transactions. `vacation-low` is `-n2 -q90 -u98`, `vacation-high` is `-n4 -q60 -u90`, both with
//! `-r1048576 -t4194304`.
//!
//! It is written anew for this heap. Tables are hash tables where STAMP has trees by default; what is asked of them is the
//! same.

mod agency;
mod client;

use durability::CommitMode;
use heap::{CommittedTransaction, Heap, HeapRef, HeapResult};

use crate::heap::{Random, Workload};
use agency::Agency;

/// The parameters of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VacationOptions {
    /// n: things looked at in a transaction, at most.
    pub things: u64,
    /// q: percent of the numbers that are asked for.
    pub queried_percent: u64,
    /// u: percent of the transactions that reserve.
    pub reserving_percent: u64,
    /// r: rows of each table.
    pub rows: u64,
    /// t: transactions, where not time decides.
    pub transactions: u64,
}

impl VacationOptions {
    /// Few conflicts.
    pub const LOW: VacationOptions =
        VacationOptions { things: 2, queried_percent: 90, reserving_percent: 98, rows: 1 << 20, transactions: 1 << 22 };
    /// More conflicts.
    pub const HIGH: VacationOptions =
        VacationOptions { things: 4, queried_percent: 60, reserving_percent: 90, rows: 1 << 20, transactions: 1 << 22 };
}

/// A client's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reserves.
    Reserve,
    /// Deletes a customer.
    DeleteCustomer,
    /// Adds places, or takes some away.
    UpdateTables,
}

/// The agency in a heap, and what its clients do.
#[derive(Clone, Copy, Debug)]
pub struct Vacation {
    agency: Agency,
    options: VacationOptions,
}

impl Vacation {
    /// Opens the agency: all tables filled, with `rows` rows each.
    ///
    /// # Errors
    /// [`HeapError::OutOfSpace`](heap::HeapError::OutOfSpace) if the heap is too small for it;
    /// [`HeapError::Log`](heap::HeapError::Log) if the log fails.
    pub fn create(heap: &Heap, options: VacationOptions) -> HeapResult<Vacation> {
        let agency = Agency::create(heap, options.rows)?;
        Ok(Vacation { agency, options })
    }

    /// The agency of a heap that was opened again.
    pub fn at(place: HeapRef, options: VacationOptions) -> Vacation {
        Vacation { agency: Agency::at(place), options }
    }

    /// Where the agency stands in the heap.
    pub fn place(&self) -> HeapRef {
        self.agency.place()
    }

    /// By chance, what a client does next.
    pub fn choose(&self, random: &mut Random) -> Action {
        let percent = random.below(100);
        if percent < self.options.reserving_percent {
            Action::Reserve
        } else if random.below(2) == 0 {
            Action::DeleteCustomer
        } else {
            Action::UpdateTables
        }
    }

    /// Runs one transaction of a kind.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn run(
        &self,
        heap: &Heap,
        random: &mut Random,
        action: Action,
        mode: CommitMode,
    ) -> HeapResult<CommittedTransaction> {
        let numbers = (self.options.rows * self.options.queried_percent / 100).max(1);
        match action {
            Action::Reserve => client::reserve(&self.agency, heap, random, self.options.things, numbers, mode),
            Action::DeleteCustomer => client::delete_customer(&self.agency, heap, random, numbers, mode),
            Action::UpdateTables => {
                client::update_tables(&self.agency, heap, random, self.options.things, numbers, mode)
            }
        }
    }
}

impl Workload for Vacation {
    fn step(&self, heap: &Heap, random: &mut Random, mode: CommitMode) -> HeapResult<CommittedTransaction> {
        let action = self.choose(random);
        self.run(heap, random, action, mode)
    }

    fn check(&self, heap: &Heap) -> HeapResult<Result<(), String>> {
        self.agency.check(heap)
    }
}
