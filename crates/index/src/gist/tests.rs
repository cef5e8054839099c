//! One thread: random operations against a list of all entries, for every kind of keys, with nodes of few slots, so that some
//! hundred entries make a tree of several levels; and its shape afterwards.
use std::fmt::Debug;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use proptest::prelude::*;
use types::Rid;

use super::node::Node;
use super::scheduler::{Decision, Learned};
use super::*;

/// A kind of keys as the tests know it: questions with an answer that does not come from the tree's code.
trait Known: Extension<Value: Clone + Debug + PartialEq> {
    type Question: Clone + Debug;

    fn values() -> BoxedStrategy<Self::Value>;
    fn questions() -> BoxedStrategy<Self::Question>;
    fn origins() -> BoxedStrategy<Self::Origin>;
    fn query(question: &Self::Question) -> Self::Query;
    fn answers(value: &Self::Value, question: &Self::Question) -> bool;
    fn apart(value: &Self::Value, origin: &Self::Origin) -> f64;
}

#[derive(Debug, Clone)]
enum OfBoxes<T, const D: usize> {
    Overlaps(Bounds<T, D>),
    Contains(Bounds<T, D>),
    Within(Bounds<T, D>),
    Equals(Bounds<T, D>),
    Before(Bounds<T, D>, usize),
    After(Bounds<T, D>, usize),
}

/// A coordinate of tests: few numbers, so that edges meet, and the ends of the order.
trait Drawn: Coordinate {
    fn numbers() -> BoxedStrategy<Self>;
}

macro_rules! drawn {
    ($($t:ty),*) => {
        $(impl Drawn for $t {
            fn numbers() -> BoxedStrategy<Self> {
                prop_oneof![20 => (-40i32..40).prop_map(<$t>::from), 1 => Just(<$t>::LOWEST), 1 => Just(<$t>::HIGHEST)].boxed()
            }
        })*
    };
}
drawn!(i32, i64, i128, f64);

fn boxes<T: Drawn, const D: usize>() -> BoxedStrategy<Bounds<T, D>> {
    let side = || proptest::collection::vec((T::numbers(), T::numbers(), any::<bool>()), D);
    side()
        .prop_map(|sides| {
            let one: [T; D] = std::array::from_fn(|d| sides[d].0);
            let other = std::array::from_fn(|d| if sides[d].2 { sides[d].0 } else { sides[d].1 });
            Bounds::from_corners(one, other).expect("numbers")
        })
        .boxed()
}

impl<T: Drawn, const D: usize> Known for RTree<T, D> {
    type Question = OfBoxes<T, D>;

    fn values() -> BoxedStrategy<Bounds<T, D>> {
        boxes()
    }

    fn questions() -> BoxedStrategy<OfBoxes<T, D>> {
        let make = |(kind, bounds, d)| match kind {
            0 => OfBoxes::Overlaps(bounds),
            1 => OfBoxes::Contains(bounds),
            2 => OfBoxes::Within(bounds),
            3 => OfBoxes::Equals(bounds),
            4 => OfBoxes::Before(bounds, d),
            _ => OfBoxes::After(bounds, d),
        };
        (0..6, boxes(), 0..D).prop_map(make).boxed()
    }

    fn origins() -> BoxedStrategy<[T; D]> {
        proptest::collection::vec(T::numbers(), D).prop_map(|at| at.try_into().expect("as many")).boxed()
    }

    fn query(question: &OfBoxes<T, D>) -> BoundsQuery<T, D> {
        match *question {
            OfBoxes::Overlaps(bounds) => BoundsQuery::overlaps(bounds),
            OfBoxes::Contains(bounds) => BoundsQuery::contains(bounds),
            OfBoxes::Within(bounds) => BoundsQuery::within(bounds),
            OfBoxes::Equals(bounds) => BoundsQuery::equals(bounds),
            OfBoxes::Before(bounds, dimension) => BoundsQuery::before(bounds, dimension),
            OfBoxes::After(bounds, dimension) => BoundsQuery::after(bounds, dimension),
        }
    }

