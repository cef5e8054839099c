//! `\?` and `\h`: the commands of the shell, and the statements of SQL.
use crate::shell::{Failure, Shell};

/// A command: its name, its arguments, what it does.
type Command = (&'static str, &'static str, &'static str);

/// The commands by subject.
pub(crate) const COMMANDS: [(&str, &[Command]); 7] = [
    (
        "General",
        &[
            ("\\bind", "[VALUE]...", "give the next statement values for its $1, $2, ..."),
            ("\\crosstabview", "[COLUMNS]", "send the statement and turn its rows into a table"),
            ("\\errverbose", "", "show the newest error with all that is known of it"),
            ("\\g", "[(OPTIONS)] [FILE]", "send the statement; rows to FILE or |PROGRAM"),
            ("\\gdesc", "", "describe the columns of the statement, and send it not"),
            ("\\gexec", "", "send the statement, then run each value of its rows"),
            ("\\gset", "[PREFIX]", "send the statement and make its row variables"),
            ("\\gx", "[(OPTIONS)] [FILE]", "as \\g, with a line for each column"),
            ("\\h", "[STATEMENT]", "the syntax of a statement"),
            ("\\q", "", "leave (so does Ctrl-D)"),
            ("\\timing", "[on|off]", "tell how long each statement takes"),
            ("\\watch", "[SECONDS]", "send the statement again and again"),
            ("\\?", "", "this list"),
        ],
    ),
    (
        "What has been typed",
        &[
            ("\\e", "[FILE]", "edit it, or FILE, with $EDITOR"),
            ("\\ef", "[FUNCTION]", "edit the statement that makes a function"),
            ("\\ev", "[VIEW]", "edit the statement that makes a view"),
            ("\\p", "", "show it"),
            ("\\r", "", "forget it"),
            ("\\s", "[FILE]", "show what has been typed before, or write it to FILE"),
            ("\\w", "FILE", "write it to FILE or |PROGRAM"),
        ],
    ),
    (
        "Files and programs",
        &[
            ("\\copy", "...", "as SQL's COPY; FROM and TO name a file, stdin, stdout or program 'cmd'"),
            ("\\echo", "[-n] [TEXT]", "write a line"),
            ("\\i", "FILE", "run a script"),
            ("\\ir", "FILE", "run a script beside the one that runs"),
            ("\\o", "[FILE]", "write rows to FILE or |PROGRAM, or to the screen again"),
            ("\\qecho", "[-n] [TEXT]", "write a line where rows go"),
            ("\\warn", "[-n] [TEXT]", "write a line where errors go"),
            ("\\cd", "[DIR]", "work in another directory"),
            ("\\!", "[COMMAND]", "run a command of the system"),
        ],
    ),
    (
        "Branches",
        &[
            ("\\if", "EXPRESSION", "what follows runs if it says yes"),
            ("\\elif", "EXPRESSION", "or else if this does"),
            ("\\else", "", "or else"),
            ("\\endif", "", "end of the branches"),
        ],
    ),
    (
        "What there is (S: of the system, too; +: more of it)",
        &[
            ("\\d[S+]", "", "list tables, views and sequences"),
            ("\\d[S+]", "NAME", "describe a table, view, sequence or index"),
            ("\\da[S]", "[PATTERN]", "aggregates"),
            ("\\dA[+]", "[PATTERN]", "access methods"),
            ("\\db", "[PATTERN]", "tablespaces"),
            ("\\dconfig[+]", "[PATTERN]", "settings"),
            ("\\dd[S]", "[PATTERN]", "comments on constraints"),
            ("\\dD[S+]", "[PATTERN]", "domains"),
            ("\\df[anw][S+]", "[PATTERN]", "functions"),
            ("\\di[S+]", "[PATTERN]", "indexes"),
            ("\\dL[S]", "[PATTERN]", "languages"),
            ("\\dm[S+]", "[PATTERN]", "materialized views"),
            ("\\dn[S+]", "[PATTERN]", "schemas"),
            ("\\dO[S+]", "[PATTERN]", "collations"),
            ("\\dp[S]", "[PATTERN]", "privileges"),
            ("\\drds", "[ROLE]", "settings of the database"),
            ("\\ds[S+]", "[PATTERN]", "sequences"),
            ("\\dt[S+]", "[PATTERN]", "tables"),
            ("\\dT[S+]", "[PATTERN]", "types"),
            ("\\du[S+]", "[PATTERN]", "roles"),
            ("\\dv[S+]", "[PATTERN]", "views"),
            ("\\dx", "[PATTERN]", "extensions"),
            ("\\l[+]", "[PATTERN]", "databases"),
            ("\\sf[+]", "FUNCTION", "the statement that makes a function"),
            ("\\sv[+]", "VIEW", "the statement that makes a view"),
        ],
    ),
    (
        "How rows look",
        &[
            ("\\a", "", "aligned or not"),
            ("\\C", "[TITLE]", "a title"),
            ("\\f", "[TEXT]", "what stands between unaligned values"),
            ("\\format", "[FORMAT]", "aligned, wrapped, unaligned, csv, json, markdown or html"),
            ("\\H", "", "as HTML or not"),
            ("\\pset", "[NAME [VALUE]]", "border, expanded, fieldsep, format, linestyle, null, title and others"),
            ("\\t", "[on|off]", "rows only"),
            ("\\x", "[on|off|auto]", "a line for each column"),
        ],
    ),
    (
        "Variables, and where the shell is",
        &[
            ("\\conninfo", "", "which database this is"),
            ("\\encoding", "", "the encoding of what is read and written"),
            ("\\getenv", "NAME ENV", "make a variable of one of the environment"),
            ("\\prompt", "[TEXT] NAME", "ask the user for the value of a variable"),
            ("\\set", "[NAME [VALUE]]", "give a variable a value; ON_ERROR_STOP, AUTOCOMMIT and others mean something"),
            ("\\unset", "NAME", "take a variable away"),
        ],
    ),
];

/// The statements with their syntax: a line with the name, then lines that begin with blanks.
const STATEMENTS: &str = include_str!("statements.txt");

impl Shell {
    /// Lists the commands.
    pub(super) fn help(&mut self) -> Result<(), Failure> {
        for (subject, commands) in COMMANDS {
            writeln!(self.out(), "{subject}")?;
            for (name, arguments, meaning) in commands {
                let usage = format!("{name} {arguments}");
                writeln!(self.out(), "  {usage:<24} {meaning}")?;
            }
            writeln!(self.out())?;
        }
        let end = "Everything else is SQL and ends with a semicolon. Tab completes; Ctrl-C clears what has been typed, or stops what runs.";
        Ok(writeln!(self.out(), "{end}")?)
    }

    /// What `help` as the first word tells.
    pub(crate) fn help_begin(&mut self) -> Result<(), Failure> {
        let lines = "You are using lstore, a database that speaks PostgreSQL's SQL.\n\
                     Type:  \\h for help with SQL statements\n       \\? for help with the commands of the shell\n       \
                     \\g or end with a semicolon to run a statement\n       \\q to leave\n";
        Ok(self.out().write_all(lines.as_bytes())?)
    }

    /// Shows the syntax of the statements that a text names, or which there are.
    pub(super) fn help_on(&mut self, text: &str) -> Result<(), Failure> {
        let wanted = text.trim_end_matches(';').split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
        if wanted.is_empty() {
            let names: Vec<&str> = statements().map(|(name, _)| name).collect();
            writeln!(self.out(), "Available help:")?;
            for names in names.chunks(3) {
                let line: String = names.iter().map(|name| format!("  {name:<30}")).collect();
                writeln!(self.out(), "{}", line.trim_end())?;
            }
            return Ok(());
        }
        let exact = |name: &str| name == wanted || wanted == "*";
        let begins = |name: &str| name.starts_with(&wanted);
        let has_exact = statements().any(|(name, _)| exact(name));
        let found = statements().filter(|(name, _)| if has_exact { exact(name) } else { begins(name) });
        let shown: Vec<String> =
            found.map(|(name, syntax)| format!("Command:     {name}\nSyntax:\n{syntax}\n")).collect();
        if shown.is_empty() {
            let message =
                format!("No help available for \"{text}\".\nTry \\h with no arguments to see available help.\n");
            return Ok(self.out().write_all(message.as_bytes())?);
        }
        Ok(self.out().write_all(shown.concat().as_bytes())?)
    }
}

/// The statements: name and syntax.
pub(crate) fn statements() -> impl Iterator<Item = (&'static str, &'static str)> {
    STATEMENTS
        .trim_end()
        .split("\n\n")
        .filter_map(|entry| entry.split_once('\n'))
        .map(|(name, syntax)| (name.trim(), syntax))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_in_the_order_of_their_names_and_have_a_syntax() {
        let names: Vec<&str> = statements().map(|(name, _)| name).collect();
        assert!(names.is_sorted() && names.len() > 50, "{names:?}");
        for (name, syntax) in statements() {
            assert!(name.chars().all(|char| char.is_ascii_uppercase() || char == ' '), "{name}");
            let first = syntax.lines().next().unwrap();
            assert!(name.split(' ').all(|word| first.contains(word)), "{name}");
        }
    }
}
