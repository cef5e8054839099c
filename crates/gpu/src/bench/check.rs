//! Every kernel against its twin, on inputs that a seed chooses: sizes, keys, settings.
//!
//! Inputs are small, as the emulated device runs them, too; what grows with size is in the benchmarks.

use std::sync::Arc;

use crate::bench::check_joins::{check_edges, check_join, check_join_grouped, check_join_orders, check_partners};
use crate::bench::data::{Random, zipf};
use crate::bitwise::{self, Distributed, Query, Resident, Split, directory};
use crate::contention::{Optimizer, Settings as Budget, Use};
use crate::device::{Device, DeviceBuffer, Grid, Parameters, Pinned, Stream};
use crate::error::GpuError;
use crate::group::{self, Arrangement, Column, Measured, resident};
use crate::tree;

/// One subject of the checks.
pub type Check = fn(&Arc<Device>, &mut Random) -> Result<(), String>;

/// All of them, by name.
pub const CHECKS: [(&str, Check); 15] = [
    ("join", check_join),
    ("join in an order", check_join_orders),
    ("join for partners", check_partners),
    ("join with groups", check_join_grouped),
    ("join at the edges", check_edges),
    ("groups", check_groups),
    ("groups counted", check_counts),
    ("groups of a query", check_measured),
    ("groups of residents", check_residents),
    ("lookup", check_look_up),
    ("bitwise", check_bitwise),
    ("directory", check_directory),
    ("tree", check_tree),
    ("windows", check_windows),
    ("roofs", check_roofs),
];

/// Runs the checks for a seed that have a name beginning with `name`.
///
/// # Errors
/// Which check failed and how: an answer differs from the twin's, or the device has failed.
pub fn run(device: &Arc<Device>, name: &str, seed: u64) -> Result<(), String> {
    for (subject, check) in CHECKS.iter().filter(|(subject, _)| subject.starts_with(name)) {
        let mut random = Random::new(seed);
        check(device, &mut random).map_err(|what| format!("{subject}, seed {seed}: {what}"))?;
    }
    Ok(())
}

pub(super) fn told(error: GpuError) -> String {
    error.to_string()
}

pub(super) fn one_of<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

pub(super) fn compare(what: &str, mut found: Vec<u64>, mut expected: Vec<u64>) -> Result<(), String> {
    found.sort_unstable();
    expected.sort_unstable();
    if found == expected {
        return Ok(());
    }
    let first = found.iter().zip(&expected).position(|(ours, theirs)| ours != theirs);
    Err(format!(
        "{what}: {} for {} values, the first difference at {:?}",
        found.len(),
        expected.len(),
        first.unwrap_or(found.len().min(expected.len()))
    ))
}

/// A column, and the clones that the optimizer has made of it.
struct Cloned {
    codes: Vec<u32>,
    places: Vec<u32>,
    group_of_place: Vec<u32>,
}

impl Cloned {
    fn of(random: &mut Random, rows: usize, groups: usize, purpose: Use) -> Self {
        let theta = one_of(random, &[0.0, 0.75, 2.0]);
        let codes = zipf(rows, groups, theta, random.word());
        let budget = Budget { purpose, window: one_of(random, &[0, 8]), budget_percent: one_of(random, &[150, 600]) };
        let mut optimizer = Optimizer::new(groups, budget);
        let mut places = codes.clone();
        optimizer.rewrite(&mut places);
        Self { codes, places, group_of_place: optimizer.value_of_place() }
    }
}

