//! The index with changes under shuttle: searches, inserts, removals and loads while images are built, in thousands of orders.
use std::sync::Arc;

use sync::atomic::{AtomicU64, Ordering};
use types::Rid;

use super::*;
use crate::Bounds;
use crate::explore::{explore, together};

type Index = BitwiseIndex<1>;

/// What threads of a model share: the index, and a word for the model's own use.
type Shared = (Index, AtomicU64);

fn rid(number: i64) -> Rid {
    Rid::base(0, number as usize)
}

fn window(low: i64, high: i64) -> Bounds<i64, 1> {
    Bounds::new([low], [high]).unwrap()
}

/// An index whose image has these numbers.
fn imaged(numbers: impl IntoIterator<Item = i64>) -> Shared {
    let index = Index::new(1 << 10);
    index.load(numbers.into_iter().map(|number| ([number], rid(number))).collect());
    index.build(true).unwrap();
    (index, AtomicU64::new(0))
}

fn insert(index: &Index, number: i64) {
    index.insert([number], rid(number));
}

fn remove(index: &Index, number: i64) {
    index.remove_if([number], rid(number), || true);
}

/// Both ways of searching find a number once, or not at all.
fn expect(index: &Index, number: i64, is_there: bool) {
    let found = index.search(&window(number, number));
    assert_eq!(found, if is_there { vec![([number], rid(number))] } else { Vec::new() });
    let mut is_found = false;
    index.search_batch(&[window(number, number)], None, |_, _| is_found = true);
    assert_eq!(is_found, is_there, "{number}");
}

/// What is there in the end, before another image and in it.
fn expect_all(shared: &Arc<Shared>, numbers: &[i64]) {
    let index = &shared.0;
    let all = |index: &Index| index.all().into_iter().map(|([number], _)| number).collect::<Vec<i64>>();
    assert_eq!(all(index), numbers);
    index.build(true).unwrap();
    assert_eq!((all(index), index.imaged()), (numbers.to_vec(), numbers.len()));
}

#[test]
fn what_stays_is_found_while_others_come_and_go_and_images_are_built() {
    explore(500, || {
        let parts: [fn(&Shared); 3] = [
            |(index, _)| {
                index.build(true).unwrap();
                expect(index, 20, true);
            },
            |(index, _)| {
                insert(index, 25);
                expect(index, 25, true);
                remove(index, 10);
                expect(index, 10, false);
            },
            |(index, _)| {
                insert(index, 35);
                index.build(true).unwrap();
                expect(index, 35, true);
                expect(index, 30, true);
            },
        ];
        expect_all(&together(imaged([10, 20, 30]), parts), &[20, 25, 30, 35]);
    });
}

#[test]
fn an_entry_that_goes_and_comes_again_is_there_once() {
    explore(500, || {
        let parts: [fn(&Shared); 3] = [
            |(index, _)| {
                remove(index, 10);
                insert(index, 10);
                expect(index, 10, true);
                remove(index, 20);
                expect(index, 20, false);
            },
            |(index, _)| {
                index.load(vec![([40], rid(40))]);
                expect(index, 40, true);
                remove(index, 40);
                expect(index, 40, false);
                insert(index, 40);
            },
            |(index, _)| (0..2).for_each(|_| index.build(true).unwrap()),
        ];
        expect_all(&together(imaged([10, 20, 30]), parts), &[10, 30, 40]);
    });
}

/// A writer says that it wants an entry before it enters it; a sweep takes out what no writer wants.
#[test]
fn an_entry_that_a_writer_wants_is_not_taken_out() {
    explore(500, || {
        let parts: [fn(&Shared); 3] = [
            |(index, wanted)| {
                wanted.store(1, Ordering::SeqCst);
                insert(index, 10);
                expect(index, 10, true);
            },
            |(index, wanted)| index.remove_if([10], rid(10), || wanted.load(Ordering::SeqCst) == 0),
            |(index, _)| index.build(true).unwrap(),
        ];
        expect_all(&together(imaged([10, 20]), parts), &[10, 20]);
    });
}
