//! The settings of the device beside the CPU: whether plans use it, and how much of its memory.
//!
//! They are a session's, as the planner's others. `gpu.enabled` is `on` (where the device is cheaper), `off`, or `force` (wherever it
//! can, whatever it costs: for tests and measurements). Without a device they mean nothing and may be set all the same.
use crate::error::{Result, SqlError};
use crate::state::memory_limit;
use crate::state::setting_values::{boolean, invalid};

const ENABLED: &str = "gpu.enabled";
const MEMORY_LIMIT: &str = "gpu.memory_limit";

/// When sections of plans go to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Enabled {
    Off,
    /// Where they cost less there.
    #[default]
    On,
    /// Wherever they can.
    Force,
}

/// The values of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceSettings {
    pub(crate) enabled: Enabled,
    /// Bytes of the device's memory that all statements together may use for this one to use more; `None`: all of it.
    pub(crate) memory_limit: Option<u64>,
}

/// A setting of the device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceSetting {
    Enabled,
    MemoryLimit,
}

impl DeviceSetting {
    const ALL: [DeviceSetting; 2] = [DeviceSetting::Enabled, DeviceSetting::MemoryLimit];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DeviceSetting::Enabled => ENABLED,
            DeviceSetting::MemoryLimit => MEMORY_LIMIT,
        }
    }

    /// That of a name.
    pub(crate) fn named(name: &str) -> Option<DeviceSetting> {
        DeviceSetting::ALL.into_iter().find(|setting| setting.name() == name)
    }

    /// Its value, as it can be set again.
    pub(crate) fn show(self, values: &DeviceSettings) -> String {
        match (self, values.enabled) {
            (DeviceSetting::MemoryLimit, _) => memory_limit::show(values.memory_limit),
            (DeviceSetting::Enabled, Enabled::Off) => "off".to_owned(),
            (DeviceSetting::Enabled, Enabled::On) => "on".to_owned(),
            (DeviceSetting::Enabled, Enabled::Force) => "force".to_owned(),
        }
    }

    /// The values with the one that others have for it.
    pub(crate) fn taken(self, values: DeviceSettings, from: DeviceSettings) -> DeviceSettings {
        match self {
            DeviceSetting::Enabled => DeviceSettings { enabled: from.enabled, ..values },
            DeviceSetting::MemoryLimit => DeviceSettings { memory_limit: from.memory_limit, ..values },
        }
    }

    /// The values with another one for it.
    pub(crate) fn read(self, values: DeviceSettings, value: &str) -> Result<DeviceSettings> {
        Ok(match self {
            DeviceSetting::Enabled => {
                let told = |error: SqlError| error.hint("Available values: on, off, force.");
                let enabled = match value.trim().eq_ignore_ascii_case("force") {
                    true => Enabled::Force,
                    false if boolean(self.name(), value).map_err(told)? => Enabled::On,
                    false => Enabled::Off,
                };
                DeviceSettings { enabled, ..values }
            }
            DeviceSetting::MemoryLimit => {
                let limit = memory_limit::parse(value).map_err(|hint| invalid(self.name(), value).hint(hint))?;
                DeviceSettings { memory_limit: limit, ..values }
            }
        })
    }
}

/// The names of both.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    DeviceSetting::ALL.into_iter().map(DeviceSetting::name)
}

/// The values that the settings of a statement say, by their names; the defaults where they say nothing.
pub(crate) fn of<'s>(value: impl Fn(&str) -> Option<&'s String>) -> DeviceSettings {
    DeviceSetting::ALL.into_iter().fold(DeviceSettings::default(), |values, setting| match value(setting.name()) {
        Some(text) => setting.read(values, text).unwrap_or(values),
        None => values,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_shown_can_be_set_again_and_what_is_no_value_is_refused() {
        for (enabled, limit) in [("off", "none"), ("on", "64MB"), ("force", "1kB")] {
            let texts = [(ENABLED, enabled), (MEMORY_LIMIT, limit)].map(|(name, text)| (name, text.to_owned()));
            let texts: BTreeMap<&str, String> = texts.into();
            let values = of(|name| texts.get(name));
            for setting in DeviceSetting::ALL {
                assert_eq!(setting.show(&values), texts[setting.name()]);
            }
        }
        assert_eq!(of(|_| None), DeviceSettings { enabled: Enabled::On, memory_limit: None });
        for (setting, value) in [(DeviceSetting::Enabled, "maybe"), (DeviceSetting::MemoryLimit, "2")] {
            assert_eq!(setting.read(DeviceSettings::default(), value).unwrap_err().sqlstate, "22023", "{value}");
        }
    }
}
