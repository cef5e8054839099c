//! An AVL tree (Adelson-Velsky and Landis), the structure of most experiments of tle-multisocket.
//!
//! ```text
//! node:  | key | left | right | height of left | height of right |      a line
//! ```
//!
//! Heights stand in the parent, so that a change touches the nodes of its path only, and siblings where it rotates. Going up
//! ends where a height stays as it was.

use super::{Pool, Set};
use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;

const KEY: u64 = 0;
const LEFT: u64 = 1;
const RIGHT: u64 = 2;
/// From the word of a child to the word of its height.
const HEIGHT: u64 = 2;

/// A tree of this height would have more nodes than there are words.
const HEIGHT_MAX: usize = 48;

/// The tree.
#[derive(Debug, Clone, Copy)]
pub struct AvlTree {
    root: Address,
}

/// The way from the root to a link: the nodes, and the words that lead to them.
struct Path {
    links: [Address; HEIGHT_MAX],
    nodes: [Address; HEIGHT_MAX],
    depth: usize,
    /// The word at the end of the way.
    link: Address,
}

impl Path {
    fn push(&mut self, node: Address, next: Address) {
        self.links[self.depth] = self.link;
        self.nodes[self.depth] = node;
        self.depth += 1;
        self.link = next;
    }
}

impl AvlTree {
    /// The way to a key: it ends at the node that has it, which is not part of the way, or at the word where it would be linked.
    async fn find<M: Memory>(&self, memory: &M, key: u64) -> Result<(Path, Address), Aborted> {
        let (links, nodes) = ([0; HEIGHT_MAX], [0; HEIGHT_MAX]);
        let mut path = Path { links, nodes, depth: 0, link: self.root };
        loop {
            let node = memory.load(path.link).await?;
            if node == 0 {
                return Ok((path, 0));
            }
            let found = memory.load(node + KEY).await?;
            if found == key {
                return Ok((path, node));
            }
            path.push(node, node + if key < found { LEFT } else { RIGHT });
        }
    }

    /// The subtree at the end of the way has this height now: tells the nodes above, and rotates where two heights differ by
    /// more than one.
    async fn rebalance<M: Memory>(&self, memory: &M, path: &Path, mut height: u64) -> Result<(), Aborted> {
        let mut link = path.link;
        for depth in (0..path.depth).rev() {
            let node = path.nodes[depth];
            let side = link - node;
            if memory.load(link + HEIGHT).await? == height {
                return Ok(());
            }
            memory.store(link + HEIGHT, height).await?;
            let other = memory.load(node + other_side(side) + HEIGHT).await?;
            if height.abs_diff(other) > 1 {
                let heavy = if height > other { side } else { other_side(side) };
                let (top, top_height) = rotate(memory, node, heavy).await?;
                memory.store(path.links[depth], top).await?;
                height = top_height;
            } else {
                height = height.max(other) + 1;
            }
            link = path.links[depth];
        }
        Ok(())
    }
}

fn other_side(side: u64) -> u64 {
    LEFT + RIGHT - side
}

/// Turns a node whose child on the `heavy` side is too high; the node that is on top now, and its height.
async fn rotate<M: Memory>(memory: &M, node: Address, heavy: u64) -> Result<(Address, u64), Aborted> {
    let light = other_side(heavy);
    let child = memory.load(node + heavy).await?;
    let outer = memory.load(child + heavy + HEIGHT).await?;
    let inner = memory.load(child + light + HEIGHT).await?;
    let light_height = memory.load(node + light + HEIGHT).await?;
    if outer >= inner {
        let grandchild = memory.load(child + light).await?;
        memory.store(node + heavy, grandchild).await?;
        memory.store(node + heavy + HEIGHT, inner).await?;
        memory.store(child + light, node).await?;
        let height = inner.max(light_height) + 1;
        memory.store(child + light + HEIGHT, height).await?;
        return Ok((child, height.max(outer) + 1));
    }
    let top = memory.load(child + light).await?;
    let (near, far) = (memory.load(top + heavy).await?, memory.load(top + light).await?);
    let near_height = memory.load(top + heavy + HEIGHT).await?;
    let far_height = memory.load(top + light + HEIGHT).await?;
    memory.store(child + light, near).await?;
    memory.store(child + light + HEIGHT, near_height).await?;
    memory.store(node + heavy, far).await?;
    memory.store(node + heavy + HEIGHT, far_height).await?;
    memory.store(top + heavy, child).await?;
    memory.store(top + light, node).await?;
    let (child_height, node_height) = (outer.max(near_height) + 1, light_height.max(far_height) + 1);
    memory.store(top + heavy + HEIGHT, child_height).await?;
    memory.store(top + light + HEIGHT, node_height).await?;
    Ok((top, child_height.max(node_height) + 1))
}