    fn answers(k: &Bounds<T, D>, question: &OfBoxes<T, D>) -> bool {
        let all = |test: &dyn Fn(usize) -> bool| (0..D).all(test);
        match question {
            OfBoxes::Overlaps(q) => all(&|d| k.low()[d] <= q.high()[d] && k.high()[d] >= q.low()[d]),
            OfBoxes::Contains(q) => all(&|d| k.low()[d] <= q.low()[d] && k.high()[d] >= q.high()[d]),
            OfBoxes::Within(q) => all(&|d| q.low()[d] <= k.low()[d] && q.high()[d] >= k.high()[d]),
            OfBoxes::Equals(q) => k == q,
            OfBoxes::Before(q, d) => k.high()[*d] < q.low()[*d],
            OfBoxes::After(q, d) => k.low()[*d] > q.high()[*d],
        }
    }

    fn apart(key: &Bounds<T, D>, origin: &[T; D]) -> f64 {
        let apart = |d: usize| {
            if origin[d] < key.low()[d] {
                key.low()[d].to_f64() - origin[d].to_f64()
            } else if origin[d] > key.high()[d] {
                origin[d].to_f64() - key.high()[d].to_f64()
            } else {
                0.0
            }
        };
        (0..D).map(|d| apart(d) * apart(d)).sum::<f64>().sqrt()
    }
}

impl Known for Intervals<i64> {
    type Question = (usize, Interval<i64>);

    fn values() -> BoxedStrategy<Interval<i64>> {
        let end = || {
            prop_oneof![
                3 => (-40i64..40).prop_map(End::Closed),
                3 => (-40i64..40).prop_map(End::Open),
                1 => Just(End::Infinite)
            ]
        };
        let interval = |(lower, upper)| Interval::new(lower, upper).ok();
        (end(), end()).prop_filter_map("an interval", interval).boxed()
    }

    fn questions() -> BoxedStrategy<(usize, Interval<i64>)> {
        (0..8usize, Self::values()).boxed()
    }

    fn origins() -> BoxedStrategy<[i64; 1]> {
        (-50i64..50).prop_map(|at| [at]).boxed()
    }

    fn query(&(kind, interval): &(usize, Interval<i64>)) -> BoundsQuery<i64, 1> {
        match kind {
            0 => interval.overlapping(),
            1 => interval.containing(),
            2 => interval.enclosing(),
            3 => interval.equal(),
            4 => interval.preceding(),
            5 => interval.following(),
            kind => interval.adjacent()[kind - 6],
        }
    }

    fn answers(value: &Interval<i64>, &(kind, other): &(usize, Interval<i64>)) -> bool {
        // The sets of all numbers that tests have, and of the ends.
        let numbers = |interval: Interval<i64>| {
            (-45..45).chain([i64::MIN, i64::MAX]).map(move |at| interval.first() <= at && at <= interval.last())
        };
        let each = |test: &dyn Fn((bool, bool)) -> bool| numbers(*value).zip(numbers(other)).any(test);
        let meets = |end: i64, begin: i64| end.checked_add(1) == Some(begin);
        match kind {
            0 => each(&|both| both == (true, true)),
            1 => !each(&|both| both == (false, true)),
            2 => !each(&|both| both == (true, false)),
            3 => !each(&|both| both.0 != both.1),
            4 => value.last() < other.first(),
            5 => value.first() > other.last(),
            6 => meets(value.last(), other.first()),
            _ => meets(other.last(), value.first()),
        }
    }

    fn apart(value: &Interval<i64>, origin: &[i64; 1]) -> f64 {
        (value.first() as f64 - origin[0] as f64).max(origin[0] as f64 - value.last() as f64).max(0.0)
    }
}

impl Known for Prefixes {
    type Question = PrefixQuery;

