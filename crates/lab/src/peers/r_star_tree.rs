//! rstar: an R*-tree in memory, for one thread. Here it has boxes of two dimensions, each with its number.
use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};

/// A box with its number.
pub(crate) type NumberedBox = GeomWithData<Rectangle<[f64; 2]>, usize>;

/// A box from its corners.
pub(crate) fn numbered_box(low: [f64; 2], high: [f64; 2], number: usize) -> NumberedBox {
    GeomWithData::new(Rectangle::from_corners(low, high), number)
}

/// The tree.
pub(crate) struct RStarTree(RTree<NumberedBox>);

impl RStarTree {
    /// A tree of boxes that are inserted one by one.
    pub(crate) fn insert_all(boxes: Vec<NumberedBox>) -> RStarTree {
        let mut tree = RTree::new();
        boxes.into_iter().for_each(|of| tree.insert(of));
        RStarTree(tree)
    }

    /// A tree of all boxes at once.
    pub(crate) fn load(boxes: Vec<NumberedBox>) -> RStarTree {
        RStarTree(RTree::bulk_load(boxes))
    }

    /// How many boxes it has.
    pub(crate) fn len(&self) -> usize {
        self.0.size()
    }

    /// Calls `each` with the number of every box that overlaps a window.
    pub(crate) fn overlapping(&self, low: [f64; 2], high: [f64; 2], mut each: impl FnMut(usize)) {
        let window = AABB::from_corners(low, high);
        self.0.locate_in_envelope_intersecting(window).for_each(|of| each(of.data));
    }

    /// How far away the last of the nearest boxes is, of so many; 0 if there is none.
    pub(crate) fn nearest(&self, at: [f64; 2], count: usize) -> f64 {
        let nearest = self.0.nearest_neighbor_iter_with_distance_2(at).take(count);
        nearest.last().map_or(0.0, |(_, square)| square.sqrt())
    }
}
