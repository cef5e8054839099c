//! What `\pset` sets of a style, and how it is told.
use clap::ValueEnum;

use super::style::{Expanded, Format, LineStyle, Style};
use crate::shell::variables::as_boolean;

/// What `\pset` sets, in the order in which it tells them.
pub(crate) const OPTIONS: [&str; 13] = [
    "border",
    "columns",
    "csv_fieldsep",
    "expanded",
    "fieldsep",
    "footer",
    "format",
    "linestyle",
    "null",
    "pager",
    "recordsep",
    "title",
    "tuples_only",
];

/// Sets an option of a style. Without a value a choice of two becomes the other one.
///
/// # Errors
/// If there is no such option, or no such value of it.
pub(crate) fn set_option(style: &mut Style, option: &str, value: Option<&str>) -> Result<(), String> {
    let switched = |now: bool| match value {
        None => Ok(!now),
        Some(value) => as_boolean(value)
            .ok_or_else(|| format!("unrecognized value \"{value}\" for \"\\pset {option}\": Boolean expected")),
    };
    let number = |value: &str| value.parse::<usize>().map_err(|_| format!("\\pset {option}: \"{value}\" is no number"));
    match option {
        "border" => style.border = value.map_or(Ok(1), number)?.min(2),
        "columns" => style.screen = Some(value.map_or(Ok(0), number)?).filter(|columns| *columns > 0),
        "csv_fieldsep" => style.csv_separator = separator(value.unwrap_or(","))?,
        "expanded" | "x" | "vertical" => {
            style.expanded = match value {
                Some("auto") => Expanded::Auto,
                _ if switched(style.expanded == Expanded::On)? => Expanded::On,
                _ => Expanded::Off,
            };
        }
        "fieldsep" => style.field_separator = value.unwrap_or("|").to_owned(),
        "fieldsep_zero" => style.field_separator = "\0".to_owned(),
        "footer" => style.footer = switched(style.footer)?,
        "format" => style.format = format(value.unwrap_or("aligned"))?,
        "linestyle" => {
            style.lines = match value.unwrap_or("ascii") {
                "ascii" => LineStyle::Ascii,
                "unicode" => LineStyle::Unicode,
                _ => return Err("\\pset: allowed line styles are ascii, unicode".to_owned()),
            };
        }
        "null" => style.null = value.unwrap_or("").to_owned(),
        "pager" => {}
        "recordsep" => style.record_separator = value.unwrap_or("\n").to_owned(),
        "recordsep_zero" => style.record_separator = "\0".to_owned(),
        "title" | "C" => style.title = value.filter(|title| !title.is_empty()).map(str::to_owned),
        "tuples_only" | "t" => style.tuples_only = switched(style.tuples_only)?,
        _ => return Err(format!("\\pset: unknown option: {option}; it is one of {}", OPTIONS.join(", "))),
    }
    Ok(())
}

fn separator(value: &str) -> Result<char, String> {
    let mut signs = value.chars();
    match (signs.next(), signs.next()) {
        (Some('"' | '\n' | '\r'), _) => {
            Err("\\pset: csv_fieldsep cannot be a double quote, a newline, or a carriage return".to_owned())
        }
        (Some(sign), None) => Ok(sign),
        _ => Err("\\pset: csv_fieldsep must be a single one-byte character".to_owned()),
    }
}

fn format(name: &str) -> Result<Format, String> {
    let known = Format::value_variants();
    let begins = |format: &&Format| !name.is_empty() && format.name().starts_with(name);
    Format::from_str(name, true).ok().or_else(|| known.iter().find(begins).copied()).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|format| format.name()).collect();
        format!("\\pset: allowed formats are {}", names.join(", "))
    })
}

fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// An option's value as `\pset` lists it.
pub(crate) fn value_of(style: &Style, option: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''").replace('\n', "\\n"));
    match option {
        "border" => style.border.to_string(),
        "columns" => style.screen.unwrap_or(0).to_string(),
        "csv_fieldsep" => quoted(&style.csv_separator.to_string()),
        "expanded" => match style.expanded {
            Expanded::Auto => "auto".to_owned(),
            expanded => on(expanded == Expanded::On).to_owned(),
        },
        "fieldsep" => quoted(&style.field_separator),
        "footer" => on(style.footer).to_owned(),
        "format" => style.format.name().to_owned(),
        "linestyle" => if style.lines == LineStyle::Ascii { "ascii" } else { "unicode" }.to_owned(),
        "null" => quoted(&style.null),
        "recordsep" => quoted(&style.record_separator),
        "title" => style.title.clone().unwrap_or_default(),
        _ => on(style.tuples_only).to_owned(),
    }
}

/// What is told when an option has been set.
pub(crate) fn told(style: &Style, option: &str) -> String {
    match option {
        "border" => format!("Border style is {}.", style.border),
        "columns" => format!("Target width is {}.", style.screen.unwrap_or(0)),
        "csv_fieldsep" => format!("Field separator for CSV is \"{}\".", style.csv_separator),
        "expanded" | "x" | "vertical" => match style.expanded {
            Expanded::Auto => "Expanded display is used automatically.".to_owned(),
            expanded => format!("Expanded display is {}.", on(expanded == Expanded::On)),
        },
        "fieldsep" | "fieldsep_zero" if style.field_separator == "\0" => "Field separator is zero byte.".to_owned(),
        "fieldsep" => format!("Field separator is \"{}\".", style.field_separator),
        "footer" => format!("Default footer is {}.", on(style.footer)),
        "format" => format!("Output format is {}.", style.format.name()),
        "linestyle" => format!("Line style is {}.", value_of(style, "linestyle")),
        "null" => format!("Null display is \"{}\".", style.null),
        "recordsep" | "recordsep_zero" if style.record_separator == "\0" => "Record separator is zero byte.".to_owned(),
        "recordsep" if style.record_separator == "\n" => "Record separator is <newline>.".to_owned(),
        "recordsep" => format!("Record separator is \"{}\".", style.record_separator),
        "title" | "C" => match &style.title {
            Some(title) => format!("Title is \"{title}\"."),
            None => "Title is unset.".to_owned(),
        },
        _ => format!("Tuples only is {}.", on(style.tuples_only)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(option: &str, value: Option<&str>) -> Result<String, String> {
        let mut style = Style::default();
        set_option(&mut style, option, value)?;
        Ok(told(&style, option))
    }

    #[test]
    fn options_are_set_and_told_as_psql_does() {
        assert_eq!(set("null", Some("∅")).unwrap(), "Null display is \"∅\".");
        assert_eq!(set("border", Some("7")).unwrap(), "Border style is 2.");
        assert_eq!(set("x", None).unwrap(), "Expanded display is on.");
        assert_eq!(set("expanded", Some("auto")).unwrap(), "Expanded display is used automatically.");
        assert_eq!(set("format", Some("un")).unwrap(), "Output format is unaligned.");
        assert_eq!(set("tuples_only", Some("on")).unwrap(), "Tuples only is on.");
        assert_eq!(set("recordsep", None).unwrap(), "Record separator is <newline>.");
        assert_eq!(set("title", Some("a b")).unwrap(), "Title is \"a b\".");
    }

    #[test]
    fn what_is_unknown_is_named() {
        assert!(set("nosuch", None).unwrap_err().starts_with("\\pset: unknown option: nosuch; it is one of border,"));
        assert_eq!(
            set("format", Some("latex")).unwrap_err(),
            "\\pset: allowed formats are aligned, wrapped, unaligned, csv, json, markdown, html"
        );
        assert!(set("t", Some("maybe")).unwrap_err().contains("Boolean expected"));
        assert!(set("csv_fieldsep", Some("\"")).is_err() && set("border", Some("x")).is_err());
    }
}
