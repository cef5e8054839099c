//! Completion by Tab: backslash commands and their arguments, keywords, and the names of what is in the database.
//!
//! What may stand at the cursor is told by the word before it. Names are asked of the catalog by a session of the completion's own, which
//! sees what is committed; it looks them up by the default path.
use engine::Database;
use sql::{Outcome, Session, SessionOptions};

use crate::commands::help::{COMMANDS, statements};
use crate::output::options::OPTIONS;

/// The words that statements here are made of, between commas.
const KEYWORDS: &str = "\
    all,and,array,as,asc,avg,begin,between,bigint,boolean,by,bytea,case,cast,check,commit,conflict,constraint,copy,count,\
    create,cross,csv,current_date,date,decimal,default,delete,desc,distinct,do,\
    double precision,drop,else,end,except,exists,explain,extract,false,filter,for update,foreign key,format,from,full,group by,having,\
    header,if,ilike,in,inner,insert into,integer,intersect,interval,into,is,join,jsonb,key,lateral,left,like,limit,max,min,\
    natural,not,not null,nothing,null,numeric,offset,on,or,order by,outer,over,parquet,partition by,primary key,\
    real,references,returning,right,rollback,select,set,smallint,sum,table,text,then,timestamp,timestamptz,true,truncate,union,unique,\
    update,using,values,varchar,when,where,window,with";

/// The words after which the name of a table or a view stands.
const BEFORE_RELATION: [&str; 9] = ["from", "join", "into", "update", "table", "truncate", "copy", "analyze", "vacuum"];
/// The words after which a setting stands.
const BEFORE_SETTING: [&str; 3] = ["set", "show", "reset"];
/// The most names that are offered.
const NAMES_MAX: usize = 1000;

/// Completes what a user types.
pub(crate) struct Completion {
    session: Session,
}

impl Completion {
    /// A completion that knows what is in `db`.
    pub(crate) fn new(db: &Database) -> Completion {
        Completion { session: Session::new(db, SessionOptions::default()) }
    }

    /// Where the word before the cursor starts, and what it may become.
    pub(crate) fn candidates(&mut self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let before = &line[..cursor];
        if let Some(found) = self.of_command(before) {
            return found;
        }
        let start = word_start(before);
        let word = &before[start..];
        let words: Vec<String> = before[..start].split_whitespace().map(str::to_lowercase).collect();
        let previous = words.last().map_or("", String::as_str);
        if BEFORE_RELATION.contains(&previous) {
            let kinds = if previous == "table" { "'r'" } else { "'r','v','m'" };
            return (start, matching(self.relations(kinds), word));
        }
        if let Some((owner, _)) = word.rsplit_once('.') {
            let names = self.columns(owner).into_iter().map(|name| format!("{owner}.{name}")).collect();
            return (start, matching(names, word));
        }
        let of_kind = match (words.as_slice(), previous) {
            ([first], _) if ["create", "drop", "alter"].contains(&first.as_str()) => Some(self.kinds(first)),
            ([.., verb, _], "view") if verb != "create" => Some(self.relations("'v','m'")),
            ([.., verb, _], "index") if verb != "create" => Some(self.relations("'i'")),
            ([.., verb, _], "sequence") if verb != "create" => Some(self.relations("'S'")),
            ([.., verb, _], "schema") if verb != "create" => {
                Some(self.names("SELECT quote_ident(nspname) FROM pg_namespace"))
            }
            (_, previous) if BEFORE_SETTING.contains(&previous) => Some(self.names("SELECT name FROM pg_settings")),
            _ => None,
        };
        if let Some(names) = of_kind {
            return (start, matching(names, word));
        }
        if word.is_empty() {
            return (start, Vec::new());
        }
        let mut names = self.relations("'r','v','m'");
        names.extend(self.all_columns());
        names.extend(self.functions());
        let mut found = matching(KEYWORDS.split(',').map(str::to_owned).collect(), word);
        if word.chars().all(|char| !char.is_lowercase()) {
            found.iter_mut().for_each(|keyword| *keyword = keyword.to_uppercase());
        }
        found.extend(matching(names, word));
        found.sort();
        found.dedup();
        (start, found)
    }

    /// The completions of a backslash command and its argument; `None` where the line is no command.
    fn of_command(&mut self, before: &str) -> Option<(usize, Vec<String>)> {
        let command = before.rfind('\\').filter(|at| before[..*at].matches('\'').count().is_multiple_of(2))?;
        let Some((name, arguments)) = before[command..].split_once(' ') else {
            let names = COMMANDS.iter().flat_map(|(_, commands)| commands.iter().map(|(name, ..)| name));
            // What may follow a name stands in brackets.
            let names = names.map(|name| name.split('[').next().unwrap_or(name).to_owned()).collect();
            return Some((command, matching(names, &before[command..])));
        };
        let start = before.rfind(' ').map_or(0, |at| at + 1);
        let word = &before[start..];
        let fixed = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let choices = match name.trim_end_matches(['+', 'S']) {
            "\\h" | "\\help" => {
                let start = before.len() - arguments.len();
                let typed = arguments.to_uppercase();
                let names = statements().map(|(name, _)| name.to_owned()).filter(|name| name.starts_with(&typed));
                return Some((start, names.collect()));
            }
            "\\d" | "\\z" | "\\dp" => self.relations("'r','v','m','i','S'"),
            "\\dt" => self.relations("'r'"),
            "\\dv" | "\\sv" => self.relations("'v'"),
            "\\dm" => self.relations("'m'"),
            "\\di" => self.relations("'i'"),
            "\\ds" => self.relations("'S'"),
            "\\dn" => self.names("SELECT quote_ident(nspname) FROM pg_namespace"),
            "\\df" | "\\sf" => self.functions(),
            "\\copy" => self.relations("'r','v','m'"),
            "\\timing" | "\\t" => fixed(&["on", "off"]),
            "\\x" => fixed(&["on", "off", "auto"]),
            "\\format" => fixed(&["aligned", "wrapped", "unaligned", "csv", "json", "markdown", "html"]),
            "\\pset" => fixed(&OPTIONS),
            _ => Vec::new(),
        };
        Some((start, matching(choices, word)))
    }

