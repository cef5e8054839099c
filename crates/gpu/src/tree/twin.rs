//! The scan on the CPU: a stack of nodes for each query.

use super::{Key, Levels, hit};

/// Answers of all queries.
pub fn scan<K: Key>(tree: &Levels<'_, K>, queries: &[K]) -> Vec<u64> {
    let mut hits = Vec::new();
    let mut waiting = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        waiting.push(0u32);
        while let Some(node) = waiting.pop() {
            let [first, count] = tree.nodes[node as usize].map(|value| value as usize);
            for slot in first..first + count {
                if !tree.keys[slot].is_consistent(query) {
                    continue;
                }
                if node >= tree.first_leaf {
                    hits.push(hit(number as u32, tree.children[slot]));
                } else {
                    waiting.push(tree.children[slot]);
                }
            }
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::pack;

    fn around(keys: &[[i64; 2]]) -> [i64; 2] {
        let from = keys.iter().map(|key| key[0]).min().expect("a node has slots");
        let to = keys.iter().map(|key| key[1]).max().expect("a node has slots");
        [from, to]
    }

    #[test]
    fn the_twin_finds_what_a_scan_of_all_keys_finds() {
        for count in [0usize, 1, 7, 8, 9, 500] {
            let keys: Vec<[i64; 2]> = (0..count as i64).map(|at| [at * 3, at * 3 + at % 5]).collect();
            let queries: Vec<[i64; 2]> = (0..30).map(|at| [at * 40, at * 40 + at]).collect();
            let mut expected = Vec::new();
            for (number, query) in queries.iter().enumerate() {
                let found = (0..count).filter(|at| keys[*at].is_consistent(query));
                expected.extend(found.map(|at| hit(number as u32, at as u32)));
            }
            let tree = pack(&keys, 8, around);
            assert_eq!(tree.levels().fault(), None);
            let mut found = scan(&tree.levels(), &queries);
            found.sort_unstable();
            assert_eq!(found, expected, "{count} keys");
        }
    }

    #[test]
    fn a_tree_that_names_what_is_not_there_is_refused() {
        let keys: Vec<[i64; 2]> = (0..100).map(|at| [at, at]).collect();
        let tree = pack(&keys, 8, around);
        let levels = tree.levels();
        let fewer = Levels { children: &levels.children[1..], ..levels };
        assert!(fewer.fault().is_some());
        let shorter = Levels { keys: &levels.keys[..50], children: &levels.children[..50], ..levels };
        assert!(shorter.fault().is_some());
        let wild: Vec<u32> = levels.children.iter().map(|child| child + 1_000).collect();
        assert!(Levels { children: &wild, ..levels }.fault().is_some());
    }
}
