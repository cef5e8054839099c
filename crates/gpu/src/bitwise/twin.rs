//! The scan on the CPU: chunks whose prefix meets the query, then their points, with residuals where the
//! prefix alone does not tell.

use super::{Distributed, Query, hit};

/// Hits of all queries, each query's in the order of the clusters.
pub fn scan(points: &Distributed, queries: &[Query]) -> Vec<u64> {
    let mut hits = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        // Clusters are in the order of their prefix along, so a query looks at a stretch of them.
        let [from, to] = query.y.map(|value| points.split.prefix(value));
        let first = points.chunks.partition_point(|chunk| chunk.prefix[1] < from);
        let across = query.x.map(|value| points.split.prefix(value));
        for chunk in points.chunks[first..].iter().take_while(|chunk| chunk.prefix[1] <= to) {
            if chunk.prefix[0] < across[0] || chunk.prefix[0] > across[1] {
                continue;
            }
            for at in chunk.first..chunk.first + chunk.count {
                let [x, y] = points.point(chunk.prefix, at);
                if query.contains(x, y) {
                    hits.push(hit(number as u32, points.rows[at as usize]));
                }
            }
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::data::Random;
    use crate::bitwise::Split;

    #[test]
    fn the_twin_finds_what_a_scan_of_plain_points_finds() {
        let mut random = Random::new(3);
        let x: Vec<u32> = (0..3000).map(|_| random.below(1 << 12) as u32).collect();
        let y: Vec<u32> = (0..3000).map(|_| random.word() as u32).collect();
        let queries: Vec<Query> = (0..20)
            .map(|_| {
                let (from, low) = (random.below(1 << 12) as u32, random.word() as u32);
                Query { x: [from, from + 500], y: [low, low.saturating_add(1 << 29)] }
            })
            .collect();
        let mut expected = Vec::new();
        for (number, query) in queries.iter().enumerate() {
            expected.extend(
                (0..3000u32)
                    .filter(|row| query.contains(x[*row as usize], y[*row as usize]))
                    .map(|row| hit(number as u32, row)),
            );
        }
        for (prefix_bits, suffix_bits) in [(0, 0), (0, 32), (32, 0), (22, 5), (7, 20)] {
            let points = Distributed::new(&x, &y, Split { prefix_bits, suffix_bits });
            let mut found = scan(&points, &queries);
            found.sort_unstable();
            assert_eq!(found, expected, "{prefix_bits} and {suffix_bits} bits");
        }
    }
}
