//! A checkpoint's description of the database: its tables, the image of each range, and the marks of the wall
//! clock.
//!
//! It is JSON: it is small beside the images, and people can read it.
//!
//! ```text
//! catalog c0     tables, names and settings as of this commit
//!   table        id, name and since when, schema, settings, definitions of indexes, sizes of ranges
//!     range r    image at c_r: all commits up to this one, none after it
//!     index      image of its entries, and the ranges for whose records it does not stand
//!     array      of an array table, an image of all rows; likewise
//! gone           tables that were dropped or emptied, and are kept for the sake of their past; likewise
//! former         what names meant before, from one commit to another, as far as it is kept
//! given up       up to which commit the past of names is not kept
//! clock          which commit was the newest when
//! ```
//!
//! A checkpoint from before there was such a past says nothing of it: its names are taken to have meant their tables always.
use std::sync::Arc;

use durability::Manifest;
use lineage::TableOptions;
use serde::{Deserialize, Serialize};
use types::{BlobRef, Schema, Timestamp};

use super::indexes::ImageContents;
use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::keys::definition::KeptIndex;
use crate::state::catalog::Meanings;
use crate::state::table_data::TableData;
use crate::terms::former::{GivenUp, NameMeaning};
use crate::terms::settings::TableSettings;
use crate::terms::table_name::TableId;
use crate::terms::wall_clock::Micros;

const VERSION: u32 = 1;

/// See the module.
#[derive(Serialize, Deserialize)]
pub(crate) struct Contents {
    version: u32,
    /// commit of the catalog, and of the clock's marks
    pub(crate) catalog_at: u64,
    /// number of the next table
    pub(crate) next_table: TableId,
    pub(crate) tables: Vec<TableContents>,
    #[serde(default)]
    pub(crate) gone: Vec<TableContents>,
    #[serde(default)]
    pub(crate) former: Vec<FormerContents>,
    #[serde(default)]
    pub(crate) given_up: GivenUpContents,
    pub(crate) clock: Vec<(Micros, u64)>,
}

/// The meaning of a name from one commit to another.
#[derive(Serialize, Deserialize)]
pub(crate) struct FormerContents {
    pub(crate) name: String,
    pub(crate) table: TableId,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Up to which commits the past of names is not kept: of some, and of all.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct GivenUpContents {
    names: Vec<(String, u64)>,
    before: u64,
}

impl GivenUpContents {
    pub(crate) fn new(given_up: &GivenUp) -> GivenUpContents {
        let names = given_up.names.iter().map(|(name, to)| (name.clone(), to.0)).collect();
        let contents = GivenUpContents { names, before: given_up.before.0 };
        debug_assert_eq!(contents.given_up(), *given_up, "invariant 3: what is not kept is forgotten");
        contents
    }

    pub(crate) fn given_up(&self) -> GivenUp {
        let names = self.names.iter().map(|(name, to)| (name.clone(), Timestamp(*to))).collect();
        GivenUp { names, before: Timestamp(self.before) }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct TableContents {
    pub(crate) id: TableId,
    pub(crate) name: String,
    /// the commit by which it got the name, 0 if that is not known
    #[serde(default)]
    pub(crate) from: u64,
    pub(crate) schema: Schema,
    pub(crate) settings: TableSettings,
    pub(crate) has_changed_keys: bool,
    #[serde(default)]
    pub(crate) indexes: Vec<KeptIndex>,
    range_records: usize,
    update_range_records: usize,
    /// by number
    pub(crate) ranges: Vec<RangeContents>,
    /// of its indexes
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<ImageContents>,
    /// from where on it was kept when they were taken: entries of versions before may not be in them
    #[serde(default)]
    pub(crate) horizon: u64,
    /// of an array table, its rows
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) array: Option<ArrayContents>,
}

/// The image of an array table: its commit, and the parts in which there are rows, each with the number of its first leaf.
#[derive(Serialize, Deserialize)]
pub(crate) struct ArrayContents {
    pub(crate) at: u64,
    /// the newest commit that had written to it
    pub(crate) newest: u64,
    pub(crate) parts: Vec<(usize, RangeContents)>,
}

/// The image of a range: its commit, and file, offset, length and checksum of the blob.
#[derive(Serialize, Deserialize)]
pub(crate) struct RangeContents {
    pub(crate) at: u64,
    blob: (u64, u64, u32, u32),
}

impl RangeContents {
    pub(crate) fn new(at: Timestamp, blob: BlobRef) -> RangeContents {
        let BlobRef { file, offset, len, checksum } = blob;
        let contents = RangeContents { at: at.0, blob: (file, offset, len, checksum) };
        debug_assert_eq!(contents.blob(), blob, "invariant 8: the image would not be found");
        contents
    }

