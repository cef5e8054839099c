//! The variables of the shell: `\set name value`, and `:name`, `:'name'`, `:"name"` and `:{?name}` in the text of statements.
use std::collections::BTreeMap;

/// The variables that say yes or no, which take no other value.
const BOOLEANS: [&str; 3] = ["AUTOCOMMIT", "ON_ERROR_STOP", "QUIET"];

/// Variables that take one of some words.
const CHOICES: [(&str, &[&str]); 4] = [
    ("ECHO", &["none", "errors", "queries", "all"]),
    ("ECHO_HIDDEN", &["off", "on", "noexec"]),
    ("ON_ERROR_ROLLBACK", &["off", "on", "interactive"]),
    ("VERBOSITY", &["default", "verbose", "terse", "sqlstate"]),
];

/// What the variables that mean something to the shell are when it starts.
const DEFAULTS: [(&str, &str); 11] = [
    ("AUTOCOMMIT", "on"),
    ("DBNAME", "lstore"),
    ("ECHO", "none"),
    ("ECHO_HIDDEN", "off"),
    ("ENCODING", "UTF8"),
    ("ON_ERROR_ROLLBACK", "off"),
    ("ON_ERROR_STOP", "off"),
    ("PROMPT1", "%/%R%x%# "),
    ("PROMPT2", "%/%R%x%# "),
    ("QUIET", "off"),
    ("VERBOSITY", "default"),
];

/// The variables by name.
#[derive(Clone, Debug)]
pub(crate) struct Variables(BTreeMap<String, String>);

impl Default for Variables {
    fn default() -> Variables {
        let told = [("VERSION", concat!("lstore ", env!("CARGO_PKG_VERSION")))];
        Variables(DEFAULTS.iter().chain(&told).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }
}

impl Variables {
    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of a variable that has one while the shell runs.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a variable says yes.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).and_then(as_boolean) == Some(true)
    }

    /// All of them by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// What is wrong with its name or its value.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("invalid variable name: \"{name}\""));
        }
        let unknown = |wanted: &str| format!("unrecognized value \"{value}\" for \"{name}\": {wanted}");
        let value = match (BOOLEANS.contains(&name), CHOICES.iter().find(|(known, _)| *known == name)) {
            (true, _) => match if value.is_empty() { Some(true) } else { as_boolean(value) } {
                Some(true) => "on",
                Some(false) => "off",
                None => return Err(unknown("Boolean expected")),
            },
            (false, Some((_, choices))) => match chosen(choices, value) {
                Some(choice) => choice,
                None => return Err(unknown(&format!("one of {} expected", choices.join(", ")))),
            },
            (false, None) => value,
        };
        self.0.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// Takes a variable away; one that means something to the shell says no, or what it says at first.
    pub(crate) fn unset(&mut self, name: &str) {
        match DEFAULTS.iter().find(|(known, _)| *known == name) {
            Some((_, _)) if BOOLEANS.contains(&name) && name != "AUTOCOMMIT" => {
                self.0.insert(name.to_owned(), "off".to_owned());
            }
            Some((_, default)) => {
                self.0.insert(name.to_owned(), (*default).to_owned());
            }
            None => {
                self.0.remove(name);
            }
        }
    }

    /// What the text that begins with a colon becomes: how many bytes of it are a reference to a variable, and what stands in their
    /// place. `None` where it refers to none that there is.
    pub(crate) fn substitute(&self, text: &str) -> Option<(usize, String)> {
        let rest = text.strip_prefix(':')?;
        if let Some(rest) = rest.strip_prefix("{?") {
            let name = leading_name(rest);
            let is_whole = !name.is_empty() && rest[name.len()..].starts_with('}');
            let told = if self.get(name).is_some() { "TRUE" } else { "FALSE" };
            return is_whole.then(|| (name.len() + 4, told.to_owned()));
        }
        let quote = rest.chars().next().filter(|char| matches!(char, '\'' | '"'));
        let Some(quote) = quote else {
            let name = leading_name(rest);
            return self.get(name).map(|value| (name.len() + 1, value.to_owned()));
        };
        let name = leading_name(&rest[1..]);
        if !rest[1 + name.len()..].starts_with(quote) {
            return None;
        }
        let value = self.get(name)?;
        let spelled = if quote == '\'' { literal(value) } else { format!("\"{}\"", value.replace('"', "\"\"")) };
        Some((name.len() + 3, spelled))
    }
}

/// A text as a literal of SQL.
pub(crate) fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if doubled.contains('\\') { format!(" E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

/// What a word says as a yes or no.
pub(crate) fn as_boolean(word: &str) -> Option<bool> {
    let word = word.to_ascii_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || word == "on" || word == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        Some(false)
    } else {
        None
    }
}

fn chosen<'a>(choices: &[&'a str], value: &str) -> Option<&'a str> {
    let exact = choices.iter().find(|choice| choice.eq_ignore_ascii_case(value));
    let spoken = || match (choices.contains(&"on"), as_boolean(value)?) {
        (true, true) => Some("on"),
        (true, false) => Some("off"),
        (false, _) => None,
    };
    exact.copied().or_else(spoken)
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || !char.is_ascii()
}

fn leading_name(text: &str) -> &str {
    &text[..text.find(|char| !is_name(char)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_become_text_literals_and_names() {
        let mut variables = Variables::default();
        variables.set("a", "it's \"x\"").unwrap();
        variables.set("b", "c:\\d").unwrap();
        let become_ = |text| variables.substitute(text);
        assert_eq!(become_(":a)"), Some((2, "it's \"x\"".to_owned())));
        assert_eq!(become_(":'a' "), Some((4, "'it''s \"x\"'".to_owned())));
        assert_eq!(become_(":\"a\""), Some((4, "\"it's \"\"x\"\"\"".to_owned())));
        assert_eq!(become_(":'b'"), Some((4, " E'c:\\\\d'".to_owned())));
        assert_eq!((become_(":{?a}").unwrap().1, become_(":{?z}").unwrap().1), ("TRUE".to_owned(), "FALSE".to_owned()));
        assert!([":z", ":'a", ":", ":5]", ":{?a"].iter().all(|text| become_(text).is_none()));
    }

    #[test]
    fn those_that_mean_something_take_what_they_know() {
        let mut variables = Variables::default();
        variables.set("ON_ERROR_STOP", "1").unwrap();
        assert!(variables.is_on("ON_ERROR_STOP"));
        variables.unset("ON_ERROR_STOP");
        assert_eq!(variables.get("ON_ERROR_STOP"), Some("off"));
        let error = variables.set("QUIET", "maybe").unwrap_err();
        assert_eq!(error, "unrecognized value \"maybe\" for \"QUIET\": Boolean expected");
        assert!(variables.set("ECHO", "x").unwrap_err().ends_with("one of none, errors, queries, all expected"));
        assert!(variables.set("a b", "x").unwrap_err().starts_with("invalid variable name"));
    }
}
