//! The benchmark as a command: which subjects, how large, where the figures go. `gpu-bench` and `lstore bench gpu`
//! both are this.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::sync::Arc;

use super::report::{Line, Report};
use super::{Only, Size, groupings, joins, optimizer, roofs, searches};
use crate::{Device, GpuError};

/// The subjects that can be measured. The last one needs no device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The most that the device can do.
    Roofs,
    /// gpu-join's micro benchmarks.
    Micro,
    /// Joins.
    Join,
    /// Groupings and lookups.
    Group,
    /// Range queries and tree scans.
    Search,
    /// The parts that need no device: gpu-contention's optimizer, bitwise-distribution's splits.
    Contention,
}

impl Subject {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Roofs, Self::Micro, Self::Join, Self::Group, Self::Search, Self::Contention];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Roofs => "roofs",
            Self::Micro => "micro",
            Self::Join => "join",
            Self::Group => "group",
            Self::Search => "search",
            Self::Contention => "contention",
        }
    }

    /// The subject of a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.name() == name)
    }
}

/// How to measure and where the figures go.
#[derive(Debug, Clone)]
pub struct Options {
    /// How large the inputs are.
    pub size: Size,
    /// Of joins and groupings, only cases that begin so.
    pub only: Option<String>,
    /// One JSON object a line instead of a table.
    pub is_json: bool,
    /// A file for all figures, with the device, the driver, `date` and `commit`.
    pub file: Option<String>,
    /// The day, for the file.
    pub date: String,
    /// The commit of the sources, for the file.
    pub commit: String,
}

/// Why a measurement did not come to its end.
#[derive(Debug)]
pub enum CommandError {
    /// The device, or an answer that differs from the CPU's.
    Device(GpuError),
    /// The output does not take more.
    Output(io::Error),
    /// The file cannot be written.
    File(String),
    /// Times of the emulated device were asked for.
    Emulated,
}

impl fmt::Display for CommandError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => error.fmt(to),
            Self::Output(error) => error.fmt(to),
            Self::File(why) => to.write_str(why),
            Self::Emulated => to.write_str("the emulated device has no times; --small sees whether everything runs"),
        }
    }
}

impl From<GpuError> for CommandError {
    fn from(error: GpuError) -> Self {
        Self::Device(error)
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Measures the subjects, the roofs before whatever is held against them.
///
/// # Errors
/// - [`CommandError::Device`] if there is no device where one is needed, it fails, or an answer differs from the
///   CPU's.
/// - [`CommandError::Emulated`] if times of the emulated device are asked for.
/// - [`CommandError::Output`] if `out` does not take more; [`CommandError::File`] if the file cannot be written.
pub fn measure(subjects: &[Subject], options: &Options, out: &mut dyn Write) -> Result<(), CommandError> {
    let asks_for = |subject| subjects.contains(&subject);
    let needs_device = subjects.iter().any(|subject| *subject != Subject::Contention);
    let device = if needs_device { Some(open(options)?) } else { None };
    let only = Only(options.only.as_deref());
    let mut lines = Vec::new();
    let mut show = |figures: Vec<Line>| -> Result<(), CommandError> {
        for line in &figures {
            write_line(line, options.is_json, out)?;
        }
        lines.extend(figures);
        Ok(())
    };
    if let Some(device) = &device {
        let (found, figures) = roofs::measure(device, options.size)?;
        show(figures)?;
        if asks_for(Subject::Micro) {
            show(roofs::micro(device, options.size)?)?;
        }
        if asks_for(Subject::Join) {
            show(joins::measure(device, options.size, only, found)?)?;
        }
        if asks_for(Subject::Group) {
            show(groupings::measure(device, options.size, only, found)?)?;
        }
        if asks_for(Subject::Search) {
            show(searches::measure(device, options.size)?)?;
        }
    }
    if asks_for(Subject::Contention) {
        show(searches::splits())?;
        show(optimizer::measure(options.size))?;
    }
    let Some(file) = &options.file else { return Ok(()) };
    let properties = device.as_deref().map(Device::properties);
    let report = Report::new(properties, options.date.clone(), options.commit.clone(), &lines);
    let text = serde_json::to_string_pretty(&report).map_err(|error| CommandError::File(error.to_string()))?;
    fs::write(file, text + "\n").map_err(|error| CommandError::File(format!("{file}: {error}")))
}

fn open(options: &Options) -> Result<Arc<Device>, CommandError> {
    let device = Device::open(0)?;
    if device.properties().is_emulated && options.size == Size::Full {
        return Err(CommandError::Emulated);
    }
    Ok(device)
}

fn write_line(line: &Line, is_json: bool, out: &mut dyn Write) -> Result<(), CommandError> {
    if is_json {
        let text = serde_json::to_string(line).expect("a line of plain fields");
        writeln!(out, "{text}")?;
    } else {
        writeln!(out, "{line}")?;
    }
    // A device is borrowed by the minute: what is measured is shown at once.
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_device_is_measured_without_one_and_kept() {
        let file = std::env::temp_dir().join(format!("gpu-bench-{}.json", std::process::id()));
        let options = Options {
            size: Size::Small,
            only: None,
            is_json: true,
            file: Some(file.display().to_string()),
            date: "a day".to_owned(),
            commit: "a commit".to_owned(),
        };
        let mut out = Vec::new();
        measure(&[Subject::Contention], &options, &mut out).expect("all of it is measured");
        let text = String::from_utf8(out).expect("text");
        let kept = fs::read_to_string(&file).expect("the file is there");
        fs::remove_file(&file).expect("the file goes");
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("an object a line");
            assert!(line["value"].is_number() || line["metric"] == "rate", "{line}");
        }
        let kept: serde_json::Value = serde_json::from_str(&kept).expect("an object");
        assert_eq!((&kept["device"], &kept["date"]), (&"cpu".into(), &"a day".into()));
        assert_eq!(kept["lines"].as_array().map(Vec::len), Some(text.lines().count()));
    }
}
