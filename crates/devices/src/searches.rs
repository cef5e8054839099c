//! Images of indexes on a device, and their searches.

use std::sync::Arc;
use std::time::Instant;

use gpu::bitwise::directory::{Asked, Directory, Found, Resident};
use gpu::tree::{self, Levels};
use gpu::{Device, GpuError};
use sql::{BoxesImage, DeviceBoxes, DeviceError, DevicePoints, Partial, PointsImage, PointsQuery, Spent};

use crate::told::{nanoseconds, told};

pub(super) fn points(device: &Arc<Device>, image: &PointsImage<'_>) -> Result<Box<dyn DevicePoints>, DeviceError> {
    let PointsImage { starts, row_clusters, suffixes, suffix_bits, .. } = *image;
    let points = Resident::new(device, &Directory { starts, row_clusters, suffixes, suffix_bits }).map_err(told)?;
    Ok(Box::new(Points(points)))
}

pub(super) fn boxes(device: &Arc<Device>, image: &BoxesImage) -> Result<Box<dyn DeviceBoxes>, DeviceError> {
    match image.dimensions {
        1 => boxes_of::<2>(device, image),
        2 => boxes_of::<4>(device, image),
        3 => boxes_of::<6>(device, image),
        4 => boxes_of::<8>(device, image),
        other => Err(DeviceError::Declined(format!("boxes of {other} dimensions"))),
    }
}

fn boxes_of<const NUMBERS: usize>(device: &Arc<Device>, image: &BoxesImage) -> Result<Box<dyn DeviceBoxes>, DeviceError>
where
    [u32; NUMBERS]: tree::Key,
{
    let (keys, _) = image.keys.as_chunks::<NUMBERS>();
    let levels = Levels {
        nodes: &image.nodes,
        keys,
        children: &image.children,
        height: image.height,
        first_leaf: image.first_leaf,
    };
    Ok(Box::new(Boxes(tree::Resident::new(device, &levels).map_err(told)?)))
}

/// Where the time of a search went that took so long as a whole, its kernels so many milliseconds.
fn spent(began: Instant, kernels_ms: f64, launches: u32) -> Spent {
    let (whole_ns, kernels_ns) = (began.elapsed().as_nanos() as f64, nanoseconds(kernels_ms));
    Spent { transfer_ns: 0.0, kernels_ns, results_ns: (whole_ns - kernels_ns).max(0.0), launches }
}

struct Points(Resident);

impl DevicePoints for Points {
    fn search(
        &self,
        queries: &[PointsQuery],
        words_max: usize,
        take: &mut dyn FnMut(&[Partial]),
    ) -> Result<Spent, DeviceError> {
        let began = Instant::now();
        let pair = |(first, end): (u64, u64)| [first, end];
        let asked = |query: &PointsQuery| Asked { may: query.may.map(pair), must: query.must.map(pair) };
        let asked: Vec<Asked> = queries.iter().map(asked).collect();
        let partial = |found: &Found| {
            let Found { query, place, cluster, is_sure } = *found;
            Partial { query, place, cluster, is_definite: is_sure }
        };
        let mut found = |part: &[Found]| take(&part.iter().map(partial).collect::<Vec<_>>());
        let kernels_ms = self.0.scan(&asked, words_max, &mut found).map_err(told)?;
        Ok(spent(began, kernels_ms, 2))
    }
}

struct Boxes<K: tree::Key>(tree::Resident<K>);

impl<const NUMBERS: usize> DeviceBoxes for Boxes<[u32; NUMBERS]>
where
    [u32; NUMBERS]: tree::Key,
{
    fn search(&self, windows: &[u32], words_max: usize, take: &mut dyn FnMut(&[u64])) -> Result<Spent, DeviceError> {
        let (began, (windows, rest)) = (Instant::now(), windows.as_chunks::<NUMBERS>());
        if !rest.is_empty() {
            return Err(told(GpuError::Unsuitable("windows of other dimensions".to_owned())));
        }
        let (hits, kernels_ms) = self.0.scan_within(windows, words_max).map_err(told)?;
        take(&hits);
        Ok(spent(began, kernels_ms, 1))
    }
}