impl Set for AvlTree {
    const WORDS: u64 = LINE_WORDS;
    const NODE_WORDS: u64 = LINE_WORDS;

    fn at(address: Address) -> Self {
        AvlTree { root: address }
    }

    async fn contains<M: Memory>(&self, memory: &M, key: u64) -> Result<bool, Aborted> {
        let mut node = memory.load(self.root).await?;
        while node != 0 {
            let found = memory.load(node + KEY).await?;
            if found == key {
                return Ok(true);
            }
            node = memory.load(node + if key < found { LEFT } else { RIGHT }).await?;
        }
        Ok(false)
    }

    async fn insert<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> Result<bool, Aborted> {
        pool.begin();
        let (path, found) = self.find(memory, key).await?;
        if found != 0 {
            return Ok(false);
        }
        let node = pool.take();
        memory.store(node + KEY, key).await?;
        for word in [LEFT, RIGHT, LEFT + HEIGHT, RIGHT + HEIGHT] {
            memory.store(node + word, 0).await?;
        }
        memory.store(path.link, node).await?;
        self.rebalance(memory, &path, 1).await?;
        Ok(true)
    }

    async fn remove<M: Memory>(&self, memory: &M, key: u64, pool: &Pool) -> Result<bool, Aborted> {
        pool.begin();
        let (mut path, mut node) = self.find(memory, key).await?;
        if node == 0 {
            return Ok(false);
        }
        let (left, right) = (memory.load(node + LEFT).await?, memory.load(node + RIGHT).await?);
        let mut child = LEFT;
        if left == 0 {
            child = RIGHT;
        } else if right != 0 {
            // The next key takes the place of this one, and its node goes.
            let place = node;
            path.push(node, node + RIGHT);
            node = right;
            while memory.load(node + LEFT).await? != 0 {
                path.push(node, node + LEFT);
                node = memory.load(path.link).await?;
            }
            let next = memory.load(node + KEY).await?;
            memory.store(place + KEY, next).await?;
            child = RIGHT;
        }
        let below = memory.load(node + child).await?;
        let height = memory.load(node + child + HEIGHT).await?;
        memory.store(path.link, below).await?;
        pool.give(node);
        self.rebalance(memory, &path, height).await?;
        Ok(true)
    }

    async fn search_and_replace<M: Memory>(&self, memory: &M, key: u64) -> Result<(), Aborted> {
        let mut node = memory.load(self.root).await?;
        while node != 0 {
            let found = memory.load(node + KEY).await?;
            let next = memory.load(node + if key < found { LEFT } else { RIGHT }).await?;
            if found == key || next == 0 {
                return memory.store(node + KEY, found).await;
            }
            node = next;
        }
        Ok(())
    }

    async fn keys<M: Memory>(&self, memory: &M) -> Result<Vec<u64>, Aborted> {
        let mut keys = Vec::new();
        let mut left = vec![memory.load(self.root).await?];
        while let Some(node) = left.pop() {
            if node != 0 {
                keys.push(memory.load(node + KEY).await?);
                left.extend([memory.load(node + LEFT).await?, memory.load(node + RIGHT).await?]);
            }
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineConfig;
    use crate::random::Random;
    use crate::simulation::{Simulation, complete};

    /// The height of a subtree, which is what its parent says and differs from its sibling's by one at most.
    fn checked_height(simulation: &Simulation, node: Address, low: u64, high: u64) -> u64 {
        if node == 0 {
            return 0;
        }
        let word = |at| simulation.machine().word(at);
        let key = word(node + KEY);
        assert!((low..high).contains(&key), "keys lie in order");
        let left = checked_height(simulation, word(node + LEFT), low, key);
        let right = checked_height(simulation, word(node + RIGHT), key + 1, high);
        assert_eq!((left, right), (word(node + LEFT + HEIGHT), word(node + RIGHT + HEIGHT)));
        assert!(left.abs_diff(right) <= 1);
        left.max(right) + 1
    }

    #[test]
    fn the_tree_stays_balanced_and_in_order_under_random_changes() {
        let simulation = Simulation::new(MachineConfig::I7_4770, 1);
        let tree = AvlTree::at(simulation.allocate(AvlTree::WORDS));
        let pool = Pool::of(&simulation, AvlTree::NODE_WORDS);
        let (memory, mut random) = (simulation.unclocked(), Random::new(4));
        for step in 0..3_000 {
            let key = random.below(200);
            let change = if random.below(2) == 0 {
                complete(tree.insert(&memory, key, &pool))
            } else {
                complete(tree.remove(&memory, key, &pool))
            };
            assert!(change.is_ok());
            pool.settle();
            if step % 16 == 0 {
                checked_height(&simulation, simulation.machine().word(tree.root), 0, 200);
            }
        }
    }
}