fn check_groups(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for groups in [1, 2 + random.below(60) as usize, 900, 13_000] {
        let rows = random.below(9000) as usize;
        let data = Cloned::of(random, rows, groups, Use::Writes);
        // Sums of small values, of both signs, carry at 0; those of large ones everywhere.
        let shift = one_of(random, &[0, 16, 62]);
        let values: Vec<i64> = (0..rows).map(|_| random.word() as i64 >> shift).collect();
        let has_values = random.below(3) > 0;
        let plain = Column {
            codes: &data.codes,
            values: has_values.then_some(values.as_slice()),
            group_count: groups as u32,
            group_of_place: None,
        };
        let expected = group::twin::aggregate(&plain);
        let mut ways = vec![(plain, Arrangement::Global { copies: 1 + random.below(3) as u32 })];
        ways.push((plain, Arrangement::suitable(&plain, rows, device.properties())));
        if groups <= 60 {
            ways.push((plain, Arrangement::Private));
        }
        if groups <= 900 {
            let cloned = Column { codes: &data.places, group_of_place: Some(&data.group_of_place), ..plain };
            let copies = 1 + random.below(3) as u32;
            let halves = [Arrangement::Halves { copies }, Arrangement::Held { copies }, Arrangement::Peers];
            for arrangement in halves.into_iter().chain([Arrangement::Shared]) {
                ways.extend([(plain, arrangement), (cloned, arrangement)]);
            }
        }
        ways.push((plain, Arrangement::Partitioned));
        for (column, arrangement) in ways {
            let found = group::aggregate(device, &column, arrangement).map_err(told)?;
            if found != expected {
                let clones = column.place_count() - column.group_count;
                return Err(format!("{arrangement:?}, {rows} rows, {groups} groups, {clones} clones: differs"));
            }
        }
    }
    Ok(())
}

/// Counts of groups for which one block has room, and of groups that several take in parts, whose places fill shared memory to its end;
/// any number of rows behind the last four.
fn check_counts(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for groups in [1, 2 + random.below(60) as u32, 5_000, 129_600] {
        let rows = random.below(20_000) as usize;
        let codes: Vec<u32> = (0..rows).map(|_| random.below(u64::from(groups)) as u32).collect();
        let column = Column { codes: &codes, values: None, group_count: groups, group_of_place: None };
        let found = group::aggregate(device, &column, Arrangement::Counts).map_err(told)?;
        if found != group::twin::aggregate(&column) {
            return Err(format!("counts of {rows} rows, {groups} groups: differ"));
        }
    }
    Ok(())
}

fn check_measured(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for groups in [1, 2 + random.below(60), 9000] {
        let rows = random.below(5000) as usize;
        let codes: Vec<u32> = (0..rows).map(|_| random.below(groups) as u32).collect();
        let others: Vec<u32> =
            codes.iter().map(|code| if random.below(4) == 0 { groups as u32 } else { *code }).collect();
        // Values of which the sums fit 64 bits, or the halves' sums alone.
        let shift = one_of(random, &[0, 1, 30, 52]);
        let values: Vec<i64> = (0..rows).map(|_| random.word().cast_signed() >> shift).collect();
        let group_count = groups as u32 + 1;
        let column = |codes, [sum, min, max]: [bool; 3]| Measured { codes, values: &values, sum, min, max };
        let mut flags = || [0; 3].map(|_| random.below(2) == 1);
        let columns = [column(None, [true; 3]), column(Some(others.as_slice()), flags()), column(None, flags())];
        let found = group::measure(device, &codes, group_count, &columns).map_err(told)?;
        for (found, column) in found.columns.iter().zip(&columns) {
            let mut expected = group::twin::totals(&codes, group_count, column);
            // Of a group without rows there is no extreme.
            for (at, _) in expected.counts.iter().enumerate().filter(|(_, count)| **count == 0) {
                expected.mins.get_mut(at).into_iter().for_each(|min| *min = found.mins[at]);
                expected.maxs.get_mut(at).into_iter().for_each(|max| *max = found.maxs[at]);
            }
            if *found != expected {
                return Err(format!("{rows} rows, {groups} groups, values of {} bits: differs", 64 - shift));
            }
        }
    }
    Ok(())
}

