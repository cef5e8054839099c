//! Baselines of the papers that are not published, written down from their descriptions.
mod pt4;

pub use pt4::PrefixTree;
