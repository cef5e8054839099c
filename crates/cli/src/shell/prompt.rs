//! The prompt: `lstore=# `, with `*` in a transaction, `!` in one that has failed, and in place of `=` what is still open.
//!
//! The variables `PROMPT1` and `PROMPT2` say how it looks, in psql's words: `%/` the database, `%R` what is open, `%x` the
//! transaction, `%#` the sign of a superuser, `%n` the user, `%l` the line, `%:name:` a variable,
//! `%033` a sign by its number, here the one that begins a colour.
use sql::TransactionStatus;

use super::Shell;
use super::reading::Reading;

impl Shell {
    /// The prompt for the next line.
    pub(crate) fn prompt(&self, reading: &Reading) -> String {
        let is_first = reading.buffer.is_empty();
        let form = self.variables.text(if is_first { "PROMPT1" } else { "PROMPT2" }).to_owned();
        let mut prompt = String::new();
        let mut rest = form.as_str();
        while let Some(at) = rest.find('%') {
            prompt.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let Some(sign) = rest.chars().next() else { break };
            rest = &rest[sign.len_utf8()..];
            if sign.is_digit(8) {
                let digits = rest.find(|sign: char| !sign.is_digit(8)).unwrap_or(rest.len()).min(2);
                let code = format!("{sign}{}", &rest[..digits]);
                prompt.extend(u8::from_str_radix(&code, 8).ok().map(char::from));
                rest = &rest[digits..];
                continue;
            }
            match sign {
                '/' | '~' => prompt.push_str(self.variables.text("DBNAME")),
                'n' => prompt.push_str("lstore"),
                'M' | 'm' => prompt.push_str("[local]"),
                'p' => prompt.push_str(&std::process::id().to_string()),
                'l' => prompt.push_str(&(reading.number + 1).to_string()),
                '#' => prompt.push('#'),
                'R' if !reading.is_active() => prompt.push('@'),
                'R' => prompt.push(if is_first { '=' } else { reading.buffer.open_sign() }),
                'x' => prompt.push_str(match self.session.transaction_status() {
                    TransactionStatus::Idle => "",
                    TransactionStatus::InBlock => "*",
                    TransactionStatus::Failed => "!",
                }),
                ':' => {
                    let (name, after) = rest.split_once(':').unwrap_or((rest, ""));
                    prompt.push_str(self.variables.text(name));
                    rest = after;
                }
                // What is between them is invisible, which the line editor finds out by itself.
                '[' | ']' => {}
                other => prompt.push(other),
            }
        }
        prompt.push_str(rest);
        prompt
    }
}
