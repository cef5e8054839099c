//! Completion by Tab: backslash commands, keywords, tables and columns.
use engine::Database;

use crate::commands::help::COMMANDS;

/// The words that statements here are made of, between commas.
const KEYWORDS: &str = "\
    all,and,as,asc,avg,begin,between,bigint,boolean,by,bytea,case,cast,commit,conflict,copy,count,\
    create,cross,csv,current_date,date,decimal,default,delete,desc,describe,distinct,do,\
    double precision,drop,else,end,except,exists,explain,extract,false,format,from,full,group by,having,\
    header,if,in,inner,insert into,integer,intersect,interval,into,is,join,key,left,like,limit,max,min,\
    not,not null,nothing,null,numeric,offset,on,or,order by,outer,over,parquet,partition by,primary key,\
    real,right,rollback,select,set,smallint,sum,table,text,then,timestamp,true,truncate,union,update,\
    values,varchar,where";

/// The words after which a table's name stands.
const BEFORE_TABLE: [&str; 7] = ["from", "join", "into", "update", "table", "truncate", "copy"];

/// Where the word before the cursor starts, and what it may become.
pub fn candidates(db: &Database, line: &str, cursor: usize) -> (usize, Vec<String>) {
    let before = &line[..cursor];
    if let Some(found) = of_command(db, before) {
        return found;
    }
    let start = before.rfind(|char: char| !is_word(char)).map_or(0, |at| at + char_len(before, at));
    let word = &before[start..];
    if let Some((table, column)) = word.rsplit_once('.') {
        let names = columns_of(db, table).into_iter().filter(|name| starts_with(name, column)).collect();
        return (start + table.len() + 1, names);
    }
    let previous = before[..start].split_whitespace().next_back().unwrap_or("").to_lowercase();
    let tables = table_names(db);
    if BEFORE_TABLE.contains(&previous.as_str()) {
        return (start, tables.iter().filter(|name| starts_with(name, word)).map(|name| quoted(name)).collect());
    }
    if word.is_empty() {
        return (start, Vec::new());
    }
    let upper = word.chars().all(|char| !char.is_lowercase());
    let keyword = |name: &str| if upper { name.to_uppercase() } else { name.to_owned() };
    let mut found: Vec<String> = KEYWORDS.split(',').filter(|name| starts_with(name, word)).map(keyword).collect();
    let columns = tables.iter().flat_map(|table| columns_of(db, table));
    let names = tables.iter().map(|name| quoted(name)).chain(columns);
    found.extend(names.filter(|name| starts_with(name, word)));
    found.sort();
    found.dedup();
    (start, found)
}

/// The completions of a backslash command and its argument; `None` where the line is no command.
fn of_command(db: &Database, before: &str) -> Option<(usize, Vec<String>)> {
    let indent = before.len() - before.trim_start().len();
    if !before[indent..].starts_with('\\') {
        return None;
    }
    let Some((name, _)) = before[indent..].split_once(' ') else {
        let typed = &before[indent..];
        let names = COMMANDS.iter().flat_map(|(_, commands)| commands.iter().map(|(name, ..)| name));
        // What may follow a name stands in brackets.
        let names = names.map(|name| name.split('[').next().unwrap_or(name)).filter(|name| name.starts_with(typed));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names.dedup();
        return Some((indent, names));
    };
    let start = before.rfind(' ').map_or(0, |at| at + 1);
    let choices = match name {
        "\\d" => table_names(db).iter().map(|name| quoted(name)).collect(),
        "\\timing" => vec!["on".to_owned(), "off".to_owned()],
        "\\format" => ["table", "csv", "json", "markdown"].map(str::to_owned).to_vec(),
        _ => Vec::new(),
    };
    Some((start, choices.into_iter().filter(|choice| starts_with(choice, &before[start..])).collect()))
}

/// The names of the tables that need no schema.
fn table_names(db: &Database) -> Vec<String> {
    db.table_names().into_iter().filter(|name| engine::shown_name(name) == *name).collect()
}

fn columns_of(db: &Database, table: &str) -> Vec<String> {
    let Ok(table) = db.table(&table.trim_matches('"').to_lowercase()) else { return Vec::new() };
    table.schema().columns().iter().map(|column| quoted(&column.name)).collect()
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '.' | '"')
}

fn char_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

fn starts_with(name: &str, typed: &str) -> bool {
    name.get(..typed.len()).is_some_and(|head| head.eq_ignore_ascii_case(typed))
}

/// The name as it must stand in SQL.
fn quoted(name: &str) -> String {
    let plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    if name.chars().all(plain) && !name.starts_with(|char: char| char.is_ascii_digit()) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use engine::{Column, DataType, Schema};

    use super::*;

    fn db() -> Database {
        let db = Database::in_memory();
        let columns = |names: [&str; 2]| names.map(|name| Column::new(name, DataType::BigInt)).to_vec();
        db.create_table("orders", Schema::new(columns(["o_key", "o_sum"]), &["o_key"]).unwrap()).unwrap();
        db.create_table("Odd", Schema::new(columns(["key", "Sum"]), &[]).unwrap()).unwrap();
        db
    }

    fn offered(line: &str) -> Vec<String> {
        candidates(&db(), line, line.len()).1
    }

    #[test]
    fn words_become_keywords_tables_and_columns() {
        assert_eq!(offered("sel"), ["select"]);
        assert_eq!(offered("SEL"), ["SELECT"]);
        assert_eq!(offered("select o_"), ["o_key", "o_sum"]);
        assert_eq!(offered("select * from "), ["\"Odd\"", "orders"]);
        assert_eq!(offered("select * from or"), ["orders"]);
        assert!(offered("select ").is_empty());
    }

    #[test]
    fn after_a_table_and_a_point_come_its_columns() {
        assert_eq!(offered("select orders."), ["o_key", "o_sum"]);
        assert_eq!(candidates(&db(), "select orders.o_k", 17), (14, vec!["o_key".to_owned()]));
        assert!(offered("select nothing.").is_empty());
    }

    #[test]
    fn commands_and_their_arguments() {
        assert_eq!(offered("\\ti"), ["\\timing"]);
        assert_eq!(offered("\\format j"), ["json"]);
        assert_eq!(offered("\\d ord"), ["orders"]);
    }
}
