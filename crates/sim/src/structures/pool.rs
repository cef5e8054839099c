//! The nodes of one thread: an allocator whose own memory no other thread touches, as the paper's is (tle-multisocket, section 6).
//!
//! What an operation takes and gives counts only once it has come through: one that is aborted and tried again gets the same
//! nodes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::machine::Address;
use crate::simulation::Simulation;

/// Nodes fetched from the machine at a time.
const CHUNK_NODES: u64 = 64;

/// Free nodes of one size.
#[derive(Clone)]
pub struct Pool {
    node_words: u64,
    free: RefCell<Vec<Address>>,
    taken: Cell<usize>,
    given: RefCell<Vec<Address>>,
    allocate: Rc<dyn Fn(u64) -> Address>,
}

impl Pool {
    /// An empty pool that gets words, in whole lines, from `allocate`.
    pub fn new(node_words: u64, allocate: impl Fn(u64) -> Address + 'static) -> Self {
        let pool = Pool {
            node_words,
            free: RefCell::default(),
            taken: Cell::new(0),
            given: RefCell::default(),
            allocate: Rc::new(allocate),
        };
        pool.settle();
        pool
    }

    /// An empty pool over the memory of a machine.
    pub fn of(simulation: &Simulation, node_words: u64) -> Self {
        Pool::new(node_words, simulation.allocator())
    }

    /// Begins an operation, or begins it again.
    pub fn begin(&self) {
        self.taken.set(0);
        self.given.borrow_mut().clear();
    }

    /// A free node; what it has is of before.
    pub fn take(&self) -> Address {
        let free = self.free.borrow();
        self.taken.set(self.taken.get() + 1);
        free[free.len() - self.taken.get()]
    }

    /// Gives a node back.
    pub fn give(&self, node: Address) {
        self.given.borrow_mut().push(node);
    }

    /// Ends an operation: what it took is gone, what it gave is free. Gets more nodes if few are left.
    pub fn settle(&self) {
        let mut free = self.free.borrow_mut();
        let left = free.len() - self.taken.replace(0);
        free.truncate(left);
        free.append(&mut self.given.borrow_mut());
        if free.len() < CHUNK_NODES as usize / 2 {
            let first = (self.allocate)(CHUNK_NODES * self.node_words);
            free.extend((0..CHUNK_NODES).rev().map(|node| first + node * self.node_words));
        }
    }
}
