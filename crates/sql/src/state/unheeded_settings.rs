//! Settings of PostgreSQL's planner, its memory, its log and its tablespaces, which sessions may set and see, and which change nothing
//! here.
//!
//! Scripts and tools set them without asking what there is: `SET enable_seqscan = off`, `SET LOCAL work_mem = '64MB'`. A value is checked
//! for its kind alone.
use crate::error::{Result, SqlError};
use crate::parsing::time_limit;

/// What a setting takes.
#[derive(Clone, Copy)]
enum Kind {
    Truth,
    Number,
    /// An amount of memory, in kilobytes without a unit.
    Memory,
    /// A length of time, in milliseconds without a unit.
    Time,
    Word(&'static [&'static str]),
}

/// One of these settings.
#[derive(Clone, Copy)]
pub(crate) struct Unheeded {
    name: &'static str,
    pub(crate) default: &'static str,
    kind: Kind,
}

/// The one of these that is heeded: `replica` turns foreign keys off.
pub(crate) const REPLICATION_ROLE: &str = "session_replication_role";

/// How much messages matter.
const LEVELS: &[&str] =
    &["debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log", "fatal", "panic"];

/// The settings by name, each with what it is without being set.
const ALL: [(&str, &str, Kind); 86] = [
    ("array_nulls", "on", Kind::Word(&["on"])),
    ("backslash_quote", "safe_encoding", Kind::Word(&["safe_encoding", "on", "off"])),
    ("client_connection_check_interval", "0", Kind::Time),
    ("commit_delay", "0", Kind::Number),
    ("commit_siblings", "5", Kind::Number),
    ("constraint_exclusion", "partition", Kind::Word(&["partition", "on", "off"])),
    ("cursor_tuple_fraction", "0.1", Kind::Number),
    ("deadlock_timeout", "1s", Kind::Time),
    ("default_statistics_target", "100", Kind::Number),
    ("default_tablespace", "", Kind::Word(&["", "pg_default"])),
    ("default_toast_compression", "pglz", Kind::Word(&["pglz", "lz4"])),
    ("effective_cache_size", "4GB", Kind::Memory),
    ("effective_io_concurrency", "1", Kind::Number),
    ("enable_async_append", "on", Kind::Truth),
    ("enable_bitmapscan", "on", Kind::Truth),
    ("enable_gathermerge", "on", Kind::Truth),
    ("enable_hashagg", "on", Kind::Truth),
    ("enable_hashjoin", "on", Kind::Truth),
    ("enable_incremental_sort", "on", Kind::Truth),
    ("enable_indexonlyscan", "on", Kind::Truth),
    ("enable_indexscan", "on", Kind::Truth),
    ("enable_material", "on", Kind::Truth),
    ("enable_memoize", "on", Kind::Truth),
    ("enable_mergejoin", "on", Kind::Truth),
    ("enable_nestloop", "on", Kind::Truth),
    ("enable_parallel_append", "on", Kind::Truth),
    ("enable_parallel_hash", "on", Kind::Truth),
    ("enable_partition_pruning", "on", Kind::Truth),
    ("enable_partitionwise_aggregate", "off", Kind::Truth),
    ("enable_partitionwise_join", "off", Kind::Truth),
    ("enable_seqscan", "on", Kind::Truth),
    ("enable_sort", "on", Kind::Truth),
    ("enable_tidscan", "on", Kind::Truth),
    ("escape_string_warning", "on", Kind::Truth),
    ("force_parallel_mode", "off", Kind::Word(&["off", "on", "regress"])),
    ("from_collapse_limit", "8", Kind::Number),
    ("geqo", "on", Kind::Truth),
    ("geqo_effort", "5", Kind::Number),
    ("geqo_generations", "0", Kind::Number),
    ("geqo_pool_size", "0", Kind::Number),
    ("geqo_seed", "0", Kind::Number),
    ("geqo_selection_bias", "2", Kind::Number),
    ("geqo_threshold", "12", Kind::Number),
    ("gin_pending_list_limit", "4MB", Kind::Memory),
    ("hash_mem_multiplier", "2", Kind::Number),
    ("jit", "on", Kind::Truth),
    ("jit_above_cost", "100000", Kind::Number),
    ("jit_inline_above_cost", "500000", Kind::Number),
    ("jit_optimize_above_cost", "500000", Kind::Number),
    ("join_collapse_limit", "8", Kind::Number),
    ("log_duration", "off", Kind::Truth),
    ("log_lock_waits", "off", Kind::Truth),
    ("log_min_duration_statement", "-1", Kind::Number),
    ("log_min_error_statement", "error", Kind::Word(LEVELS)),
    ("log_min_messages", "warning", Kind::Word(LEVELS)),
    ("log_statement", "none", Kind::Word(&["none", "ddl", "mod", "all"])),
    ("log_temp_files", "-1", Kind::Number),
    ("maintenance_io_concurrency", "10", Kind::Number),
    ("maintenance_work_mem", "64MB", Kind::Memory),
    ("max_parallel_maintenance_workers", "2", Kind::Number),
    ("max_parallel_workers", "8", Kind::Number),
    ("max_stack_depth", "2MB", Kind::Memory),
    ("min_parallel_index_scan_size", "512kB", Kind::Memory),
    ("min_parallel_table_scan_size", "8MB", Kind::Memory),
    ("parallel_leader_participation", "on", Kind::Truth),
    ("parallel_setup_cost", "1000", Kind::Number),
    ("parallel_tuple_cost", "0.1", Kind::Number),
    ("plan_cache_mode", "auto", Kind::Word(&["auto", "force_generic_plan", "force_custom_plan"])),
    ("quote_all_identifiers", "off", Kind::Word(&["off"])),
    ("recursive_worktable_factor", "10", Kind::Number),
    (REPLICATION_ROLE, "origin", Kind::Word(&["origin", "replica", "local"])),
    ("synchronize_seqscans", "on", Kind::Truth),
    ("temp_buffers", "8MB", Kind::Memory),
    ("temp_tablespaces", "", Kind::Word(&["", "pg_default"])),
    ("track_activities", "on", Kind::Truth),
    ("track_counts", "on", Kind::Truth),
    ("track_functions", "none", Kind::Word(&["none", "pl", "all"])),
    ("track_io_timing", "off", Kind::Truth),
    ("transform_null_equals", "off", Kind::Word(&["off"])),
    ("vacuum_cost_delay", "0", Kind::Time),
    ("vacuum_cost_limit", "200", Kind::Number),
    ("vacuum_freeze_min_age", "50000000", Kind::Number),
    ("vacuum_freeze_table_age", "150000000", Kind::Number),
    ("wal_compression", "off", Kind::Word(&["off", "on", "pglz", "lz4", "zstd"])),
    ("work_mem", "4MB", Kind::Memory),
    ("xmlbinary", "base64", Kind::Word(&["base64", "hex"])),
];

