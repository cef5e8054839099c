//! The commands about how rows look: `\pset` and what is short for it.
use super::arguments::Call;
use crate::output::options::{OPTIONS, set_option, told, value_of};
use crate::output::style::Format;
use crate::shell::{Failure, Shell};

impl Shell {
    /// Runs one of these commands.
    pub(super) fn run_format_command(&mut self, call: &Call) -> Result<(), Failure> {
        let style = &self.settings.style;
        let toggled = |format| if style.format == format { "aligned" } else { format.name() };
        let (option, value) = match call.name.as_str() {
            "a" => ("format", Some(toggled(Format::Unaligned))),
            "H" | "html" => ("format", Some(toggled(Format::Html))),
            "C" => ("title", Some(call.word(0))),
            "f" => ("fieldsep", call.words.first().map(String::as_str)),
            "t" => ("tuples_only", call.words.first().map(String::as_str)),
            "x" => ("expanded", call.words.first().map(String::as_str)),
            "format" if call.words.is_empty() => {
                let told = told(style, "format");
                return Ok(writeln_to(self, &told)?);
            }
            "format" => ("format", Some(call.word(0))),
            _ if call.words.is_empty() => return self.tell_options(),
            _ => (call.word(0), call.words.get(1).map(String::as_str)),
        };
        if call.name == "f" && value.is_none() {
            let told = told(style, "fieldsep");
            return Ok(writeln_to(self, &told)?);
        }
        let mut style = self.settings.style.clone();
        set_option(&mut style, option, value)?;
        self.settings.style = style;
        if option == "pager" {
            self.has_pager = value.is_none_or(|value| !matches!(value, "off" | "0"));
        }
        // As in psql nothing is said where these are told what to be; nor of what the rows of a script show.
        let is_plain = matches!(option, "footer" | "tuples_only") && value.is_some();
        if !is_plain && (self.settings.interactive || call.name != "format") {
            let told = match option {
                "pager" => format!("Pager usage is {}.", if self.has_pager { "on" } else { "off" }),
                option => told(&self.settings.style, option),
            };
            self.say(&told)?;
        }
        Ok(())
    }

    fn tell_options(&mut self) -> Result<(), Failure> {
        for option in OPTIONS {
            let value = match option {
                "pager" => if self.has_pager { "on" } else { "off" }.to_owned(),
                option => value_of(&self.settings.style, option),
            };
            writeln_to(self, &format!("{option:<24} {value}"))?;
        }
        Ok(())
    }
}

fn writeln_to(shell: &mut Shell, line: &str) -> std::io::Result<()> {
    writeln!(shell.out(), "{line}")
}
