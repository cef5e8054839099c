//! Bodies of fuzz targets: bytes of any origin are refused or decoded, and what decodes is written as bytes that decode to it.
//!
//! `fuzz/` runs them on what it invents, `tests/fuzz.rs` on the kept corpus. Nothing else calls them.
use crate::disk::redo::{self, Operation};
use crate::error::Result;

/// The redo of a transaction, from one frame or several.
///
/// # Panics
/// If what was decoded is not what its own bytes decode to.
pub fn redo(data: &[u8]) {
    if let Ok(parts) = redo::held(data) {
        let held: usize = parts.iter().map(|part| part.len()).sum();
        assert!(held <= data.len(), "invariant 8: a part of the redo would be replayed twice");
        // A part that ends within an operation is refused, as a frame that does.
        parts.into_iter().for_each(|part| drop(redo::read(part, |_| Ok(()))));
    }
    let Ok(first) = written_again(data) else { return };
    let second = written_again(&first);
    assert!(second.is_ok_and(|second| second == first), "what decodes is written as bytes that decode to it");
}

fn written_again(data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    redo::read(data, |operation| {
        match operation {
            Operation::Insert { table, rid, cells } => redo::put_insert(&mut out, table, rid, &cells),
            Operation::InsertRows { rows, .. } => drop(lineage::WrittenRows::read(rows, &[])),
            Operation::InsertColumns { table, last, columns } => {
                redo::put_insert_columns(&mut out, table, last, columns);
            }
            Operation::InsertBlobs { table, last, file, salt, columns } => {
                redo::put_insert_blobs(&mut out, table, last, (file, salt), columns);
            }
            Operation::Update { table, rid, values } => redo::put_update(&mut out, table, rid, &values),
            Operation::Delete { table, rid } => redo::put_delete(&mut out, table, rid),
            Operation::Create { table, name, schema, settings } => {
                redo::put_create(&mut out, table, &name, &schema, &settings);
            }
            Operation::Drop { table } => redo::put_drop(&mut out, table),
            Operation::Clock { time } => redo::put_clock(&mut out, time),
            Operation::TakenBack { from } => redo::put_taken_back(&mut out, from),
            Operation::Settings { table, settings } => redo::put_settings(&mut out, table, &settings),
            Operation::Rename { table, name } => redo::put_rename(&mut out, table, &name),
            Operation::CreateIndex { table, index } => redo::put_create_index(&mut out, table, &index),
            // It is written from a table's rows alone.
            Operation::ArrayRows { .. } => {}
            Operation::DropIndex { table, name } => redo::put_drop_index(&mut out, table, &name),
        }
        Ok(())
    })?;
    Ok(out)
}