/// Columns that stay on the device, of which a bitmap chooses rows, against the twin over these rows alone.
fn check_residents(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for round in 0..3 {
        let count = 1 + random.below(5000) as usize;
        let bits: Vec<u64> =
            (0..count.div_ceil(64)).map(|_| if round == 0 { u64::MAX } else { random.word() }).collect();
        let chosen: Vec<usize> = (0..count).filter(|row| bits[row / 64] >> (row % 64) & 1 == 1).collect();
        let widths: Vec<u64> = (0..1 + random.below(4)).map(|_| 1 + random.below(9)).collect();
        let mins: Vec<i64> = widths.iter().map(|_| random.word().cast_signed() >> 1).collect();
        // Rows that are not chosen have any keys and values.
        let mut column = |min: i64, width: u64| -> Vec<i64> {
            let mut values: Vec<i64> = (0..count).map(|_| random.word().cast_signed()).collect();
            chosen.iter().for_each(|row| values[*row] = min + random.below(width).cast_signed());
            values
        };
        let keys: Vec<Vec<i64>> = mins.iter().zip(&widths).map(|(min, width)| column(*min, *width)).collect();
        let values = column(-1000, 3000);
        let code = |row: &usize| {
            let place = |code: u64, key: usize| code * widths[key] + keys[key][*row].abs_diff(mins[key]);
            (0..keys.len()).fold(0, place) as u32
        };
        let codes: Vec<u32> = chosen.iter().map(code).collect();
        let group_count = widths.iter().product::<u64>() as u32;
        let flags = [0; 3].map(|_| random.below(2) == 1);
        let held = |values: &Vec<i64>| {
            let (column, (low, high)) = (resident::Numbers::new(device, count)?, values.split_at(count / 2));
            column.write(count / 2, high)?;
            column.write(0, low).map(|()| column)
        };
        let near: Vec<resident::Numbers> =
            keys.iter().chain([&values]).map(held).collect::<Result<_, _>>().map_err(told)?;
        let asked: Vec<resident::Key<'_>> = (0..keys.len())
            .map(|key| resident::Key { values: &near[key], min: mins[key], width: widths[key] as u32 })
            .collect();
        let [sum, min, max] = flags;
        let of = resident::Values { values: &near[keys.len()], largest: 2000, sum, min, max };
        let found = resident::measure(device, &bits, count, &asked, &[of]).map_err(told)?;
        let narrow = resident::Key { width: (widths[0] as u32).max(2) - 1, ..asked[0] };
        let are_all_inside = chosen.iter().all(|row| keys[0][*row] < mins[0] + i64::from(narrow.width));
        if resident::measure(device, &bits, count, &[narrow], &[of]).is_ok() != are_all_inside {
            return Err(format!("{} of {count} rows, some of them outside: not refused", chosen.len()));
        }
        let chosen_values: Vec<i64> = chosen.iter().map(|row| values[*row]).collect();
        let expected =
            group::twin::totals(&codes, group_count, &Measured { codes: None, values: &chosen_values, sum, min, max });
        let agrees = |of: &[i64], expected: &[i64]| {
            of.len() == expected.len() && (0..of.len()).all(|at| found.counts[at] == 0 || of[at] == expected[at])
        };
        let column = &found.columns[0];
        let is_right = (&found.counts, &column.counts, &column.sums)
            == (&expected.counts, &expected.counts, &expected.sums)
            && agrees(&column.mins, &expected.mins)
            && agrees(&column.maxs, &expected.maxs);
        if !is_right {
            return Err(format!("{} of {count} rows, {group_count} groups: differs", chosen.len()));
        }
    }
    Ok(())
}

fn check_look_up(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for groups in [1, 700] {
        let rows = random.below(9000) as usize;
        let data = Cloned::of(random, rows, groups, Use::Reads);
        let dimension: Vec<u32> = (0..groups).map(|_| random.word() as u32).collect();
        let plain = Column { codes: &data.codes, values: None, group_count: groups as u32, group_of_place: None };
        let cloned = Column { codes: &data.places, group_of_place: Some(&data.group_of_place), ..plain };
        let expected = group::twin::look_up(&plain, &dimension);
        for column in [plain, cloned] {
            let found = group::look_up(device, &column, &dimension).map_err(told)?;
            if found != expected {
                return Err(format!("{rows} rows, {groups} groups: {found} for {expected}"));
            }
        }
    }
    Ok(())
}

