//! Sessions and statements where scripts do not suffice. One program holds all subjects, as each program links the whole
//! of the SQL engine; `cargo test -p lstore-sql --test statements SUBJECT::` runs one of them.
mod answers;
mod array_tables;
mod at_once;
mod batches;
mod checks;
mod costs;
mod defaults;
mod foreign_keys;
mod generated;
mod join_order;
mod kept_plans;
mod made_types;
mod names;
mod offload;
mod opening;
mod own_operators;
mod pg_catalog;
mod prepared;
mod pushdown;
mod reference_histories;
mod session;
mod space_indexes;
mod spilling;
mod sums;
mod temporary;
mod user_functions;
