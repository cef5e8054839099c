//! The index under shuttle: the real code with a handful of values and two or three threads, in thousands of orders drawn by
//! chance and by priorities.
use sync::VersionLatch;

use super::*;
use crate::explore::{explore, together};

const TUNED: DeltaForm = DeltaForm { search: NodeSearch::Binary, dictionary_count: 2 };

/// A string for a number, in the order of numbers; every other is too long for its entry.
fn name(number: u32) -> Vec<u8> {
    let mut name = format!("{number:05}").into_bytes();
    name.extend(std::iter::repeat_n(b'.', 10 * (number % 2) as usize));
    name
}

fn number(name: &[u8]) -> u32 {
    std::str::from_utf8(&name[..5]).unwrap().parse().unwrap()
}

/// The entered numbers: so many multiples of ten before the threads begin, and other numbers by the threads. The
/// tree has these heights before and after.
#[derive(Clone, Copy)]
struct Load {
    known: u32,
    new: &'static [u32],
    heights: (usize, usize),
}

/// Two threads enter the same new values, and one looks for those that are there all the time.
fn enter_between<L: Latch + 'static>(form: DeltaForm, Load { known, new, heights }: Load) {
    let index = DeltaIndex::<[u8], L>::new(form);
    let known: Vec<u32> = (0..known).map(|number| 10 * number).collect();
    let ids: Vec<ValueId> = known.iter().map(|number| index.encode(&name(*number)).unwrap()).collect();
    assert_eq!(index.height(), heights.0);
    let enter = |backwards: bool| -> Box<dyn FnOnce(&DeltaIndex<[u8], L>) + Send> {
        Box::new(move |index| {
            for at in 0..new.len() {
                let number = new[if backwards { new.len() - 1 - at } else { at }];
                let id = index.encode(&name(number)).unwrap();
                assert_eq!((index.value(id), index.lookup(&name(number))), (Some(&name(number)[..]), Some(id)));
            }
        })
    };
    let (first, last) = (known[0], known[known.len() - 1]);
    let (first_id, last_id, of_reader) = (ids[0], ids[ids.len() - 1], known.clone());
    let look: Box<dyn FnOnce(&DeltaIndex<[u8], L>) + Send> = Box::new(move |index| {
        assert_eq!(index.lookup(&name(last)), Some(last_id));
        let seen: Vec<u32> = index.ids().map(|id| number(index.value(id).unwrap())).collect();
        assert!(seen.is_sorted_by(|one, other| one < other), "in order, and each once: {seen:?}");
        assert!(of_reader.iter().all(|number| seen.binary_search(number).is_ok()), "{seen:?}");
        assert!(seen.iter().all(|number| number % 10 == 0 || new.contains(number)));
        // A guessed id leads to nothing, or to a whole value.
        let guessed = (0..of_reader.len() as u32 + 2).filter_map(|word| index.value(ValueId::from_word(word)));
        assert!(guessed.map(number).all(|number| number % 10 == 0 || new.contains(&number)));
        assert_eq!((index.lookup(&name(first)), index.lookup(&name(first + 1))), (Some(first_id), None));
    });
    let index = together(index, vec![enter(false), enter(true), look]);
    let mut expected: Vec<u32> = known.iter().chain(new).copied().collect();
    expected.sort_unstable();
    assert_eq!((index.len(), index.height()), (expected.len() as u64, heights.1));
    assert!(index.ids().map(|id| number(index.value(id).unwrap())).eq(expected));
}

/// Runs the model over a latch that readers acquire and one that they do not.
fn explore_latches(runs: usize, load: Load) {
    fn explore_form(runs: usize, model: fn(DeltaForm, Load), form: DeltaForm, load: Load) {
        explore(runs, move || model(form, load));
    }
    explore_form(runs, enter_between::<RwSpinLatch>, DeltaForm::ORIGINAL, load);
    explore_form(runs, enter_between::<VersionLatch>, DeltaForm::ORIGINAL, load);
    explore_form(runs, enter_between::<VersionLatch>, TUNED, load);
}

#[test]
fn a_value_gets_one_id_and_is_whole_when_it_is_found() {
    explore_latches(1_000, Load { known: 2, new: &[5, 25], heights: (1, 1) });
}

#[test]
fn a_reader_finds_its_value_while_leaf_and_root_are_split() {
    explore_latches(300, Load { known: 30, new: &[155, 156], heights: (1, 2) });
}

#[test]
fn a_reader_finds_its_value_while_an_inner_node_is_split() {
    // Ascending values leave 15 in each leaf but the last: the root has all its children, and the last leaf is full.
    explore_latches(20, Load { known: 480, new: &[4_795, 4_796], heights: (2, 3) });
}

#[test]
fn rows_of_a_column_are_whole_when_they_can_be_seen() {
    explore(1_000, || {
        let append = |number: u32| -> Box<dyn FnOnce(&DeltaColumn<[u8], VersionLatch>) + Send> {
            Box::new(move |column| {
                let rows = [number, 1].map(|number| column.append(&name(number)).unwrap().unwrap());
                assert_eq!(column.value(rows[0]), Some(&name(number)[..]));
            })
        };
        let look: Box<dyn FnOnce(&DeltaColumn<[u8], VersionLatch>) + Send> = Box::new(|column| {
            for row in 0..column.row_count() as u32 {
                assert!(column.value(row).is_none_or(|value| number(value) < 4), "row {row}");
            }
        });
        let column = together(DeltaColumn::new(TUNED), vec![append(2), append(3), look]);
        let mut values: Vec<u32> = (0..4).map(|row| number(column.value(row).unwrap())).collect();
        values.sort_unstable();
        assert_eq!((values, column.index().len()), (vec![1, 1, 2, 3], 3));
    });
}
