//! The settings of a table: how its rows are laid out, how long its past is kept, what fills its columns, and what its rows must meet.
use std::time::Duration;

use lineage::{Layout, TableOptions};
use serde::{Deserialize, Serialize};
use types::Timestamp;

use crate::terms::column_default::ColumnDefault;
use crate::terms::constraints::{Check, ForeignKey, Referrer};
use crate::terms::materialized_query::MaterializedQuery;
use crate::terms::sequence_options::SequenceOptions;
use crate::terms::table_name::{name_in_schema, schema_and_name};
use crate::terms::view_definition::ViewDefinition;
use crate::terms::wall_clock::{WallClock, wall_time};

/// Records in a range of a sequence, which has one, and of a view or an array, which have none.
const SMALL_RANGE_RECORDS: usize = 16;

/// How long versions that are no longer the newest are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Retention {
    /// Without end.
    #[default]
    Forever,
    /// For this time after they were replaced or deleted.
    For(Duration),
    /// Only as long as a running transaction or query sees them.
    None,
}

impl Retention {
    /// The commit from which on all is kept, by the time on the wall.
    pub(crate) fn kept_from(self, clock: &WallClock) -> Timestamp {
        match self {
            Retention::Forever => Timestamp::ZERO,
            Retention::None => Timestamp::MAX,
            Retention::For(duration) => {
                let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
                clock.newest_at(wall_time().saturating_sub(micros)).unwrap_or(Timestamp::ZERO)
            }
        }
    }
}

/// The settings of a table; see [`Database::create_table_with`](crate::Database::create_table_with).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TableSettings {
    /// how values lie in memory
    pub layout: LayoutSetting,
    /// how long old versions are kept
    pub retention: Retention,
    /// records in an update range, the part of a range that shares tail pages: a power of two from 4,096 to 65,536
    pub update_range_records: Option<usize>,
    /// unmerged tail records at which a range is merged in the background
    pub merge_tail_records: Option<u64>,
    /// makes the table a sequence; only [`Transaction::create_sequence`](crate::Transaction::create_sequence) heeds
    /// it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<SequenceOptions>,
    /// what fills columns that a statement gives no value for, in the order of the columns
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<ColumnDefault>,
    /// makes the table a view; only [`Transaction::create_view`](crate::Transaction::create_view) heeds it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<ViewDefinition>,
    /// makes the table a materialized view, for good; [`Transaction::set_materialized`](crate::Transaction::set_materialized)
    /// changes its query
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialized: Option<MaterializedQuery>,
    /// the name of its primary key, without a schema, where that is not made of the table's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// the conditions that its rows must meet
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// the rows of other tables that its rows refer to; [`Transaction::set_foreign_keys`](crate::Transaction::set_foreign_keys) keeps
    /// them and the next in step
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// the tables that refer to it
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub referrers: Vec<Referrer>,
    /// whether what changes its rows neither looks at its foreign keys nor at what refers to it
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub references_off: bool,
}

/// How values lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayoutSetting {
    /// The values of a column next to each other: for tables that are scanned.
    #[default]
    Column,
    /// The values of a row next to each other: for tables that are read and written by key.
    Row,
    /// The key is the place: for numbers that are updated in place, without history.
    Array,
}

impl TableSettings {
    /// The name of the primary key of the table of this name, in the table's schema.
    pub fn name_of_key(&self, table: &str) -> String {
        match &self.key_name {
            Some(name) => name_in_schema(schema_and_name(table).0, name),
            None => format!("{table}_pkey"),
        }
    }

    /// The settings as a table heeds them: one that is written in place keeps no past, also not when it is gone.
    pub(crate) fn heeded(self) -> TableSettings {
        match self.layout {
            LayoutSetting::Array => TableSettings { retention: Retention::None, ..self },
            LayoutSetting::Column | LayoutSetting::Row => self,
        }
    }

    /// The storage's options for these settings, where they differ from the database's.
    pub(crate) fn options(&self, defaults: TableOptions) -> TableOptions {
        let is_empty = self.sequence.is_some() || self.view.is_some() || self.layout == LayoutSetting::Array;
        let defaults = match is_empty {
            true => TableOptions::with_range(SMALL_RANGE_RECORDS),
            false => defaults,
        };
        let range_records = defaults.range_records;
        debug_assert!(range_records.is_power_of_two(), "ranges of {range_records} records");
        let update_range_records = self.update_range_records.unwrap_or(defaults.update_range_records);
        TableOptions {
            layout: match self.layout {
                LayoutSetting::Column | LayoutSetting::Array => Layout::Column,
                LayoutSetting::Row => Layout::Row,
            },
            update_range_records: update_range_records
                .next_power_of_two()
                .clamp((range_records / 16).max(1), range_records),
            merge_tail_records: self.merge_tail_records.unwrap_or(defaults.merge_tail_records).max(1),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::column_default::Identity;

    /// The settings as programs without defaults have written them.
    const BEFORE: &str =
        r#"{"layout":"column","retention":"Forever","update_range_records":null,"merge_tail_records":null}"#;

    #[test]
    fn settings_without_defaults_are_read_and_written_as_before_there_were_any() {
        let read: TableSettings = serde_json::from_str(BEFORE).unwrap();
        assert_eq!(read, TableSettings::default());
        assert_eq!(serde_json::to_string(&read).unwrap(), BEFORE);
    }

    #[test]
    fn defaults_and_constraints_come_back_as_they_were_written() {
        let plain = ColumnDefault { column: 1, expression: Some("1 + 1".into()), ..ColumnDefault::default() };
        let identity = Some(Identity::ByDefault);
        let filled = ColumnDefault { column: 2, identity, sequences: vec!["t_b_seq".into()], ..plain.clone() };
        let check = Check { name: "c".into(), condition: "a > 0".into(), columns: vec![0], validated: true };
        let key_name = Some("pk_t".to_owned());
        let settings =
            TableSettings { defaults: vec![plain, filled], checks: vec![check], key_name, ..TableSettings::default() };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<TableSettings>(&text).unwrap(), settings);
    }

    #[test]
    fn a_key_is_called_after_its_table_unless_it_has_a_name() {
        let of_schema = name_in_schema("s", "t");
        let plain = TableSettings::default();
        assert_eq!(plain.name_of_key("t"), "t_pkey");
        assert_eq!(plain.name_of_key(&of_schema), name_in_schema("s", "t_pkey"));
        let named = TableSettings { key_name: Some("pk_t".to_owned()), ..plain };
        assert_eq!(named.name_of_key("t"), "pk_t");
        assert_eq!(named.name_of_key(&of_schema), name_in_schema("s", "pk_t"));
    }
}