    pub(crate) fn blob(&self) -> BlobRef {
        let (file, offset, len, checksum) = self.blob;
        BlobRef { file, offset, len, checksum }
    }
}

impl TableContents {
    /// The manifest of a table from the images of its ranges. To be called after the images were taken: what a key
    /// change in them has noted must not be missing.
    pub(crate) fn new(
        (name, from): (String, Timestamp),
        settings: TableSettings,
        data: &TableData,
        indexes: &[Arc<IndexData>],
        (ranges, images, array): (Vec<RangeContents>, Vec<ImageContents>, Option<ArrayContents>),
    ) -> TableContents {
        let TableOptions { range_records, update_range_records, .. } = *data.storage.options();
        debug_assert!(ranges.len() <= data.storage.range_count(), "\"{name}\" has fewer ranges than images");
        debug_assert!(
            range_records.is_power_of_two() && update_range_records <= range_records,
            "ranges of {range_records} records, update ranges of {update_range_records}"
        );
        TableContents {
            id: data.id,
            name,
            from: from.0,
            schema: data.schema().clone(),
            settings,
            has_changed_keys: data.has_changed_keys(),
            indexes: indexes.iter().map(|index| index.kept()).collect(),
            range_records,
            update_range_records,
            ranges,
            horizon: if images.is_empty() { 0 } else { data.storage.horizon().0 },
            images,
            array,
        }
    }

    /// The commits of its images.
    fn times(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().map(|range| range.at).chain(self.array.iter().map(|array| array.at))
    }

    /// The options of its storage: ranges keep the sizes that they were made with.
    pub(crate) fn options(&self, defaults: TableOptions) -> TableOptions {
        let TableContents { range_records, update_range_records, .. } = *self;
        TableOptions { range_records, update_range_records, ..defaults }
    }
}

/// A table as a checkpoint has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointedTable {
    /// its name
    pub name: String,
    /// its ranges
    pub ranges: u64,
    /// the oldest and the newest commit of an image of a range, `None` where there is no range
    pub images: Option<(u64, u64)>,
}

/// The tables of a checkpoint.
pub(crate) fn tables_of(manifest: &Manifest) -> Result<Vec<CheckpointedTable>> {
    let table = |table: TableContents| {
        let images = table.times().min().zip(table.times().max());
        let parts = table.array.as_ref().map_or(0, |array| array.parts.len());
        CheckpointedTable { ranges: (table.ranges.len() + parts) as u64, images, name: table.name.clone() }
    };
    Ok(Contents::from_bytes(&manifest.payload)?.tables.into_iter().map(table).collect())
}

impl Contents {
    pub(crate) fn new(
        catalog_at: Timestamp,
        next_table: TableId,
        (tables, gone): (Vec<TableContents>, Vec<TableContents>),
        meanings: &Meanings,
        clock: Vec<(Micros, Timestamp)>,
    ) -> Contents {
        let all = || tables.iter().chain(&gone);
        debug_assert!(all().all(|table| table.id < next_table), "a new table would get another one's number");
        debug_assert!(
            all().flat_map(TableContents::times).all(|at| at >= catalog_at.0),
            "invariant 3: an image is from before the catalog, of {catalog_at:?}"
        );
        debug_assert!(
            gone.iter().all(|gone| tables.iter().all(|table| table.id != gone.id)),
            "a table that has a name is gone"
        );
        let clock = clock.into_iter().map(|(time, at)| (time, at.0)).collect();
        let former = |(name, former): &(String, NameMeaning<Arc<TableData>>)| {
            let (name, table) = (name.clone(), former.table.id);
            FormerContents { name, table, from: former.from.0, to: former.to.0 }
        };
        let (former, given_up) =
            (meanings.former.iter().map(former).collect(), GivenUpContents::new(&meanings.given_up));
        Contents { version: VERSION, catalog_at: catalog_at.0, next_table, tables, gone, former, given_up, clock }
    }

    /// All tables, those that are gone included.
    pub(crate) fn all_tables(&self) -> impl Iterator<Item = &TableContents> {
        self.tables.iter().chain(&self.gone)
    }

    /// The newest commit that anything of it knows of.
    pub(crate) fn newest(&self) -> u64 {
        let images = self.all_tables().flat_map(TableContents::times);
        images.chain(self.clock.iter().map(|(_, at)| *at)).fold(self.catalog_at, u64::max)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let bytes = serde_json::to_vec(self).expect("names, numbers and settings are plain data");
        debug_assert!(Contents::from_bytes(&bytes).is_ok(), "invariant 8: the checkpoint would be refused");
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Contents> {
        /// The common beginning of all versions.
        #[derive(Deserialize)]
        struct Any {
            version: u32,
        }
        let bad = |why: String| Error::BadCheckpoint(why);
        let any: Any = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        if any.version != VERSION {
            return Err(bad(format!("its contents have version {}, this program reads {VERSION}", any.version)));
        }
        serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_another_version_are_refused_by_number() {
        let contents =
            Contents::new(Timestamp(7), 3, Default::default(), &Meanings::default(), vec![(5, Timestamp(6))]);
        let again = Contents::from_bytes(&contents.to_bytes()).unwrap();
        assert_eq!((again.catalog_at, again.next_table, again.clock), (7, 3, vec![(5, 6)]));
        let newer = String::from_utf8(contents.to_bytes()).unwrap().replacen("\"version\":1", "\"version\":9", 1);
        let error = Contents::from_bytes(newer.as_bytes()).err().unwrap();
        assert!(error.to_string().contains("version 9"), "{error}");
        assert!(Contents::from_bytes(b"{\"version\":1}").is_err());
        assert!(Contents::from_bytes(b"").is_err());
    }
}
