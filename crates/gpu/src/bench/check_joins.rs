//! Joins against their twin, on tables that a seed chooses.

use std::sync::Arc;

use super::check::{compare, one_of, told};
use super::data::{Random, join_tables};
use crate::device::Device;
use crate::error::GpuError;
use crate::join::{self, Append, Bits, Built, Delivery, Filter, Groups, Hash, Keys, Order, Settings, Transfer};

fn random_settings(random: &mut Random) -> Settings {
    Settings {
        hash: one_of(random, &[Hash::Mixed, Hash::LowBits]),
        transfer: one_of(random, &[Transfer::InPlace, Transfer::Resident, Transfer::Copied { rows: 100 }]),
        append: one_of(random, &[Append::Direct, Append::Cached, Append::Warped]),
        delivery: one_of(random, &[Delivery::InPlace, Delivery::Copied]),
        collected_max: one_of(random, &[None, Some(1), Some(64)]),
        build_order: one_of(random, &[Order::Fitting, Order::AsTheyCome, Order::Windows(4), Order::Parts(8)]),
        probe_order: one_of(random, &[Order::Fitting, Order::AsTheyCome, Order::Windows(4), Order::Parts(8)]),
        filter: one_of(random, &[Filter::Without, Filter::With]),
        table_bytes_max: one_of(random, &[None, None, Some(0), Some(1000)]),
        blocks: one_of(random, &[None, Some(1), Some(3)]),
        threads: one_of(random, &[32, 64, 128]),
        result_rows: one_of(random, &[None, Some(0), Some(100)]),
        result_rows_max: None,
    }
}

/// Keys of a table: few enough that some are equal, or so few that most are.
struct Table {
    tuples: Vec<u64>,
    halves: Vec<u32>,
    words: Vec<u64>,
    bits: Vec<u8>,
    first_bit: usize,
}

impl Table {
    fn of(random: &mut Random, rows: usize, keys: u64) -> Self {
        // Keys that differ in high bits only are the hard ones for the low bits as a hash.
        let spread = one_of(random, &[1u64, 1, 1 << 20]);
        let halves: Vec<u32> = (0..rows).map(|_| (random.below(keys) * spread) as u32).collect();
        let high = one_of(random, &[0, u64::MAX << 32, 7 << 40]);
        Self {
            tuples: halves.iter().zip(0u64..).map(|(key, row)| u64::from(*key) | row << 32).collect(),
            words: halves.iter().map(|key| u64::from(*key) | high).collect(),
            halves,
            bits: (0..rows / 8 + 2).map(|_| random.word() as u8).collect(),
            first_bit: random.below(8) as usize,
        }
    }

    fn keys(&self, form: u64, has_nulls: bool) -> Keys<'_> {
        let valid = has_nulls.then_some(Bits { bytes: &self.bits, first_bit: self.first_bit });
        match form {
            0 => Keys::Tuples(&self.tuples),
            1 => Keys::Column32(&self.halves, valid),
            _ => Keys::Column64(&self.words, valid),
        }
    }
}

pub(super) fn check_join(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for _ in 0..6 {
        let settings = random_settings(random);
        let keys = one_of(random, &[60, 500, 1 << 11]);
        let build_rows = random.below(700) as usize;
        let probe_rows = random.below(900) as usize;
        let build = Table::of(random, build_rows, keys);
        let probe = Table::of(random, probe_rows, keys);
        let form = random.below(3);
        let has_nulls = random.below(2) == 1;
        let (build, probe) = (build.keys(form, has_nulls), probe.keys(form, has_nulls));
        let expected = join::twin::join(&build, &probe);
        let found = join::join(device, &build, &probe, &settings).map_err(told)?;
        compare(&format!("{form}, {settings:?}"), found.pairs().to_vec(), expected)?;
    }
    // The paper's tables, at match rates from none to all.
    let match_percent = one_of(random, &[0.0, 3.0, 50.0, 100.0]);
    let (build, probe) = join_tables(600, 2000, match_percent, random.word());
    let (build, probe) = (Keys::Tuples(&build), Keys::Tuples(&probe));
    let settings = random_settings(random);
    let found = join::join(device, &build, &probe, &settings).map_err(told)?;
    compare(&format!("{settings:?}"), found.pairs().to_vec(), join::twin::join(&build, &probe))
}

