//! Functions and views in a dump, each behind what it needs.
//!
//! A view needs the views and functions that its query names, a function in one of the standard's forms what its body does, and any
//! function the view whose rows it returns. The body of a function that is a text is not looked at as it is made, so that it may come
//! before what it names; it does so only where there is no other way.
use std::io::Write;

use super::catalog::{Catalog, literal, spelled, texts};
use super::error::Result;
use super::objects::{self, View};

/// A function or a view that is to be written.
struct Item {
    name: String,
    /// What it needs is named here: of a function without its own name, and without its body if that is a text.
    needed: String,
    /// What it would better have: the body of such a function.
    wanted: String,
    /// The statement that makes it.
    statement: String,
}

impl Item {
    fn of_view(view: View) -> Item {
        let (statement, name) = (view.statement(), view.relation.name.clone());
        Item { name, needed: view.query, wanted: String::new(), statement }
    }

    /// Whether another one has to come before it.
    fn needs(&self, other: &Item) -> bool {
        objects::names(&self.needed, &other.name)
    }

    /// Whether another one should.
    fn wants(&self, other: &Item) -> bool {
        self.needs(other) || objects::names(&self.wanted, &other.name)
    }
}

/// All functions, as they are sorted by their names.
fn functions(catalog: &mut Catalog) -> Result<Vec<Item>> {
    let rows = catalog.rows(
        "SELECT p.proname, p.prosrc, pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
         WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY n.nspname, p.proname, p.oid",
    )?;
    let item = |row| -> Result<Item> {
        let [name, body, definition] = texts::<3>(row)?;
        let definition = definition.trim_end().replacen("CREATE OR REPLACE FUNCTION", "CREATE FUNCTION", 1);
        // One of the standard's forms is no text there.
        let signature = definition.find('(').map_or("", |start| &definition[start..]);
        let needed = if body.is_empty() { signature.to_owned() } else { signature.replacen(&body, "", 1) };
        Ok(Item { name, needed, wanted: body, statement: format!("{definition};\n") })
    };
    rows.into_iter().map(item).collect()
}

/// Writes functions and views.
pub(super) fn write(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let mut items = functions(catalog)?;
    items.extend(objects::views(catalog)?.into_iter().map(Item::of_view));
    for item in ordered(items) {
        writeln!(out, "{}", item.statement)?;
    }
    Ok(())
}

/// The items, each behind what it needs. Words may be taken for names: what seems to wait for itself is written in the order given.
fn ordered(mut waiting: Vec<Item>) -> Vec<Item> {
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_free = |at: usize, waits: fn(&Item, &Item) -> bool| {
            !waiting.iter().enumerate().any(|(other, of)| other != at && waits(&waiting[at], of))
        };
        let all = || 0..waiting.len();
        let next = all().find(|at| is_free(*at, Item::wants)).or_else(|| all().find(|at| is_free(*at, Item::needs)));
        ordered.push(waiting.remove(next.unwrap_or(0)));
    }
    ordered
}

/// Writes what is said of functions.
pub(super) fn write_comments(catalog: &mut Catalog, out: &mut dyn Write) -> Result<()> {
    let rows = catalog.rows(
        "SELECT n.nspname, p.proname, pg_get_function_identity_arguments(p.oid), d.description FROM pg_description d \
         JOIN pg_proc p ON p.oid = d.objoid AND d.classoid = 1255 JOIN pg_namespace n ON n.oid = p.pronamespace \
         ORDER BY n.nspname, p.proname, p.oid",
    )?;
    for row in rows {
        let [schema, name, arguments, text] = texts(row)?;
        let name = spelled(&schema, &name);
        writeln!(out, "COMMENT ON FUNCTION {name}({arguments}) IS {};\n", literal(&text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Item, ordered};

    fn item(statement: &str, needed: &str, wanted: &str) -> Item {
        let (name, text) = (statement.trim_end_matches(char::is_numeric), str::to_owned);
        Item { name: text(name), needed: text(needed), wanted: text(wanted), statement: text(statement) }
    }

    fn order(items: Vec<Item>) -> String {
        ordered(items).into_iter().map(|item| item.statement).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_body_calls_comes_before_it() {
        let standard = item("a", "() RETURN b() + c()", "");
        assert_eq!(order(vec![standard, item("b", "() AS ''", "SELECT c()"), item("c", "() RETURN 1", "")]), "c b a");
    }

    #[test]
    fn views_and_functions_that_need_each_other_take_turns() {
        let of_view = item("a", "() RETURNS SETOF v AS ''", "SELECT * FROM v");
        assert_eq!(order(vec![of_view, item("f", "(int) RETURN 1", ""), item("v", "SELECT f(1)", "")]), "f v a");
    }

    #[test]
    fn a_text_that_names_its_caller_comes_first() {
        assert_eq!(order(vec![item("v", "SELECT f()", ""), item("f", "() AS ''", "SELECT * FROM v")]), "f v");
    }

    #[test]
    fn functions_of_one_name_may_call_each_other() {
        assert_eq!(order(vec![item("f1", "(int) RETURN f('a')", ""), item("f2", "(text) RETURN 1", "")]), "f2 f1");
    }
}
