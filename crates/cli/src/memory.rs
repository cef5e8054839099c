//! How much memory tables may take: `--memory-limit`, or what the database remembers (`ALTER DATABASE ... SET memory_limit`),
//! or three quarters of what there is.
use clap::Args;
use engine::Database;
use sql::SqlError;

/// The part of memory that tables may take where nothing is said, in hundredths; the rest is for queries.
const PART: u64 = 75;

/// How much memory tables may take.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct MemoryArgs {
    /// The memory that tables may take, such as 512MB, 2GB or none; by default what ALTER DATABASE has set, or else three
    /// quarters of what there is. Of a database in a directory, what does not fit is read from there when it is needed
    #[arg(long, value_name = "SIZE", value_parser = parse)]
    memory_limit: Option<Limit>,
}

/// A limit in bytes, or none.
#[derive(Clone, Copy, Debug)]
struct Limit(Option<u64>);

fn parse(text: &str) -> Result<Limit, String> {
    sql::parse_memory_limit(text).map(Limit).map_err(str::to_owned)
}

impl MemoryArgs {
    /// The limit; `None` if there is none.
    pub fn limit_bytes(self) -> Option<u64> {
        self.memory_limit.map_or_else(by_default, |Limit(bytes)| bytes)
    }

    /// Gives a database that was just opened the limit that it remembers, unless another was said.
    pub fn or_remembered(self, db: &Database) -> Result<(), SqlError> {
        if self.memory_limit.is_none()
            && let Some(limit) = sql::remembered_memory_limit(db)?
        {
            db.set_memory_limit_bytes(limit);
        }
        Ok(())
    }
}

/// A part of the memory that this process may have, if that is known.
fn by_default() -> Option<u64> {
    sql::machine_memory_bytes().map(|bytes| bytes / 100 * PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_is_said_or_a_part_of_memory() {
        let said = |text: &str| MemoryArgs { memory_limit: Some(parse(text).unwrap()) }.limit_bytes();
        assert_eq!((said("64MB"), said("none")), (Some(64 << 20), None));
        assert!(parse("much").unwrap_err().contains("Say a unit"));
        let limit = MemoryArgs::default().limit_bytes();
        assert!(limit.is_none_or(|bytes| bytes > 64 << 20), "{limit:?}");
    }
}
