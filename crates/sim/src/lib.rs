//! A model of machines with several sockets, hardware transactions and instruction caches, so that figures that need such
//! machines come out of any laptop, the same from the same seed.
//!
//! ```text
//! figures        the figures of three papers, and what each claims
//! calibration    the model beside this computer
//! workloads      threads that work on a structure for a time
//! structures  sections  delegation       programs over `Memory`
//! memory         loads, stores, atomic instructions, transactions: each a point of time
//! simulation     the scheduler of simulated threads          native   the computer's own memory
//! machine        caches, directory, transactions, clocks
//! instructions   traces of instructions, replayed on cores between which threads migrate
//! ```
//!
//! Programs are written once, as futures over [`Memory`]. On a [`Simulation`] each access happens at a moment of simulated
//! time; on [`NativeMemory`] the system's threads run them.
#![forbid(unsafe_code)]

pub mod calibration;
pub mod delegation;
pub mod figures;
pub mod instructions;
pub mod machine;
mod memory;
mod native;
mod random;
pub mod sections;
mod simulation;
pub mod structures;
pub mod workloads;

pub use machine::{Aborted, Address, Counters, MachineConfig, Pinning};
pub use memory::Memory;
pub use native::{NativeMemory, NativeThread};
pub use random::Random;
pub use simulation::{SimulatedThread, Simulation, Unclocked, complete};