/// Orders and filters, each with each, over tables on the device.
pub(super) fn check_join_orders(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    // The first has parts that several tiles find full.
    let filters = [Filter::Without, Filter::Without, Filter::With];
    for (is_full, filter) in [true, false, false].into_iter().zip(filters) {
        let form = random.below(3);
        // Few keys, so that insertions step far, or keys of which few have a partner; or so few on one side that most rows find no room
        // in their part.
        let keys = one_of(random, &[[40, 40], [1 << 9, 1 << 9], [1 << 14, 1 << 14], [3, 1 << 9], [1 << 9, 3]]);
        let keys = if is_full { [1 << 9, 3] } else { keys };
        let (build_rows, probe_rows) = (random.below(1200) as usize, random.below(2500) as usize);
        let probe_rows = if is_full { 4500 } else { probe_rows };
        let (build, probe) = (Table::of(random, build_rows, keys[0]), Table::of(random, probe_rows, keys[1]));
        let has_nulls = random.below(2) == 1;
        let (build, probe) = (build.keys(form, has_nulls), probe.keys(form, has_nulls));
        let expected = join::twin::join(&build, &probe);
        let orders = [
            Order::Windows(1),
            Order::Windows(2),
            Order::Windows(64),
            Order::Parts(1),
            Order::Parts(16),
            Order::Parts(256),
        ];
        let [build_order, probe_order] = [0, 1].map(|_| one_of(random, &orders));
        let probe_order = if is_full { Order::Parts(16) } else { probe_order };
        let (transfer, delivery) = (Transfer::Resident, Delivery::InPlace);
        let threads = one_of(random, &[32, 64, 128]);
        let threads = if is_full { 32 } else { threads };
        let random_ones = random_settings(random);
        let settings = Settings { transfer, delivery, build_order, probe_order, filter, threads, ..random_ones };
        let found = join::join(device, &build, &probe, &settings).map_err(told)?;
        compare(&format!("{form}, {settings:?}"), found.pairs().to_vec(), expected)?;
    }
    Ok(())
}

pub(super) fn check_partners(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for _ in 0..4 {
        let settings = random_settings(random);
        let (form, has_nulls) = (random.below(3), random.below(2) == 1);
        // Build rows of different keys, or of a few that are equal.
        let (build_rows, probe_rows) = (random.below(700) as usize, random.below(1500) as usize);
        let different: Vec<u32> = (0..build_rows as u32).map(|row| row.wrapping_mul(0x2545_f491)).collect();
        let keys = one_of(random, &[60, 1 << 11]);
        let (mut build, probe) = (Table::of(random, build_rows, keys), Table::of(random, probe_rows, keys));
        let is_foreign = random.below(4) > 0;
        let few: Vec<u32> = probe.halves.iter().map(|key| key.wrapping_mul(0x2545_f491)).collect();
        let of = |halves: &[u32]| -> (Vec<u64>, Vec<u64>) {
            let tuple = |(key, row): (&u32, u64)| u64::from(*key) | row << 32;
            (halves.iter().zip(0..).map(tuple).collect(), halves.iter().map(|key| u64::from(*key) << 9).collect())
        };
        let probe = if is_foreign {
            (build.tuples, build.words) = of(&different);
            build.halves = different;
            let (tuples, words) = of(&few);
            Table { tuples, words, halves: few, ..probe }
        } else {
            probe
        };
        let (build, probe) = (build.keys(form, has_nulls), probe.keys(form, has_nulls));
        let expected = join::twin::join(&build, &probe);
        let found =
            Built::new(device, &build, &settings).and_then(|built| built.probe_partners(&probe)).map_err(told)?;
        let what = format!("{form}, {settings:?}");
        let is_repeated = expected.windows(2).any(|pairs| pairs[0] >> 32 == pairs[1] >> 32);
        match found {
            Some(found) if !is_repeated => {
                if found.bits().iter().map(|word| word.count_ones() as usize).sum::<usize>() != found.len() {
                    return Err(format!("{what}: {} partners and another number of bits", found.len()));
                }
                // Rows of the build table are in the order of those of the probe table.
                if found.pairs() != expected {
                    return Err(format!("{what}: {} partners for {}", found.len(), expected.len()));
                }
            }
            None if is_repeated => {}
            _ => return Err(format!("{what}: rows with several partners {is_repeated}, not told")),
        }
    }
    Ok(())
}

