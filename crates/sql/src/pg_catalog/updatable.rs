//! Which views rows can be changed through, and which of their columns are those of a table below: for `information_schema`.
use engine::schema_and_name;

use super::cells::{Cell, Row, text};
use super::objects::{Objects, ViewObject};
use crate::names::tables::CATALOG;
use crate::parsing::updatable::{Simple, simple};

/// How many views may be read by one another.
const DEPTH_MAX: usize = 100;

/// Which columns of a view are those of a table below it; none where no row can be changed through it.
pub(super) fn columns(view: &ViewObject, objects: &Objects) -> Option<Vec<bool>> {
    within(view, objects, 0)
}

fn within(view: &ViewObject, objects: &Objects, depth: usize) -> Option<Vec<bool>> {
    let Simple { reads, renamed, columns, .. } = simple(&view.query).ok().filter(|_| depth < DEPTH_MAX)?;
    let names = |table: &engine::Table| -> Vec<String> {
        let plain = table.schema().columns().iter().map(|column| column.name.clone());
        plain.enumerate().map(|(at, name)| renamed.get(at).cloned().unwrap_or(name)).collect()
    };
    let (below, are_own) = match objects.views.iter().find(|other| other.key == reads) {
        Some(other) => (names(&other.table), within(other, objects, depth + 1)?),
        None => {
            let table = objects.table(&reads).filter(|table| table.materialized.is_none())?;
            (names(&table.table), vec![true; table.table.schema().columns().len()])
        }
    };
    let is_own = |column: &Option<String>| {
        let place = column.as_ref().and_then(|column| below.iter().position(|name| name == column));
        place.is_some_and(|place| are_own[place])
    };
    Some(columns.iter().map(is_own).collect())
}

/// Whether rows can be put in and changed through a view.
pub(super) fn is_updatable(view: &ViewObject, objects: &Objects) -> bool {
    columns(view, objects).is_some_and(|columns| columns.contains(&true))
}

/// A row of `information_schema.views`.
pub(super) fn view(view: &ViewObject, objects: &Objects) -> Row {
    let yes = |is_so: bool| text(if is_so { "YES" } else { "NO" });
    let (schema, name) = schema_and_name(&view.key);
    let names = [("table_catalog", CATALOG), ("table_schema", schema), ("table_name", name)];
    let mut row: Row = names.map(|(column, name)| (column, text(name))).into();
    let check = view.check_option().unwrap_or("none").to_uppercase();
    row.extend([("view_definition", Cell::Text(view.definition())), ("check_option", text(&check))]);
    let is_updatable = is_updatable(view, objects);
    row.extend(["is_updatable", "is_insertable_into"].map(|name| (name, yes(is_updatable))));
    let triggers = ["is_trigger_updatable", "is_trigger_deletable", "is_trigger_insertable_into"];
    row.extend(triggers.map(|name| (name, yes(false))));
    row
}
