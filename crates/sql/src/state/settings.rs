//! Session settings: the few that clients set, accepted where they are true and refused where they would not be; the
//! modes of transactions and limits of time; the moment of the past that queries read, if not the present; and the
//! memory limit, which is the whole database's, and which sessions only see.
//!
//! Each session has its values twice: those of the session, and those in use, in which `SET LOCAL` may have put others
//! for the rest of the block. The end of a block puts the session's values in use again; a rollback brings back both as
//! they were at the block's begin, or at the savepoint.
mod known;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use costs::CostModel;
use datafusion::sql::sqlparser::ast::{ContextModifier, Ident, Reset, Set};
use engine::{Database, Durability, Timestamp};

use crate::error::{Result, SqlError};
use crate::interrupt::session_zone;
use crate::interrupt::time_style::{DateStyle, IntervalStyle, TimeStyle};
use crate::names::fold;
use crate::names::tables::CATALOG;
use crate::parsing::modes::{AskedModes, IsolationLevel, Modes};
use crate::parsing::time_limit;
use crate::state::choices::Choice;
use crate::state::cost_settings::{self, CostSetting};
use crate::state::custom_settings::CustomSettings;
use crate::state::database_settings;
use crate::state::device_settings::{self, DeviceSetting, DeviceSettings};
use crate::state::memory_limit;
use crate::state::outcome::Notice;
use crate::state::past;
use crate::state::query_memory;
use crate::state::setting_values::{
    Change, Messages, PathValue, Whose, ZoneValue, asked, boolean, date_style, durability, encoding, interval_style,
    invalid, milliseconds,
};
use crate::state::unheeded_settings::{REPLICATION_ROLE, Unheeded};

use crate::values::wire::encodings::{Encoding, Named};

use known::{AllowedValues, KNOWN, find};
pub(crate) use known::{Limit, default_of};

/// The values that a session can set for itself.
#[derive(Clone)]
struct Values {
    application_name: String,
    encoding: Named,
    as_of: Option<Timestamp>,
    modes: Modes,
    durability: Durability,
    messages: Messages,
    /// What the planner does, by [`Choice`].
    choices: [bool; Choice::COUNT],
    costs: CostModel,
    /// How much a query may take, where that was said: some bytes, or no limit.
    query_memory: Option<Option<u64>>,
    /// How many threads a query may use, where that was said.
    threads: Option<usize>,
    device: DeviceSettings,
    /// Milliseconds by [`Limit`], 0 being none.
    limits: [u32; 4],
    custom: CustomSettings,
    path: PathValue,
    zone: ZoneValue,
    intervals: IntervalStyle,
    dates: DateStyle,
}

/// The values of a session at a moment.
#[derive(Clone)]
pub(crate) struct SavedSettings {
    session: Values,
    in_use: Values,
}

/// The settings of a session.
pub(crate) struct Settings {
    values: SavedSettings,
    /// The values that the session began with.
    defaults: Values,
    /// How often values were put into their places.
    turn: u64,
    /// Whether values are in use that are not the session's.
    has_local: bool,
    /// Why it could not begin with what the database remembers.
    unread: Option<SqlError>,
    db: Database,
    /// How many threads a query uses where no value says less.
    threads: usize,
}

/// One value, read and not yet put into its place.
enum AssignedValue {
    Nothing,
    ApplicationName(String),
    Encoding(Named),
    AsOf(Option<Timestamp>),
    Modes(AskedModes),
    Limit(Limit, u32),
    Durability(Durability),
    Messages(Messages),
    Planner(Choice, bool),
    Costs(CostSetting, CostModel),
    QueryMemory(Option<u64>),
    Threads(usize),
    Device(DeviceSetting, DeviceSettings),
    Custom(String, String),
    Path(PathValue),
    Zone(ZoneValue),
    Intervals(IntervalStyle),
    Dates(DateStyle),
}

impl SavedSettings {
    /// Custom settings that others know are known here, too.
    fn know(&mut self, others: &SavedSettings) {
        for values in [&mut self.in_use, &mut self.session] {
            values.custom.know(&others.in_use.custom);
        }
    }
}