impl Unheeded {
    pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
        ALL.into_iter().map(|(name, default, _)| (name, default))
    }

    pub(crate) fn find(name: &str) -> Option<Unheeded> {
        let (name, default, kind) = *ALL.get(ALL.binary_search_by_key(&name, |(name, _, _)| name).ok()?)?;
        Some(Unheeded { name, default, kind })
    }

    /// The value that a `SET` means, as it is shown.
    ///
    /// # Errors
    /// Where it is none of this setting.
    pub(crate) fn read(self, value: &str) -> Result<String> {
        let value = value.trim();
        let lower = value.to_lowercase();
        if lower == "default" {
            return Ok(self.default.to_owned());
        }
        let invalid = |message: String| Err(SqlError::new("22023", message));
        match self.kind {
            Kind::Truth => match lower.as_str() {
                "on" | "true" | "yes" | "1" | "t" | "y" => Ok("on".to_owned()),
                "off" | "false" | "no" | "0" | "f" | "n" => Ok("off".to_owned()),
                _ => invalid(format!("parameter \"{}\" requires a Boolean value", self.name)),
            },
            Kind::Number if value.parse::<f64>().is_ok_and(f64::is_finite) => Ok(value.to_owned()),
            Kind::Memory if is_memory(value) => Ok(with_unit(value)),
            Kind::Time if let Ok(millis) = time_limit::parse(value) => Ok(time_limit::show(millis)),
            Kind::Word(words) if words.contains(&lower.as_str()) => Ok(lower),
            Kind::Word(_) if self.name == "default_tablespace" => {
                let message = format!("invalid value for parameter \"{}\": \"{value}\"", self.name);
                let detail = format!("Tablespace \"{value}\" does not exist.");
                Err(SqlError::new("22023", message).detail(detail))
            }
            _ => invalid(format!("invalid value for parameter \"{}\": \"{value}\"", self.name)),
        }
    }
}

fn is_memory(text: &str) -> bool {
    let unit = text.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    let number = &text[..text.len() - unit.len()];
    number.parse::<f64>().is_ok() && ["", "B", "kB", "MB", "GB", "TB"].contains(&unit.trim_start())
}

/// A number alone counts kilobytes.
fn with_unit(text: &str) -> String {
    if text.ends_with('B') { text.to_owned() } else { format!("{text}kB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_found_and_takes_what_it_is_by_itself() {
        for (name, default) in Unheeded::all() {
            let found = Unheeded::find(name).unwrap_or_else(|| panic!("{name} is out of order"));
            assert_eq!(found.read(default).unwrap(), default, "{name}");
            assert_eq!(found.read("DEFAULT").unwrap(), default, "{name}");
            assert!(found.read("many").is_err(), "{name}");
        }
        assert_eq!(Unheeded::find("work_mem").unwrap().read("64").unwrap(), "64kB");
        assert!(Unheeded::find("memory_limit").is_none());
    }
}
