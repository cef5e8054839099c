//! What indexes, their columns and their methods can do, as `pg_index_column_has_property` and its kin tell.
use std::collections::BTreeMap;

use engine::IndexMethod;

use super::objects::{IndexObject, Objects};

/// Whether an object has a property: by the object's number, the number of its column, and the property's name.
pub(super) type Properties = BTreeMap<(i64, i64, &'static str), bool>;

/// Those of columns of indexes. Of columns that are no keys nothing is told of their order.
pub(super) fn of_columns(objects: &Objects) -> Properties {
    let columns = objects.indexes().flat_map(|(_, index)| {
        let keys = index.columns.len();
        let all = keys + index.definition.included.len();
        (0..all).flat_map(move |at| {
            let of = if at < keys { of_key(index, at) } else { of_included() };
            let number = i64::try_from(at + 1).unwrap_or(0);
            of.into_iter().map(move |(name, truth)| ((index.oid, number, name), truth))
        })
    });
    columns.collect()
}

fn of_key(index: &IndexObject, at: usize) -> Vec<(&'static str, bool)> {
    let method = index.method();
    let is_ordered = method.is_ordered();
    let parts_space = method == IndexMethod::Spgist;
    let order = index.definition.order(at);
    let class = index.class(at).map_or("", |class| class.name);
    let by_distance =
        ["point_ops", "box_ops", "circle_ops", "poly_ops", "quad_point_ops", "kd_point_ops"].contains(&class);
    let is_kept_whole = ["point_ops", "box_ops", "inet_ops", "range_ops"].contains(&class);
    vec![
        ("asc", is_ordered && !order.descending),
        ("desc", is_ordered && order.descending),
        ("nulls_first", is_ordered && order.nulls_first),
        ("nulls_last", is_ordered && !order.nulls_first),
        ("orderable", is_ordered),
        ("distance_orderable", (method.is_spatial() || parts_space) && by_distance),
        ("returnable", is_ordered || parts_space || method.is_spatial() && is_kept_whole),
        ("search_array", is_ordered),
        ("search_nulls", is_ordered || method.is_spatial() || !method.is_kept()),
    ]
}

fn of_included() -> Vec<(&'static str, bool)> {
    vec![("orderable", false), ("distance_orderable", false), ("returnable", true)]
}

/// Those of whole indexes.
pub(super) fn of_indexes(objects: &Objects) -> Properties {
    let of = |index: &IndexObject| {
        let method = index.method();
        let is_inverted = method.name() == "gin";
        let is_hash = method.name() == "hash";
        [
            ("clusterable", method.is_ordered() || method.is_spatial()),
            ("index_scan", !is_inverted && method != IndexMethod::Brin),
            ("bitmap_scan", true),
            ("backward_scan", method.is_ordered() || is_hash),
        ]
        .map(|(name, truth)| ((index.oid, 0, name), truth))
    };
    objects.indexes().flat_map(|(_, index)| of(index)).collect()
}

/// Those of methods.
pub(super) fn of_methods() -> Properties {
    let of = |method: IndexMethod| {
        let is_inverted = method.name() == "gin";
        let is_hash = method.name() == "hash";
        [
            ("can_order", method.is_ordered()),
            ("can_unique", method.is_ordered()),
            ("can_multi_col", !is_hash && method != IndexMethod::Spgist),
            ("can_exclude", !is_inverted && method != IndexMethod::Brin),
            ("can_include", method.is_ordered() || method.is_spatial() || method == IndexMethod::Spgist),
        ]
        .map(|(name, truth)| ((i64::from(method.number()), 0, name), truth))
    };
    IndexMethod::ALL.into_iter().flat_map(of).collect()
}
