//! tests
use super::*;
#[test]
fn chains() {
    for n in [200_000u64, 500_000, 700_000, 1_000_000, 2_000_000] {
        for stride in [1u64, 0, 1 << 32, 1000, 4096] {
            let index = WordIndex::<1>::new();
            let f = |i: u64| {
                if stride == 0 {
                    i.wrapping_mul(0xBF58476D1CE4E5B9) ^ (i.wrapping_mul(0x94D049BB133111EB) >> 29)
                } else {
                    i.wrapping_mul(stride)
                }
            };
            for i in 0..n {
                index.insert(&[f(i)], Rid::base(0, i as usize));
            }
            let g = sync::pin();
            let chained = (0..n)
                .filter(|i| {
                    let h = index.hash(&[f(*i)]);
                    let s = index.segment(&g, h).unwrap();
                    let b = s.bucket(h);
                    b.slot_of(b.header(), &[f(*i)]).is_none()
                })
                .count();
            let linked: usize = (0..n)
                .filter(|i| {
                    let h = index.hash(&[f(*i)]);
                    let s = index.segment(&g, h).unwrap();
                    s.bucket(h).link() != 0
                })
                .count();
            println!(
                "{n} stride {stride}: chained {:.3} linked {:.3} bytes {:.1}",
                chained as f64 / n as f64,
                linked as f64 / n as f64,
                index.bytes() as f64 / n as f64
            );
        }
    }
}