    fn values() -> BoxedStrategy<Box<[u8]>> {
        proptest::collection::vec(b'a'..b'd', 0..7).prop_map(Into::into).boxed()
    }

    fn questions() -> BoxedStrategy<PrefixQuery> {
        prop_oneof![
            Self::values().prop_map(|bytes| PrefixQuery::StartsWith(bytes[..bytes.len() / 2].into())),
            Self::values().prop_map(PrefixQuery::PrefixOf),
            Self::values().prop_map(PrefixQuery::Equals),
        ]
        .boxed()
    }

    fn origins() -> BoxedStrategy<Box<[u8]>> {
        Self::values()
    }

    fn query(question: &PrefixQuery) -> PrefixQuery {
        question.clone()
    }

    fn answers(value: &Box<[u8]>, question: &PrefixQuery) -> bool {
        match question {
            PrefixQuery::StartsWith(bytes) => value.starts_with(bytes),
            PrefixQuery::PrefixOf(bytes) => bytes.starts_with(value),
            PrefixQuery::Equals(bytes) => value == bytes,
        }
    }

    fn apart(value: &Box<[u8]>, origin: &Box<[u8]>) -> f64 {
        (origin.len() - value.iter().zip(origin.iter()).take_while(|(one, other)| one == other).count()) as f64
    }
}

#[derive(Debug, Clone)]
enum Step<V, Q> {
    Insert(V),
    Remove(usize),
    RemoveOther(V),
    Search(Q),
}

/// All live nodes are on the levels that their parents say, have at most as many entries as slots, and are covered by the keys
/// that their parents have for them (I1); inner nodes have a child. Returns the number of entries.
fn check_below<E: Extension>(node: &Node<E>, level: usize, slots: usize) -> usize {
    let guard = sync::pin();
    let content = node.content(&guard);
    assert!(content.level == level && content.count <= slots);
    if level == 0 {
        return content.count;
    }
    assert!(content.count > 0 && content.children().len() == content.count);
    let below = content.children().iter().enumerate().map(|(slot, child)| {
        let key = content.slots.key(slot);
        assert!(child.content(&guard).keys().iter().all(|of_child| E::covers(&key, of_child)));
        check_below(child, level - 1, slots)
    });
    below.sum()
}

fn sorted(rids: impl IntoIterator<Item = Rid>) -> Vec<Rid> {
    let mut rids: Vec<Rid> = rids.into_iter().collect();
    rids.sort_unstable();
    rids
}

fn expected<E: Known>(model: &[(E::Value, Rid)], question: &E::Question) -> Vec<Rid> {
    sorted(model.iter().filter(|(value, _)| E::answers(value, question)).map(|(_, rid)| *rid))
}

/// Loads some entries, goes the steps, and asks everything at the end in every way.
fn run<E: Known>(
    (slots, loaded): (usize, Vec<E::Value>),
    steps: Vec<Step<E::Value, E::Question>>,
    questions: Vec<E::Question>,
    origin: &E::Origin,
) {
    let rid = |number: usize| Rid::base(0, number);
    let mut model: Vec<(E::Value, Rid)> = loaded.into_iter().enumerate().map(|(at, value)| (value, rid(at))).collect();
    let tree = Gist::<E>::load(model.iter().cloned(), slots, 80, NonZero::<usize>::MIN);
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Insert(value) => {
                tree.insert(&value, rid(1_000 + number));
                model.push((value, rid(1_000 + number)));
            }
            Step::Remove(at) if !model.is_empty() => {
                let (value, rid) = model.swap_remove(at % model.len());
                assert!(tree.remove(&value, rid));
            }
            Step::Remove(_) => {}
            Step::RemoveOther(value) => assert!(!tree.remove(&value, rid(999))),
            Step::Search(question) => {
                assert_eq!(sorted(tree.rids(&E::query(&question))), expected::<E>(&model, &question))
            }
        }
    }
    let guard = sync::pin();
    assert_eq!(check_below(tree.root_node(&guard), tree.height() - 1, tree.slots()), model.len());
    assert_eq!(tree.len(), model.len());
    let queries: Vec<E::Query> = questions.iter().map(E::query).collect();
    let matches = tree.search_batch(&queries, &Cpu::default());
    let scheduler = BatchScheduler::new(2);
    let scheduled = tree.search_scheduled(&queries, &scheduler, &[&Cpu::default()]);
    for (number, question) in questions.iter().enumerate() {
        let expected = expected::<E>(&model, question);
        assert_eq!(sorted(matches.of_query(number).iter().copied()), expected);
        assert_eq!(sorted(scheduled.of_query(number).iter().copied()), expected);
        let entries = tree.entries(&queries[number]);
        assert!(entries.iter().all(|entry| model.contains(entry)) && entries.len() == expected.len());
    }
    let nearest: Vec<f64> = tree.nearest(origin, 10, |rid| rid.slot() % 3 > 0).iter().map(|(at, _)| *at).collect();
    let taken = model.iter().filter(|(_, rid)| rid.slot() % 3 > 0);
    let mut distances: Vec<f64> = taken.map(|(value, _)| E::apart(value, origin)).collect();
    distances.sort_by(f64::total_cmp);
    distances.truncate(10);
    assert_eq!(nearest, distances);
}

