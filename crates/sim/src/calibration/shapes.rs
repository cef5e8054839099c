//! The caches that a core of this computer has, where the system tells (Linux: `/sys/devices/system/cpu/cpu0/cache`).

use std::fs::read_to_string;
use std::path::Path;

use crate::machine::CacheShape;

/// The caches of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shapes {
    pub l1: CacheShape,
    pub l2: CacheShape,
}

impl Shapes {
    /// Those of this computer; where they are unknown, or no shape of the model, some that any computer of today has.
    pub fn here() -> Self {
        Self::told_by(Path::new("/sys/devices/system/cpu/cpu0/cache"))
    }

    fn told_by(folder: &Path) -> Self {
        let mut shapes = Shapes { l1: CacheShape::kib(32, 8), l2: CacheShape::kib(256, 8) };
        for index in 0..8 {
            let cache = folder.join(format!("index{index}"));
            match (word(&cache, "level").as_deref(), word(&cache, "type").as_deref(), shape(&cache)) {
                (Some("1"), Some("Data"), Some(shape)) => shapes.l1 = shape,
                (Some("2"), Some(_), Some(shape)) => shapes.l2 = shape,
                _ => {}
            }
        }
        shapes
    }
}

fn word(cache: &Path, name: &str) -> Option<String> {
    Some(read_to_string(cache.join(name)).ok()?.trim().to_owned())
}

fn shape(cache: &Path) -> Option<CacheShape> {
    let kib: u32 = word(cache, "size")?.strip_suffix('K')?.parse().ok()?;
    let ways: u32 = word(cache, "ways_of_associativity")?.parse().ok()?;
    let sets = kib.checked_mul(16)?.checked_div(ways)?;
    (sets.is_power_of_two() && sets * ways == kib * 16).then_some(CacheShape { sets, ways })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_those_that_the_system_tells_or_usual_ones() {
        let folder = tempfile::tempdir().unwrap();
        let usual = Shapes { l1: CacheShape { sets: 64, ways: 8 }, l2: CacheShape { sets: 512, ways: 8 } };
        assert_eq!(Shapes::told_by(folder.path()), usual);
        let told = [("1", "Data", "48K", "12"), ("1", "Instruction", "64K", "8"), ("2", "Unified", "2000K", "16")];
        for (index, (level, kind, size, ways)) in told.into_iter().enumerate() {
            let cache = folder.path().join(format!("index{index}"));
            std::fs::create_dir(&cache).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size), ("ways_of_associativity", ways)] {
                std::fs::write(cache.join(name), text).unwrap();
            }
        }
        assert_eq!(Shapes::told_by(folder.path()), Shapes { l1: CacheShape { sets: 64, ways: 12 }, ..usual });
    }
}