impl Settings {
    /// Those of a session of which queries use so many threads unless it says less.
    pub(crate) fn new(db: &Database, threads: usize) -> Settings {
        let values = Values {
            application_name: String::new(),
            encoding: Named::AsItIs("UTF8"),
            as_of: None,
            modes: Modes::DEFAULT,
            durability: Durability::Sync,
            messages: Messages::default(),
            choices: [true; Choice::COUNT],
            costs: CostModel::default(),
            query_memory: None,
            threads: None,
            device: DeviceSettings::default(),
            limits: [0; 4],
            custom: CustomSettings::default(),
            path: PathValue::default(),
            zone: ZoneValue::default(),
            intervals: IntervalStyle::default(),
            dates: DateStyle::default(),
        };
        let defaults = values.clone();
        let values = SavedSettings { session: values.clone(), in_use: values };
        let (turn, has_local, unread, db) = (0, false, None, db.clone());
        let mut settings = Settings { values, defaults, turn, has_local, unread, db, threads };
        match database_settings::remembered(&settings.db) {
            Ok(remembered) => settings.begin_with(remembered),
            Err(error) => settings.unread = Some(error),
        }
        settings
    }

    /// Begins the session with what the database remembers. Settings that this version does not understand are left
    /// alone.
    fn begin_with(&mut self, remembered: Vec<(String, String)>) {
        for (name, value) in remembered {
            let Ok((known, default, allowed)) = find(&name) else { continue };
            if let (true, Ok(assigned)) = (allowed.is_of_sessions(), self.read(known, default, allowed, &value)) {
                self.put(assigned, false);
            }
        }
        self.become_defaults();
    }

    /// Refuses to go on with other settings than those that the database remembers.
    pub(crate) fn check_begun(&self) -> Result<()> {
        self.unread.clone().map_or(Ok(()), Err)
    }

    /// The setting of an `ALTER DATABASE ... SET` and its value, none for the default.
    pub(crate) fn for_a_database(&self, set: &Set) -> Result<(String, Option<String>)> {
        let (name, value) = asked(set)?;
        let known = Settings::check_name(&name)?;
        if value.eq_ignore_ascii_case("default") {
            return Ok((known.to_owned(), None));
        }
        let (known, default, allowed) = find(known)?;
        self.read(known, default, allowed, &value)?;
        Ok((known.to_owned(), Some(value)))
    }