fn steps<E: Known>() -> impl Strategy<Value = Vec<Step<E::Value, E::Question>>> {
    let step = prop_oneof![
        10 => E::values().prop_map(Step::Insert),
        8 => any::<usize>().prop_map(Step::Remove),
        1 => E::values().prop_map(Step::RemoveOther),
        2 => E::questions().prop_map(Step::Search),
    ];
    proptest::collection::vec(step, 0..250)
}

macro_rules! like_a_list {
    ($($name:ident: $extension:ty;)*) => {
        $(proptest! {
            #![proptest_config(ProptestConfig::with_cases(24))]

            #[test]
            fn $name(
                start in (4..9usize, proptest::collection::vec(<$extension>::values(), 0..120)),
                steps in steps::<$extension>(),
                questions in proptest::collection::vec(<$extension>::questions(), 1..12),
                origin in <$extension>::origins(),
            ) {
                run::<$extension>(start, steps, questions, &origin);
            }
        })*
    };
}

like_a_list! {
    floats_in_two_dimensions_are_found_as_in_a_list: RTree<f64, 2>;
    floats_in_three_dimensions_are_found_as_in_a_list: RTree<f64, 3>;
    integers_in_one_dimension_are_found_as_in_a_list: RTree<i64, 1>;
    small_integers_in_four_dimensions_are_found_as_in_a_list: RTree<i32, 4>;
    wide_integers_in_two_dimensions_are_found_as_in_a_list: RTree<i128, 2>;
    intervals_are_found_as_in_a_list: Intervals<i64>;
    prefixes_are_found_as_in_a_list: Prefixes;
}

#[test]
fn bad_boxes_and_intervals_are_refused() {
    let nan = f64::NAN;
    assert_eq!(Bounds::new([0.0, 0.0], [1.0, nan]), Err(BoundsError::NotANumber { dimension: 1 }));
    assert_eq!(Bounds::from_corners([nan], [1.0]), Err(BoundsError::NotANumber { dimension: 0 }));
    assert_eq!(Bounds::new([0, 2], [1, 1]), Err(BoundsError::Inverted { dimension: 1 }));
    assert_eq!(Bounds::from_corners([0, 2], [1, 1]), Bounds::new([0, 1], [1, 2]));
    let uneven = Bounds::<f64, 2>::from_slices(&[0.0, 0.0], &[1.0]);
    assert_eq!(uneven, Err(BoundsError::Dimensions { given: (2, 1), expected: 2 }));
    assert!(Bounds::new([f64::NEG_INFINITY], [f64::INFINITY]).is_ok());
    let interval = Interval::<i64>::new;
    assert_eq!(interval(End::Open(1), End::Open(2)), Err(IntervalError::Empty));
    assert_eq!(interval(End::Open(1), End::Closed(1)), Err(IntervalError::Empty));
    assert_eq!(interval(End::Closed(2), End::Closed(1)), Err(IntervalError::Inverted));
    assert_eq!(interval(End::Open(i64::MAX), End::Infinite), Err(IntervalError::Empty));
    assert_eq!(interval(End::Closed(1), End::Open(3)), interval(End::Open(0), End::Closed(2)));
    assert_eq!(Interval::new(End::Closed(nan), End::Infinite), Err(IntervalError::NotANumber));
    assert!(Interval::new(End::Open(0.0), End::Open(1.0)).is_ok_and(|open| open.first() > 0.0 && open.last() < 1.0));
}

