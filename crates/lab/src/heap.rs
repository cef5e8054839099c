//! The workloads of the durable heap, and the figures of its paper (Hathi, section 5).
//!
//! | module | workload | the paper |
//! |---|---|---|
//! | `workload` | what all of them are: a step, and a look at what it left | |
//! | `words` | six random words read and written in each transaction | section 5, figure 4(a) |
//! | `table` | entries of a hash table found, inserted and removed | figure 2 |
//! | `vacation` | STAMP's travel agency | section 5, figures 4(a) and 4(b) |
//! | `drive` | threads that run one for a while, in one of the ways to commit | |
//! | `bench` | `lstore bench heap`: command line, files, report | |
//! | `figures` | figures 4(a) and 4(b), each with its baseline measured beside it | |

mod bench;
mod drive;
mod figures;
mod table;
mod vacation;
mod words;
mod workload;

pub use bench::{HeapArgs, PaperFigure, bench};
pub use drive::{Drive, Pace, drive};
pub use figures::{Figure, FigureOptions, commit_modes, durability_costs};
pub use table::Table;
pub use vacation::{Action, Vacation, VacationOptions};
pub use words::Words;
pub use workload::{Random, Workload};
