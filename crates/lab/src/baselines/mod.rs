//! Baselines of the papers that nobody publishes, written down from their descriptions.
mod pt4;

pub use pt4::PrefixTree;