    /// The name of a setting that a database may remember.
    pub(crate) fn check_name(name: &str) -> Result<&'static str> {
        let (name, _, allowed) = find(name)?;
        match allowed.is_of_sessions() || allowed == AllowedValues::Memory {
            true => Ok(name),
            false => Err(SqlError::new("55P02", format!("parameter \"{name}\" cannot be set for a database"))),
        }
    }

    /// The values as they are become those of `RESET ALL`.
    pub(crate) fn become_defaults(&mut self) {
        self.defaults = self.values.session.clone();
    }

    /// A number that is another one once a value may have changed, other than the modes of a transaction.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// All values, to come back to.
    pub(crate) fn save(&self) -> SavedSettings {
        self.values.clone()
    }

    /// Brings back values of before.
    pub(crate) fn restore(&mut self, saved: SavedSettings) {
        self.turn += 1;
        // What comes back may have been set for its transaction.
        self.has_local = true;
        let before = std::mem::replace(&mut self.values, saved);
        self.values.know(&before);
    }

    /// Puts the session's values in use again: the end of `SET LOCAL`.
    pub(crate) fn end_local(&mut self) {
        if !std::mem::take(&mut self.has_local) {
            return;
        }
        self.turn += 1;
        let before = self.values.clone();
        self.values.in_use = self.values.session.clone();
        self.values.know(&before);
    }

    /// The commit as of which queries read tables, if they don't read the present.
    pub(crate) fn as_of(&self) -> Option<Timestamp> {
        self.values.in_use.as_of
    }

    /// Whether what the session changes looks at no foreign keys, as where a replica applies what was checked elsewhere.
    pub(crate) fn is_replica(&self) -> bool {
        self.values.in_use.custom.get(REPLICATION_ROLE) == Some("replica")
    }

    /// The schemas in which names are looked for.
    pub(crate) fn search_path(&self) -> Arc<[String]> {
        self.values.in_use.path.schemas.clone()
    }

    /// How times are shown.
    pub(crate) fn application_name(&self) -> &str {
        &self.values.in_use.application_name
    }

    /// The encoding of the client where its texts are brought into another.
    pub(crate) fn encoding(&self) -> Option<&'static Encoding> {
        match self.values.in_use.encoding {
            Named::Bytes(encoding) => Some(encoding),
            _ => None,
        }
    }

    pub(crate) fn times(&self) -> TimeStyle {
        let Values { zone, intervals, dates, .. } = &self.values.in_use;
        TimeStyle { zone: zone.zone, intervals: *intervals, dates: *dates }
    }

    /// The modes of a transaction that begins now.
    pub(crate) fn modes(&self) -> Modes {
        self.values.in_use.modes
    }

    /// When a commit is acknowledged now.
    pub(crate) fn durability(&self) -> Durability {
        self.values.in_use.durability
    }

    /// How many threads an analytical query uses.
    pub(crate) fn threads(&self) -> usize {
        self.values.in_use.threads.map_or(self.threads, |threads| threads.min(self.threads))
    }

    /// Whether the client is to be told a notice.
    pub(crate) fn tells(&self, notice: &Notice) -> bool {
        self.values.in_use.messages.tell(notice.severity)
    }

    /// How long something may take now, if that is limited.
    pub(crate) fn limit(&self, limit: Limit) -> Option<Duration> {
        time_limit::limit(self.values.in_use.limits[limit as usize])
    }

    /// The values of all.
    pub(crate) fn all(&self, current: Modes) -> BTreeMap<String, String> {
        let costs = cost_settings::names().chain(device_settings::names()).filter_map(|name| find(name).ok());
        let known = KNOWN.iter().copied().chain(costs);
        let known = known.map(|known| (known.0.to_owned(), self.value(known, current)));
        let unheeded = Unheeded::all().map(|(name, default)| (name.to_owned(), default.to_owned()));
        let custom = self.values.in_use.custom.all().map(|(name, value)| (name.clone(), value.clone()));
        known.chain(unheeded).chain(custom).collect()
    }

    /// `SHOW name`: the canonical name and the value. `current` are the modes of the running transaction.
    pub(crate) fn show(&self, words: &[Ident], current: Modes) -> Result<Vec<(String, String)>> {
        let words: Vec<String> = words.iter().map(fold).collect();
        let name = match words.join(" ").as_str() {
            "all" => return Ok(self.all(current).into_iter().collect()),
            "time zone" => "timezone".to_owned(),
            "lstore as_of" => "lstore.as_of".to_owned(),
            "transaction isolation level" => "transaction_isolation".to_owned(),
            name => name.to_owned(),
        };
        let custom = words.join(".");
        if let Some(value) = self.values.in_use.custom.get(&custom) {
            return Ok(vec![(custom, value.to_owned())]);
        }
        if let Some(unheeded) = Unheeded::find(&custom) {
            return Ok(vec![(custom, unheeded.default.to_owned())]);
        }
        let known = find(&custom).or_else(|_| find(&name))?;
        Ok(vec![(known.0.to_owned(), self.value(known, current))])
    }

    fn value(&self, known: (&str, &str, AllowedValues), current: Modes) -> String {
        self.value_among(&self.values.in_use, known, current)
    }

    fn value_among(
        &self,
        values: &Values,
        (_, default, allowed): (&str, &str, AllowedValues),
        current: Modes,
    ) -> String {
        let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
        let modes = |whose: Whose| if whose == Whose::Current { current } else { values.modes };
        match allowed {
            AllowedValues::Any => values.application_name.clone(),
            AllowedValues::Path => values.path.text.clone(),
            AllowedValues::Zone => values.zone.text.clone(),
            AllowedValues::Intervals => values.intervals.name().to_owned(),
            AllowedValues::Dates => values.dates.name(),
            AllowedValues::Past => values.as_of.map(|at| at.0.to_string()).unwrap_or_default(),
            AllowedValues::Memory => memory_limit::show(self.db.memory_limit_bytes()),
            AllowedValues::QueryMemory => {
                let by_default = || Some(query_memory::default_bytes(&self.db));
                memory_limit::show(values.query_memory.unwrap_or_else(by_default))
            }
            AllowedValues::Threads(counted) => counted.show(values.threads.unwrap_or(self.threads)),
            AllowedValues::Isolation(whose) => modes(whose).isolation.to_string(),
            AllowedValues::ReadOnly(whose) => on(modes(whose).is_read_only),
            AllowedValues::Deferrable(whose) => on(modes(whose).is_deferrable),
            AllowedValues::Time(limit) => time_limit::show(values.limits[limit as usize]),
            AllowedValues::Durability => match values.durability {
                Durability::Partition => "partition".to_owned(),
                durability => on(durability == Durability::Sync),
            },
            AllowedValues::Messages => values.messages.0.to_owned(),
            AllowedValues::Planner(choice) => on(values.choices[choice as usize]),
            AllowedValues::Cost(setting) => setting.show(&values.costs),
            AllowedValues::Device(setting) => setting.show(&values.device),
            AllowedValues::Encoding => values.encoding.name().to_owned(),
            AllowedValues::Only(_) | AllowedValues::Fixed => default.to_owned(),
        }
    }

    /// Whether a `SET` is to last for the block only.
    pub(crate) fn is_local(set: &Set) -> bool {
        match set {
            Set::SingleAssignment { scope, .. } => matches!(scope, Some(ContextModifier::Local)),
            Set::SetTimeZone { local, .. } => *local,
            _ => false,
        }
    }

    /// `SET ...`.
    pub(crate) fn set(&mut self, set: &Set) -> Result<Change> {
        let (name, value) = asked(set)?;
        self.assign(&name, &value, Settings::is_local(set))
    }

    /// `SET SESSION CHARACTERISTICS AS TRANSACTION ...`.
    pub(crate) fn set_modes(&mut self, asked: AskedModes) {
        self.put(AssignedValue::Modes(asked), false);
    }

    /// `RESET ...`.
    pub(crate) fn reset(&mut self, reset: &Reset) -> Result<Change> {
        match reset {
            Reset::ALL => {
                self.restore(SavedSettings { session: self.defaults.clone(), in_use: self.defaults.clone() });
                Ok(Change::Done)
            }
            Reset::ConfigurationParameter(name) => self.assign(&name.to_string().to_lowercase(), "default", false),
        }
    }

    /// Sets a value by its name.
    pub(crate) fn assign_named(&mut self, name: &str, value: &str, is_local: bool) -> Result<Change> {
        self.assign(&name.to_lowercase(), value, is_local)
    }

    fn assign(&mut self, name: &str, value: &str, is_local: bool) -> Result<Change> {
        if let Some(value) = self.defaults.custom.asked(name, value)? {
            self.put(AssignedValue::Custom(name.to_owned(), value), is_local);
            return Ok(Change::Done);
        }
        let (name, default, allowed) = find(name)?;
        if allowed == AllowedValues::Memory {
            let hint = format!("ALTER DATABASE {CATALOG} SET {name} = '...' changes it for the whole database.");
            return Err(SqlError::new("55P02", format!("parameter \"{name}\" cannot be changed now")).hint(hint));
        }
        let begun_with = match allowed.is_of_sessions() {
            true => self.value_among(&self.defaults, (name, default, allowed), self.defaults.modes),
            false => default.to_owned(),
        };
        let assigned = self.read(name, &begun_with, allowed, value)?;
        match (allowed, assigned) {
            (
                AllowedValues::Isolation(Whose::Current)
                | AllowedValues::ReadOnly(Whose::Current)
                | AllowedValues::Deferrable(Whose::Current),
                AssignedValue::Modes(asked),
            ) => return Ok(Change::Modes(asked)),
            (_, assigned) => self.put(assigned, is_local),
        }
        Ok(Change::Done)
    }

    fn put(&mut self, assigned: AssignedValue, is_local: bool) {
        self.turn += 1;
        self.has_local |= is_local;
        let places = match is_local {
            true => vec![&mut self.values.in_use],
            false => vec![&mut self.values.in_use, &mut self.values.session],
        };
        if matches!(assigned, AssignedValue::Zone(_) | AssignedValue::Intervals(_) | AssignedValue::Dates(_)) {
            session_zone::follow_into_tasks();
        }
        for values in places {
            match &assigned {
                AssignedValue::Nothing => {}
                AssignedValue::ApplicationName(name) => values.application_name.clone_from(name),
                AssignedValue::Encoding(named) => values.encoding = *named,
                AssignedValue::AsOf(at) => values.as_of = *at,
                AssignedValue::Modes(asked) => values.modes = values.modes.with(*asked),
                AssignedValue::Limit(limit, millis) => values.limits[*limit as usize] = *millis,
                AssignedValue::Durability(durability) => values.durability = *durability,
                AssignedValue::Messages(messages) => values.messages = *messages,
                AssignedValue::QueryMemory(limit) => values.query_memory = Some(*limit),
                AssignedValue::Threads(threads) => values.threads = Some(*threads),
                AssignedValue::Planner(choice, is_on) => values.choices[*choice as usize] = *is_on,
                AssignedValue::Costs(setting, value) => values.costs = setting.taken(values.costs, value),
                AssignedValue::Device(setting, value) => values.device = setting.taken(values.device, *value),
                AssignedValue::Custom(name, value) => values.custom.set(name, value),
                AssignedValue::Path(path) => values.path.clone_from(path),
                AssignedValue::Zone(zone) => values.zone.clone_from(zone),
                AssignedValue::Intervals(style) => values.intervals = *style,
                AssignedValue::Dates(style) => values.dates = *style,
            }
        }
    }

    fn read(&self, name: &'static str, default: &str, allowed: AllowedValues, value: &str) -> Result<AssignedValue> {
        let says_default = value.eq_ignore_ascii_case("default");
        let is_default = says_default || value.eq_ignore_ascii_case(default);
        let value = if says_default { default } else { value };
        let modes = |asked: AskedModes| Ok(AssignedValue::Modes(asked));
        match allowed {
            AllowedValues::Any => Ok(AssignedValue::ApplicationName(value.to_owned())),
            AllowedValues::Path => PathValue::read(value).map(AssignedValue::Path),
            AllowedValues::Zone => ZoneValue::read(value).map(AssignedValue::Zone),
            AllowedValues::Intervals => interval_style(name, value).map(AssignedValue::Intervals),
            AllowedValues::Dates => date_style(name, value, self.values.in_use.dates).map(AssignedValue::Dates),
            AllowedValues::Memory => {
                memory_limit::parse(value).map_err(|hint| invalid(name, value).hint(hint))?;
                Ok(AssignedValue::Nothing)
            }
            AllowedValues::QueryMemory => {
                let limit = query_memory::parse(value).map_err(|hint| invalid(name, value).hint(hint))?;
                Ok(AssignedValue::QueryMemory(limit))
            }
            AllowedValues::Threads(counted) => counted.read(name, value).map(AssignedValue::Threads),
            AllowedValues::Past if is_default => Ok(AssignedValue::AsOf(None)),
            AllowedValues::Past => Ok(AssignedValue::AsOf(Some(past::commit_of_text(&self.db, value)?))),
            AllowedValues::Isolation(_) => {
                let level = IsolationLevel::named(value).ok_or_else(|| {
                    invalid(name, value).hint(format!("Available values: {}.", IsolationLevel::names()))
                })?;
                modes(AskedModes { isolation: Some(level), ..AskedModes::default() })
            }
            AllowedValues::ReadOnly(_) => {
                modes(AskedModes { is_read_only: Some(boolean(name, value)?), ..AskedModes::default() })
            }
            AllowedValues::Deferrable(_) => {
                modes(AskedModes { is_deferrable: Some(boolean(name, value)?), ..AskedModes::default() })
            }
            AllowedValues::Time(limit) => Ok(AssignedValue::Limit(limit, milliseconds(name, value)?)),
            AllowedValues::Durability => Ok(AssignedValue::Durability(durability(name, value)?)),
            AllowedValues::Messages => Messages::read(name, value).map(AssignedValue::Messages),
            AllowedValues::Planner(choice) => Ok(AssignedValue::Planner(choice, boolean(name, value)?)),
            AllowedValues::Cost(setting) => {
                setting.read(CostModel::default(), value).map(|model| AssignedValue::Costs(setting, model))
            }
            AllowedValues::Device(setting) => {
                setting.read(DeviceSettings::default(), value).map(|values| AssignedValue::Device(setting, values))
            }
            AllowedValues::Fixed => Err(SqlError::new("55P02", format!("parameter \"{name}\" cannot be changed"))),
            AllowedValues::Encoding => encoding(name, value).map(AssignedValue::Encoding),
            AllowedValues::Only(values)
                if is_default || values.iter().any(|known| known.eq_ignore_ascii_case(value)) =>
            {
                Ok(AssignedValue::Nothing)
            }
            AllowedValues::Only(_) => Err(SqlError::unsupported(format!("setting \"{name}\" to \"{value}\""))
                .hint(format!("It is always \"{default}\"."))),
        }
    }
}