/// Intervals over floats against their ends: an end is a number and whether it lies a little above (1) or below (-1) it, as
/// PostgreSQL compares the bounds of ranges.
#[test]
fn ends_of_float_intervals_are_compared_as_postgresql_does() {
    let numbers = [0.0, 1.0, 2.0];
    let closed = || numbers.into_iter().map(|at| (End::Closed(at), (at, 0)));
    let lower =
        closed().chain(numbers.map(|at| (End::Open(at), (at, 1)))).chain([(End::Infinite, (f64::NEG_INFINITY, 0))]);
    let upper =
        closed().chain(numbers.map(|at| (End::Open(at), (at, -1)))).chain([(End::Infinite, (f64::INFINITY, 0))]);
    let upper: Vec<_> = upper.collect();
    let pairs = lower.flat_map(|low| upper.clone().into_iter().map(move |high| (low, high)));
    let all: Vec<_> = pairs
        .filter_map(|(low, high)| {
            let interval = Interval::new(low.0, high.0);
            assert_eq!(interval.is_ok(), low.1 <= high.1, "{low:?} {high:?}");
            interval.ok().map(|interval| (interval, low.1, high.1))
        })
        .collect();
    let entries = all.iter().enumerate().map(|(at, (interval, ..))| (*interval, Rid::base(0, at)));
    let tree = Gist::<Intervals<f64>>::load(entries, 4, 100, NonZero::<usize>::MIN);
    for (interval, low, high) in &all {
        let found = |query: &BoundsQuery<f64, 1>, is_it: &dyn Fn((f64, i32), (f64, i32)) -> bool| {
            let expected = all.iter().enumerate().filter(|(_, (_, low, high))| is_it(*low, *high));
            assert_eq!(sorted(tree.rids(query)), expected.map(|(at, _)| Rid::base(0, at)).collect::<Vec<_>>());
        };
        let meets = |end: (f64, i32), begin: (f64, i32)| end.0 == begin.0 && end.1 + 1 == begin.1;
        found(&interval.overlapping(), &|of_low, of_high| of_low <= *high && *low <= of_high);
        found(&interval.containing(), &|of_low, of_high| of_low <= *low && *high <= of_high);
        found(&interval.enclosing(), &|of_low, of_high| *low <= of_low && of_high <= *high);
        found(&interval.preceding(), &|_, of_high| of_high < *low);
        found(&interval.following(), &|of_low, _| *high < of_low);
        found(&interval.adjacent()[0], &|_, of_high| meets(of_high, *low));
        found(&interval.adjacent()[1], &|of_low, _| meets(*high, of_low));
    }
}

/// The processor, with a count of what it is asked.
#[derive(Default)]
struct Counting {
    calls: AtomicUsize,
    tests: AtomicUsize,
}

impl Device<RTree<i64, 2>> for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn scan(&self, scans: &[NodeScan<'_, RTree<i64, 2>>], queries: &[BoundsQuery<i64, 2>], found: &mut [u64]) {
        assert_eq!(scans.iter().map(|scan| scan.queue.len()).sum::<usize>(), found.len());
        self.calls.fetch_add(1, Relaxed);
        self.tests.fetch_add(scans.len(), Relaxed);
        Cpu::default().scan(scans, queries, found);
    }
}