fn check_bitwise(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for _ in 0..4 {
        let count = random.below(3000) as usize;
        // Points in few places, so that clusters are large, or all over.
        let spread = one_of(random, &[1 << 6, 1 << 20, 1 << 32]);
        let x: Vec<u32> = (0..count).map(|_| random.below(spread) as u32).collect();
        let y: Vec<u32> = (0..count).map(|_| random.below(spread) as u32).collect();
        let prefix_bits = one_of(random, &[0, 4, 14, 29, 32]);
        let split = Split { prefix_bits, suffix_bits: random.below(u64::from(33 - prefix_bits)) as u32 };
        let queries: Vec<Query> = (0..random.below(60))
            .map(|_| {
                let [x, y] = [0, 1].map(|_| {
                    let from = random.below(spread);
                    [from as u32, (from + random.below(1 + spread / 4)).min(u64::from(u32::MAX)) as u32]
                });
                Query { x, y }
            })
            .collect();
        let points = Distributed::new(&x, &y, split);
        let expected = bitwise::twin::scan(&points, &queries);
        let resident = Resident::new(device, &points).map_err(told)?;
        let batch = 1 + random.below(30) as usize;
        let (found, stages) = resident.scan(&queries, batch).map_err(told)?;
        if split.residual_bits() == 0 && stages.unsure > 0 {
            return Err(format!("{split:?}: {} hits unsure though all bits are known", stages.unsure));
        }
        compare(&format!("{count} points, {split:?}"), found, expected)?;
    }
    // More pairs and hits than there is room for at first.
    let [x, y] = [0, 1].map(|_| (0..900).map(|_| random.word() as u32).collect::<Vec<u32>>());
    let points = Distributed::new(&x, &y, Split { prefix_bits: 14, suffix_bits: 3 });
    let queries = [Query { x: [0, u32::MAX], y: [1 << 20, u32::MAX] }; 5];
    let (found, _) = Resident::new(device, &points).and_then(|points| points.scan(&queries, 5)).map_err(told)?;
    compare("all points", found, bitwise::twin::scan(&points, &queries))
}

fn check_tree(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for count in [0, 1 + random.below(40), 1 + random.below(3000)] {
        let fanout = one_of(random, &[4, 32, 70]);
        let queries = 1 + random.below(60);
        let numbers: Vec<[i64; 2]> = (0..count as i64).map(|at| [at * 5, at * 5 + (at % 9)]).collect();
        let wanted: Vec<[i64; 2]> = (0..queries)
            .map(|_| {
                let from = random.below(5 * count + 10) as i64;
                [from, from + random.below(300) as i64]
            })
            .collect();
        let packed = tree::pack(&numbers, fanout, |keys| {
            keys.iter().fold([i64::MAX, i64::MIN], |all, key| [all[0].min(key[0]), all[1].max(key[1])])
        });
        check_tree_of(device, &packed, &wanted, &format!("{count} ranges, fanout {fanout}"))?;
        let boxes: Vec<[f32; 4]> = (0..count).map(|_| random_box(random, 0.05)).collect();
        let wanted: Vec<[f32; 4]> = (0..queries).map(|_| random_box(random, 0.2)).collect();
        let packed = tree::pack(&boxes, fanout, |keys| {
            let ends = [f32::MAX, f32::MAX, f32::MIN, f32::MIN];
            keys.iter()
                .fold(ends, |all, key| [all[0].min(key[0]), all[1].min(key[1]), all[2].max(key[2]), all[3].max(key[3])])
        });
        check_tree_of(device, &packed, &wanted, &format!("{count} rectangles, fanout {fanout}"))?;
    }
    Ok(())
}

fn random_box(random: &mut Random, size: f64) -> [f32; 4] {
    let [x, y] = [random.fraction(), random.fraction()];
    [x, y, x + random.fraction() * size, y + random.fraction() * size].map(|end| end as f32)
}

