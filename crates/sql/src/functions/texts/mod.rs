//! Functions of texts and bytes.
//!
//! Imports no other folder of functions.
pub(crate) mod bytes;
pub(crate) mod codes;
pub(crate) mod collation;
pub(crate) mod encoded;
pub(crate) mod folded;
pub(crate) mod hashes;
pub(crate) mod hstore;
pub(crate) mod octets;
pub(crate) mod quoting;
pub(crate) mod regexp;
pub(crate) mod similarity;
pub(crate) mod unaccent;
