//! The contents of base pages beside encoded columns: rows, and the meta-data of records.
pub(crate) mod meta_columns;
pub(crate) mod row_page;
