//! Every structure answers right.
use clap::ValueEnum;

use super::*;
use crate::workload::{MixedOperations, PickedKeys, side_by_side};

const COUNT: u32 = 3_000;

fn loaded(peer: Peer, order: Order) -> Box<dyn Contestant> {
    let mut contestant = peer.make(order, COUNT).unwrap();
    let keys: Vec<u64> = (0..COUNT).map(|number| order.key(number)).collect();
    contestant.write_alone(&keys);
    contestant.settle();
    contestant
}

#[test]
fn everybody_finds_what_was_inserted_and_nothing_else() {
    for order in Order::value_variants() {
        let picked = PickedKeys::new(*order, COUNT, 2_000, 3);
        let absent: Vec<u64> = (COUNT..COUNT + 100).map(|number| order.key(number)).collect();
        for peer in Peer::value_variants() {
            let contestant = loaded(*peer, *order);
            assert_eq!(contestant.read(&picked.keys), picked.sum, "{peer:?} {order:?}");
            assert_eq!(contestant.read(&absent), 0, "{peer:?} {order:?}");
            for batch in [1, 7, 512] {
                assert_eq!(contestant.read_batched(&picked.keys, batch), picked.sum, "{peer:?} {order:?}");
            }
            assert_eq!(contestant.read_batched(&absent, 64), 0, "{peer:?} {order:?}");
        }
    }
}

#[test]
fn everybody_who_shares_writes_keeps_those_of_two_threads() {
    for peer in Peer::value_variants() {
        let order = Order::Uniform;
        let contestant = loaded(*peer, order);
        if !contestant.has_shared_writes() {
            continue;
        }
        let picked = PickedKeys::new(order, COUNT, 2_000, 5);
        let mut next = COUNT;
        let mut new_keys = |_: &mut crate::workload::Random| {
            next += 1;
            order.key(next - 1)
        };
        let single = MixedOperations::new(&picked, 50, 1, &mut new_keys);
        let batched = MixedOperations::new(&picked, 50, 2, &mut new_keys).in_batches();
        let (_, sums) = side_by_side(2, |thread| match thread {
            0 => contestant.mix(&single.operations),
            _ => contestant.mix_batched(&batched.operations),
        });
        assert_eq!(sums, [single.sum, batched.sum], "{peer:?}");
        let all: Vec<u64> = (0..next).map(|number| order.key(number)).collect();
        let sum = all.iter().fold(0, |sum: u64, key| sum.wrapping_add(value_of(*key)));
        assert_eq!(contestant.read(&all), sum, "{peer:?}");
        contestant.write(&all);
        assert_eq!(contestant.read_batched(&all, 512), sum, "{peer:?}");
    }
}

#[test]
fn whoever_tells_its_memory_tells_something_plausible() {
    for peer in Peer::value_variants() {
        if let Some(bytes) = loaded(*peer, Order::Dense).bytes() {
            assert!((8 * u64::from(COUNT)..4_096 * u64::from(COUNT)).contains(&bytes), "{peer:?}: {bytes}");
        }
    }
}
