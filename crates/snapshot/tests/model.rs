//! Every mechanism against a plain vector: random updates, and snapshots of different ages that end in any order.
use proptest::prelude::*;
use snapshot::{Item, Mechanism, Options, Pages, Snapshot, SnapshotArray, Stop};

#[derive(Clone, Debug)]
enum Step {
    Set(usize, i64),
    Add(usize, i64),
    Double(usize),
    Batch(Vec<(usize, i64)>),
    Begin,
    End(usize),
    Read(usize),
}

fn steps(len: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..len, any::<i64>()).prop_map(|(index, value)| Step::Set(index, value)),
        3 => (0..len, any::<i64>()).prop_map(|(index, value)| Step::Add(index, value)),
        1 => (0..len).prop_map(Step::Double),
        1 => prop::collection::vec((0..len, any::<i64>()), 0..8).prop_map(Step::Batch),
        2 => Just(Step::Begin),
        1 => (0..8usize).prop_map(Step::End),
        1 => (0..8usize).prop_map(Step::Read),
    ];
    prop::collection::vec(step, 1..120)
}

/// The mechanisms that run here, with small and large pages and granules.
fn all_options() -> Vec<Options> {
    let mut all = Vec::new();
    for mechanism in Mechanism::ALL {
        all.push(Options { copy_threads: 2, ..Options::of(mechanism) });
        all.push(Options { granule_bytes: 16 << 10, bypass_from_bytes: 0, spare_count: 0, ..Options::of(mechanism) });
        all.push(Options { pages: Pages::Huge, mapping_limit: 4, ..Options::of(mechanism) });
    }
    for pages in [Pages::Small, Pages::Huge] {
        all.push(Options { pages, stop: Stop::Protected, ..Options::of(Mechanism::Physical) });
    }
    all.retain(|options| SnapshotArray::<u8>::new(1, options).and_then(|array| array.snapshot().map(drop)).is_ok());
    assert!(all.iter().any(|options| options.mechanism == Mechanism::Physical));
    all
}

/// A live snapshot and what it must show.
type Taken = (Snapshot<i64>, Vec<i64>);

fn check(taken: &Taken) {
    let (snapshot, expected) = taken;
    let len = expected.len();
    assert_eq!(snapshot.to_vec(..).unwrap(), *expected);
    let (from, to) = (len / 3, len - len / 4);
    let part = &expected[from..to];
    assert_eq!(snapshot.sum(from..to).unwrap(), part.iter().map(|item| i128::from(*item)).sum());
    assert_eq!(snapshot.min(from..to).unwrap(), part.iter().copied().min());
    assert_eq!(snapshot.max(from..to).unwrap(), part.iter().copied().max());
    let mut seen = Vec::new();
    snapshot
        .for_each(from..to, |start, items| {
            assert_eq!(start, from + seen.len());
            seen.extend_from_slice(items);
        })
        .unwrap();
    assert_eq!(seen, part);
}

fn run(steps: &[Step], len: usize, options: &Options) {
    let array = SnapshotArray::<i64>::new(len, options).unwrap();
    let (mut writer, mut model) = (array.writer(), vec![0i64; len]);
    let mut taken: Vec<Taken> = Vec::new();
    for step in steps {
        match step {
            Step::Set(index, value) => {
                writer.set(*index, *value).unwrap();
                model[*index] = *value;
            }
            Step::Add(index, value) => {
                assert_eq!(writer.add(*index, *value).unwrap(), model[*index]);
                model[*index] = model[*index].plus(*value);
            }
            Step::Double(index) => {
                assert_eq!(writer.update(*index, |old| old.wrapping_mul(2)).unwrap(), model[*index]);
                model[*index] = model[*index].wrapping_mul(2);
            }
            Step::Batch(updates) => writer.batch(|batch| {
                for (index, value) in updates {
                    batch.set(*index, *value).unwrap();
                    model[*index] = *value;
                    assert_eq!(batch.get(*index).unwrap(), *value);
                }
            }),
            Step::Begin if taken.len() < 5 => taken.push((array.snapshot().unwrap(), model.clone())),
            Step::Begin => {}
            Step::End(which) if !taken.is_empty() => taken.swap_remove(which % taken.len()).0.end(),
            Step::Read(which) if !taken.is_empty() => check(&taken[which % taken.len()]),
            Step::End(_) | Step::Read(_) => {}
        }
    }
    taken.iter().for_each(check);
    (0..len).for_each(|index| assert_eq!(array.get(index).unwrap(), model[index]));
    drop(writer);
    drop(array);
    // Snapshots outlive their array.
    taken.iter().for_each(check);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_shows_what_a_copied_vector_shows(
        (len, steps) in prop_oneof![Just(1usize), Just(600), Just(5_000), Just(20_011)]
            .prop_flat_map(|len| (Just(len), steps(len)))
    ) {
        for options in all_options() {
            run(&steps, len, &options);
        }
    }
}

/// Writes and reads items of a type at the ends of its range.
fn check_type<T: Item>(values: &[T]) {
    for options in all_options() {
        let array = SnapshotArray::<T>::new(values.len(), &options).unwrap();
        let mut writer = array.writer();
        let empty = array.snapshot().unwrap();
        for (index, value) in values.iter().enumerate() {
            writer.set(index, *value).unwrap();
        }
        let full = array.snapshot().unwrap();
        for index in 0..values.len() {
            writer.add(index, values[0]).unwrap();
        }
        assert_eq!(empty.to_vec(..).unwrap(), vec![T::default(); values.len()]);
        assert_eq!(full.to_vec(..).unwrap(), values);
        assert_eq!(full.sum(..).unwrap(), T::total(values));
        for (index, value) in values.iter().enumerate() {
            assert_eq!(array.get(index).unwrap(), value.plus(values[0]));
            let smallest = values[index..].iter().fold(*value, |best, item| if *item < best { *item } else { best });
            assert_eq!(full.min(index..).unwrap(), Some(smallest));
        }
    }
}

#[test]
fn items_of_every_type_are_kept_bit_by_bit() {
    check_type::<i8>(&[i8::MIN, -1, 0, 1, i8::MAX]);
    check_type::<u8>(&[3, 0, u8::MAX]);
    check_type::<i16>(&[i16::MIN, -1, i16::MAX]);
    check_type::<u16>(&[7, u16::MAX]);
    check_type::<i32>(&[i32::MIN, -1, i32::MAX]);
    check_type::<u32>(&[7, u32::MAX]);
    check_type::<i64>(&[i64::MIN, -1, i64::MAX]);
    check_type::<u64>(&[7, u64::MAX, u64::MAX]);
    check_type::<f32>(&[1.5, -0.25, f32::MAX, f32::MIN_POSITIVE]);
    check_type::<f64>(&[1e300, 1.0, -1e300, f64::MIN_POSITIVE]);
}

#[test]
fn sums_of_floats_are_equal_by_every_mechanism() {
    let sums: Vec<u64> = all_options()
        .iter()
        .map(|options| {
            let array = SnapshotArray::<f64>::new(10_000, options).unwrap();
            let mut writer = array.writer();
            (0..10_000).for_each(|index| writer.set(index, 1.0 / (index + 1) as f64).unwrap());
            array.snapshot().unwrap().sum(3..9_999).unwrap().to_bits()
        })
        .collect();
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
}
