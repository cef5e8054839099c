//! Checkpoints on the faulty device, and on a real directory: each module says what it proves.

mod crash;
mod damage;
mod directory;
mod faults;
mod loads;
mod long;
mod model;
mod support;