fn check_tree_of<K: tree::Key>(
    device: &Arc<Device>,
    packed: &tree::Packed<K>,
    queries: &[K],
    what: &str,
) -> Result<(), String> {
    let levels = packed.levels();
    let resident = tree::Resident::new(device, &levels).map_err(told)?;
    let (found, _) = resident.scan(queries).map_err(told)?;
    compare(what, found.to_vec(), tree::twin::scan(&levels, queries))
}

/// Boxes of one to four dimensions, of which many touch.
fn check_windows(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    check_windows_of::<2>(device, random)?;
    check_windows_of::<4>(device, random)?;
    check_windows_of::<6>(device, random)?;
    check_windows_of::<8>(device, random)
}

fn check_windows_of<const NUMBERS: usize>(device: &Arc<Device>, random: &mut Random) -> Result<(), String>
where
    [u32; NUMBERS]: tree::Key,
{
    let (count, dimensions, spread) = (random.below(900) as usize, NUMBERS / 2, one_of(random, &[20, 1 << 32]));
    let mut boxes = |count: usize, share: u64| -> Vec<[u32; NUMBERS]> {
        let mut one = || {
            let mut ends = [0; NUMBERS];
            for of in 0..dimensions {
                let low = random.below(spread);
                ends[of] = low as u32;
                ends[dimensions + of] = (low + random.below(1 + spread / share)).min(u64::from(u32::MAX)) as u32;
            }
            ends
        };
        (0..count).map(|_| one()).collect()
    };
    let (keys, wanted) = (boxes(count, 9), boxes(40, 4));
    let packed = tree::pack(&keys, 30, |keys| {
        keys.iter().skip(1).fold(keys[0], |all, key| {
            std::array::from_fn(|at| if at < dimensions { all[at].min(key[at]) } else { all[at].max(key[at]) })
        })
    });
    check_tree_of(device, &packed, &wanted, &format!("{count} boxes of {dimensions} dimensions"))
}

/// A directory of random clusters, some of them large and most empty, and windows about them.
fn check_directory(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for _ in 0..3 {
        let suffix_bits = [one_of(random, &[0, 1, 7, 32]), one_of(random, &[1, 5, 13, 32])];
        let (rows, row_clusters) = (1 + random.below(9), 1 + random.below(9));
        let mut starts = vec![0u32];
        for cluster in 0..(rows * row_clusters) as usize {
            let points = one_of(random, &[0, 0, 3, 9, 40, if cluster == 3 { 1300 } else { 8 }]);
            starts.push(starts[cluster] + points);
        }
        let points = starts[starts.len() - 1] as usize;
        let suffixes = suffix_bits.map(|bits| {
            let bytes = (points * bits as usize).div_ceil(8);
            let used = (0..bytes).map(|_| random.word() as u8).collect::<Vec<u8>>();
            if bits == 0 { Vec::new() } else { [used, vec![0; 16]].concat() }
        });
        let of =
            directory::Directory { starts: &starts, row_clusters, suffixes: [&suffixes[0], &suffixes[1]], suffix_bits };
        let ends = [rows << suffix_bits[0], row_clusters << suffix_bits[1]];
        let mut side = |end: u64| {
            let first = random.below(end);
            let last = first + random.below(end - first);
            // Of what may answer, the edges may be such that they need not.
            let must = [first + random.below(2), (last + random.below(2)).max(first)];
            ([first, last], must)
        };
        let queries: Vec<directory::Asked> = (0..70)
            .map(|_| {
                let [rows, clusters] = ends.map(&mut side);
                directory::Asked { may: [rows.0, clusters.0], must: [rows.1, clusters.1] }
            })
            .collect();
        let resident = directory::Resident::new(device, &of).map_err(told)?;
        let mut found = Vec::new();
        resident.scan(&queries, 1 << 20, &mut |part| found.extend_from_slice(part)).map_err(told)?;
        let mut expected = directory::twin(&of, &queries);
        found.sort_unstable();
        expected.sort_unstable();
        if found != expected {
            let what = format!("{points} points in {rows} rows of {row_clusters}, suffixes of {suffix_bits:?} bits");
            return Err(format!("{what}: {} for {}", found.len(), expected.len()));
        }
        if expected.len() > 3 && resident.scan(&queries, 1, &mut |_| {}).is_ok() {
            return Err("results where there is no room for them".to_owned());
        }
    }
    Ok(())
}