    /// The kinds of objects that a statement makes, drops or changes.
    fn kinds(&self, verb: &str) -> Vec<String> {
        let verb = verb.to_uppercase();
        let kind = |(name, _): (&str, _)| name.strip_prefix(&verb).map(|kind| kind.trim().to_lowercase());
        statements().filter_map(kind).collect()
    }

    /// Relations of these kinds, with their schemas where they are not found without.
    fn relations(&mut self, kinds: &str) -> Vec<String> {
        self.names(&format!(
            "SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE quote_ident(n.nspname) || '.' END || quote_ident(c.relname) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ({kinds}) \
             AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT {NAMES_MAX}"
        ))
    }

    /// The columns of a relation.
    fn columns(&mut self, relation: &str) -> Vec<String> {
        self.names(&format!(
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > 0 ORDER BY attnum",
            relation.replace('\'', "''")
        ))
    }

    fn all_columns(&mut self) -> Vec<String> {
        self.names(&format!(
            "SELECT DISTINCT quote_ident(a.attname) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE a.attnum > 0 AND c.relkind IN ('r', 'v', 'm') \
             AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT {NAMES_MAX}"
        ))
    }

    fn functions(&mut self) -> Vec<String> {
        self.names(&format!(
            "SELECT DISTINCT quote_ident(p.proname) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
             WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT {NAMES_MAX}"
        ))
    }

    /// The one column of a query; nothing where it fails, as completion is no place for errors.
    fn names(&mut self, query: &str) -> Vec<String> {
        let Ok(Outcome::Rows(rows)) = self.session.execute(query) else { return Vec::new() };
        let mut names = Vec::new();
        for batch in rows.filter_map(Result::ok) {
            names.extend((0..batch.num_rows()).filter_map(|row| sql::text_value(batch.column(0), row)));
        }
        names
    }
}

fn matching(names: Vec<String>, typed: &str) -> Vec<String> {
    let begins = |name: &String| name.get(..typed.len()).is_some_and(|head| head.eq_ignore_ascii_case(typed));
    names.into_iter().filter(begins).collect()
}

/// Where the word before the end of a text starts.
fn word_start(before: &str) -> usize {
    let is_word = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '"');
    before.rfind(|char| !is_word(char)).map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion() -> Completion {
        let mut completion = Completion::new(&Database::in_memory());
        for statement in [
            "CREATE TABLE orders (o_key int PRIMARY KEY, o_sum int)",
            "CREATE TABLE \"Odd\" (key int, \"Sum\" int)",
            "CREATE VIEW old AS SELECT o_key FROM orders",
            "CREATE SCHEMA side",
            "CREATE TABLE side.orders_of_it (x int)",
        ] {
            completion.session.execute(statement).unwrap();
        }
        completion
    }

    fn offered(line: &str) -> Vec<String> {
        completion().candidates(line, line.len()).1
    }

    #[test]
    fn words_become_keywords_relations_and_columns() {
        assert_eq!(offered("sel"), ["select"]);
        assert_eq!(offered("SEL"), ["SELECT"]);
        assert_eq!(offered("select o_"), ["o_key", "o_sum"]);
        assert_eq!(offered("select * from o"), ["old", "orders"]);
        assert_eq!(offered("select * from side."), ["side.orders_of_it"]);
        assert_eq!(offered("select * from \"O"), ["\"Odd\""]);
        assert!(offered("select ").is_empty());
    }

    #[test]
    fn the_word_before_tells_what_stands_there() {
        assert_eq!(offered("create mat"), ["materialized view"]);
        assert_eq!(offered("drop view "), ["old"]);
        assert_eq!(offered("alter table or"), ["orders"]);
        assert_eq!(offered("set search_p"), ["search_path"]);
    }

    #[test]
    fn after_a_table_and_a_point_come_its_columns() {
        assert_eq!(offered("select orders."), ["orders.o_key", "orders.o_sum"]);
        assert_eq!(completion().candidates("select orders.o_k", 17), (7, vec!["orders.o_key".to_owned()]));
        assert!(offered("select nothing.").is_empty());
    }

    #[test]
    fn commands_and_their_arguments() {
        assert_eq!(offered("\\ti"), ["\\timing"]);
        assert_eq!(offered("\\format j"), ["json"]);
        assert_eq!(offered("\\d ord"), ["orders", "orders_pkey"]);
        assert_eq!(offered("\\dt+ side.o"), ["side.orders_of_it"]);
        assert_eq!(offered("\\h drop v"), ["DROP VIEW"]);
        assert_eq!(offered("select 1 \\gs"), ["\\gset"]);
    }
}
