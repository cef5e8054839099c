//! What the program `gpu-bench` does, as a library: data, checks against the twins, roofs, timings.

pub mod check;
pub mod data;
