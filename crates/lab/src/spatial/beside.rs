//! What a device beside the processor adds to both benchmarks, where the program has found one: a line for each batch of queries. The
//! time is that of the whole search, with what the processor does before and after.
use index::{BitwiseColumns, Bounds, NoAnswer, SearchDevice};

use super::args::BwdArgs;
use super::boxes::{Boxes, Found, Tree};
use super::gist::{Bench, thousands};
use super::{agree, timed};
use crate::figures::{Figure, Report, in_turns};
use crate::{LabError, Progress};

/// Batches of queries over a tree.
const BATCHES: [usize; 4] = [64, 1_024, 8_192, 131_072];

fn no_answer(_: NoAnswer) -> LabError {
    LabError::Failed("the device gives no answer".to_owned())
}

/// Windows over distributed columns, of which they find so many rows.
pub(super) fn points(
    args: &BwdArgs,
    device: &dyn SearchDevice,
    columns: &BitwiseColumns<2>,
    (windows, rows): (&[Bounds<i64, 2>], usize),
    case: &str,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let there = device.bring_points(&columns.for_device()).map_err(no_answer)?;
    // The first run loads kernels and finds memory.
    columns.search_beside(windows, &*there).map_err(no_answer)?;
    let measured = in_turns(progress, args.runs, case, 1, |_, _| {
        let (seconds, found) = timed(|| columns.search_beside(windows, &*there));
        agree("the device", &rows, &found.map_err(no_answer)?.len())?;
        Ok(vec![seconds * 1e6 / windows.len() as f64])
    })?;
    Ok(report.push(Figure::amount(case, "a query, device", "us", &measured[0][0]))?)
}

/// Windows over a tree, whose image is exact but for what lies nearer than its places tell apart: each box is asked.
pub(super) fn boxes(bench: &mut Bench<'_, '_>, device: &dyn SearchDevice, tree: &Tree) -> Result<(), LabError> {
    let Boxes { entries, windows, queries } = bench.data;
    let (seconds, (image, sent, rest)) = timed(|| tree.image(u64::MAX));
    agree("an image", &0, &rest.len())?;
    let (brought_s, there) = timed(|| device.bring_boxes(&sent));
    let there = there.map_err(no_answer)?;
    let of_box = |seconds: f64| [seconds * 1e9 / entries.len() as f64];
    bench.report.push(Figure::amount("image for a device", "made, a box", "ns", &of_box(seconds)))?;
    bench.report.push(Figure::amount("image for a device", "brought, a box", "ns", &of_box(brought_s)))?;
    let sizes = BATCHES.map(|size| size.min(windows.len()));
    for size in sizes.into_iter().filter(|size| *size > 0) {
        let expected = Found::by_descents(tree, &queries[..size]);
        let run = || -> Result<Found, LabError> {
            let (mut places, mut found) = (Vec::new(), Found::default());
            windows[..size].iter().for_each(|window| image.place(window, &mut places));
            let mut take = |hits: &[u64]| {
                for hit in hits {
                    let (window, slot) = (&windows[(hit >> 32) as usize], image.rid(*hit as u32).slot());
                    let (at, low, high) = (&entries[slot].0, window.low(), window.high());
                    if (0..2).all(|d| at.low()[d] <= high[d] && low[d] <= at.high()[d]) {
                        found.add(slot);
                    }
                }
            };
            there.search(&places, &mut take).map_err(no_answer)?;
            Ok(found)
        };
        run()?;
        let case = format!("range, batches of {size}, device");
        let measured = in_turns(bench.progress, bench.args.runs, &case, 2, |at, _| {
            let (seconds, found) = match at {
                0 => timed(run),
                _ => timed(|| {
                    let mut found = Found::default();
                    let processor = index::Cpu::default();
                    tree.search_batch_each(&queries[..size], &processor, |_, rid| found.add(rid.slot()));
                    Ok(found)
                }),
            };
            agree("a batch", &expected, &found?)?;
            Ok(vec![thousands(size, seconds)])
        })?;
        bench.report.push(Figure::rate(&case, "queries", "k/s", &measured[0][0]))?;
        bench.report.push(Figure::rate(&case, "queries, one core", "k/s", &measured[1][0]))?;
    }
    Ok(())
}