fn check_roofs(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    let count = 4 * (1 + random.below(1000) as usize);
    let values: Vec<u32> = (0..count).map(|_| random.word() as u32).collect();
    let expected: u64 = values.iter().map(|value| u64::from(*value)).sum();
    let stream = Stream::new(device).map_err(told)?;
    let pinned = Pinned::of(device, &values, "a check").map_err(told)?;
    let grid = Grid { blocks: 3, threads: 64, shared_bytes: 0 };
    let pieces = Parameters::new().word(pinned.address().map_err(told)?).word(count as u64 / 4);
    expect(device, &stream, "roof_read", grid, pieces, expected)?;
    let words = Parameters::new().word(pinned.address().map_err(told)?).word(count as u64).half(0);
    expect(device, &stream, "roof_read_words", grid, words, expected)?;
    for (spread, operand) in [(0, 0), (1, 0), (32, 0), (0, 3)] {
        let grid = Grid { shared_bytes: 4 * 1024, ..grid };
        let parameters = Parameters::new().half(10).half(spread).half(1024).half(operand);
        expect(device, &stream, "roof_shared_atomics", grid, parameters, 3 * 64 * 10 * u64::from(operand.max(1)))?;
    }
    let sectors = DeviceBuffer::<u64>::filled(device, 256, 0, "a check").map_err(told)?;
    for swaps in [1, 0] {
        // What swaps have written is what is read later, as the places are the same.
        let set = || sectors.read().map(|words| words.iter().sum::<u64>()).map_err(told);
        let parameters = Parameters::new().word(sectors.address()).word(255).half(swaps).half(2);
        let checksum = sum_of(device, &stream, "roof_sectors", grid, parameters)?;
        let expected = if swaps == 1 { set()? } else { 3 * 64 * 8 };
        if checksum != expected {
            return Err(format!("roof_sectors: {checksum} for {expected}"));
        }
    }
    let written = DeviceBuffer::<u64>::filled(device, 500, 0, "a check").map_err(told)?;
    let mut parameters = Parameters::new().word(written.address()).word(500).word(9);
    // SAFETY: these are the parameters of `roof_write`, and `read` waits for the device.
    unsafe { device.kernel("roof_write").and_then(|kernel| kernel.launch(&stream, grid, &mut parameters)) }
        .map_err(told)?;
    if written.read().map_err(told)? != (9..509).collect::<Vec<u64>>() {
        return Err("roof_write: differs".to_owned());
    }
    Ok(())
}

/// Launches a kernel that takes the place of a checksum as its last parameter.
fn expect(
    device: &Arc<Device>,
    stream: &Stream,
    name: &'static str,
    grid: Grid,
    parameters: Parameters,
    expected: u64,
) -> Result<(), String> {
    match sum_of(device, stream, name, grid, parameters)? {
        found if found == expected => Ok(()),
        found => Err(format!("{name}: {found} for {expected}")),
    }
}

fn sum_of(
    device: &Arc<Device>,
    stream: &Stream,
    name: &'static str,
    grid: Grid,
    parameters: Parameters,
) -> Result<u64, String> {
    let checksum = DeviceBuffer::<u64>::filled(device, 1, 0, "a checksum").map_err(told)?;
    let kernel = device.kernel(name).map_err(told)?;
    // SAFETY: the callers above give the parameters of the kernel, and `read` waits for the device.
    unsafe { kernel.launch(stream, grid, &mut parameters.word(checksum.address())) }.map_err(told)?;
    Ok(checksum.read().map_err(told)?[0])
}