#[test]
fn a_device_is_asked_once_a_level_and_about_each_node_once() {
    let entries = (0..500).map(|at| (Bounds::point([at % 25, at / 25]).unwrap(), Rid::base(0, at as usize)));
    let tree = Gist::<RTree<i64, 2>>::load(entries, 8, 100, NonZero::<usize>::MIN);
    let all = BoundsQuery::overlaps(Bounds::new([0, 0], [30, 30]).unwrap());
    let device = Counting::default();
    assert_eq!(tree.search_batch(&[all; 10], &device).len(), 5_000);
    assert_eq!((device.calls.into_inner(), device.tests.into_inner()), (tree.height(), tree.memory().1));
    // Descents, the processor and another device: each batch is answered once, whatever is decided.
    let (scheduler, device) = (BatchScheduler::new(3), Counting::default());
    let devices: [&dyn Device<RTree<i64, 2>>; 2] = [&Cpu::default(), &device];
    assert!((0..100).all(|_| tree.search_scheduled(&[all; 6], &scheduler, &devices).len() == 3_000));
    assert!(scheduler.regret().audits > 0 && device.calls.into_inner() >= 8 * tree.height());
    assert!(scheduler.selectivity() == 1.0);
}

#[test]
fn an_entry_that_is_there_twice_goes_once_at_a_time() {
    let tree: Gist<RTree<i64, 2>> = Gist::new();
    let (at, rid) = (Bounds::point([1, 1]).unwrap(), Rid::base(0, 1));
    tree.insert(&at, rid);
    tree.insert(&at, rid);
    assert_eq!(tree.rids(&BoundsQuery::overlaps(at)), [rid, rid]);
    assert!(tree.remove(&at, rid) && tree.remove(&at, rid) && !tree.remove(&at, rid));
    assert!(tree.is_empty());
}

#[test]
fn a_scheduler_takes_the_faster_way_once_it_has_seen_both() {
    // Descents take a microsecond a query and 20 ns a result; levels have a start of 50 microseconds and take a fifth.
    let results = |load: &BatchLoad| load.queries as f64 * load.slots as f64 * load.selectivity;
    let seconds = |way: usize, load: &BatchLoad| match way {
        0 => 1e-6 * load.queries as f64 + 2e-8 * results(load),
        _ => 5e-5 + 2e-7 * load.queries as f64 + 4e-9 * results(load),
    };
    let mut scheduler = Learned::new(2);
    let mut chosen = [0, 0];
    for batch in 0..3_000u64 {
        let queries = 1 << (batch * 7 % 13);
        let load = BatchLoad { queries, slots: 100_000 + 1_000 * (batch as usize % 50), selectivity: 1e-4 };
        match scheduler.decide(&load) {
            Decision::Take(way) => {
                chosen[way] += 1;
                // Some runs are interrupted for milliseconds.
                let interrupted = if batch % 17 == 3 { 5e-3 } else { 0.0 };
                scheduler.learn(way, &load, seconds(way, &load) + interrupted);
            }
            Decision::Audit { chosen, .. } => {
                let part = BatchLoad { queries: queries / 2, ..load };
                (0..2).for_each(|way| scheduler.learn(way, &part, seconds(way, &part)));
                scheduler.audit(chosen, &[2.0 * seconds(0, &part), 2.0 * seconds(1, &part)]);
            }
        }
    }
    assert!(chosen.iter().all(|count| *count > 500), "each is the faster one for some sizes: {chosen:?}");
    assert!(scheduler.regret().audits > 60 && scheduler.regret().share() < 0.1, "{:?}", scheduler.regret());
    let load = BatchLoad { queries: 4_096, slots: 120_000, selectivity: 1e-4 };
    let expected = scheduler.expected_s(1, &load).unwrap() / seconds(1, &load);
    assert!((0.7..1.4).contains(&expected), "{expected}");
}