pub(super) fn check_join_grouped(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    for group_count in [1, 1 + random.below(50) as u32, 9000] {
        let settings = random_settings(random);
        let (build_rows, probe_rows) = (1 + random.below(500) as usize, 1 + random.below(800) as usize);
        let build = Table::of(random, build_rows, 400);
        let probe = Table::of(random, probe_rows, 400);
        let codes: Vec<u32> = (0..build_rows).map(|_| random.below(u64::from(group_count)) as u32).collect();
        let values: Vec<i64> = (0..probe_rows).map(|_| random.word() as i64 >> 20).collect();
        let groups = Groups {
            codes: (group_count > 1).then_some(codes.as_slice()),
            values: (random.below(2) == 1).then_some(values.as_slice()),
            count: group_count,
        };
        let form = 1 + random.below(2);
        let (build, probe) = (build.keys(form, true), probe.keys(form, true));
        let (counts, sums, _) = join::join_grouped(device, &build, &probe, &groups, &settings).map_err(told)?;
        if (&counts, &sums)
            != (
                &join::twin::join_grouped(&build, &probe, &groups).0,
                &join::twin::join_grouped(&build, &probe, &groups).1,
            )
        {
            return Err(format!("{group_count} groups, {settings:?}: counts or sums differ"));
        }
    }
    Ok(())
}

pub(super) fn check_edges(device: &Arc<Device>, random: &mut Random) -> Result<(), String> {
    let mut settings = random_settings(random);
    let some: Vec<u64> = (0..300).map(|at| at % 13).collect();
    let ends = [0, u64::MAX, u64::MAX - 1, 1 << 63];
    let cases: [(&[u64], &[u64]); 4] = [(&[], &some), (&some, &[]), (&[], &[]), (&ends, &ends)];
    for (build, probe) in cases {
        let (build, probe) = (Keys::Column64(build, None), Keys::Column64(probe, None));
        let found = join::join(device, &build, &probe, &settings).map_err(told)?;
        compare(&format!("{settings:?}"), found.pairs().to_vec(), join::twin::join(&build, &probe))?;
    }
    settings.result_rows_max = Some(3);
    let few = join::join(device, &Keys::Column64(&ends, None), &Keys::Column64(&ends, None), &settings);
    if !matches!(&few, Err(GpuError::Unsuitable(_))) {
        return Err(format!("four results where three may be: {few:?}"));
    }
    settings.result_rows_max = None;
    // Every row has many matches, and there is little room to collect them.
    let keys = Keys::Column64(&some, None);
    for append in [Append::Direct, Append::Cached, Append::Warped] {
        settings = Settings { append, collected_max: Some(64), ..settings };
        let found = join::join(device, &keys, &keys, &settings).map_err(told)?;
        compare(&format!("{settings:?}"), found.pairs().to_vec(), join::twin::join(&keys, &keys))?;
    }
    let tuples = [u64::from(u32::MAX), u64::from(u32::MAX - 1) << 32 | 5];
    let keys = Keys::Tuples(&tuples);
    let found = join::join(device, &keys, &keys, &settings).map_err(told)?;
    compare("tuples", found.pairs().to_vec(), join::twin::join(&keys, &keys))?;
    // More equal keys than the device takes: refused, never answered wrongly. Costs a square of steps.
    if device.properties().is_emulated {
        return Ok(());
    }
    let same = vec![7u32; 1 << 16];
    settings = Settings { table_bytes_max: None, blocks: None, ..settings };
    match join::join(device, &Keys::Column32(&same, None), &Keys::Column32(&[7], None), &settings) {
        Err(GpuError::Unsuitable(_)) => Ok(()),
        Err(error) => Err(told(error)),
        Ok(found) if found.pairs().len() == same.len() => Ok(()),
        Ok(found) => Err(format!("{} pairs of {}", found.pairs().len(), same.len())),
    }
}
