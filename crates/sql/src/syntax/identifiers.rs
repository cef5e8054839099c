//! Identifiers as the catalog knows them, and names that only the planner sees.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

/// The name of the function that says of a text that it is ordered by its bytes, which only we can spell.
pub(crate) const BY_BYTES: &str = "\0by_bytes";

/// The name of the function that gives the text back of which a key by the order of a language was made.
pub(crate) const TEXT_OF_KEY: &str = "\0text_of_key";

/// An identifier as the catalog knows it.
pub(crate) fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// What a table or a function is called without its schema, as the catalog knows it.
pub(crate) fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(ObjectNamePart::as_ident).map(fold)
}

/// Words that are no names without quotes.
const KEYWORDS: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean \
    both case cast char character check coalesce collate collation column concurrently constraint \
    create cross current_catalog current_date current_role current_schema current_time \
    current_timestamp current_user dec decimal default deferrable desc distinct do else end except \
    exists extract false fetch float for foreign freeze from full grant greatest group grouping having \
    ilike in initially inner inout int integer intersect interval into is isnull join lateral leading \
    least left like limit localtime localtimestamp national natural nchar none normalize not notnull \
    null nullif numeric offset on only or order out outer overlaps overlay placing position precision \
    primary real references returning right row select session_user setof similar smallint some \
    substring symmetric table tablesample then time timestamp to trailing treat trim true union unique \
    user using values varchar variadic verbose when where window with xmlattributes xmlconcat \
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable \
";

/// A name as it has to be written.
pub fn quoted(name: &str) -> String {
    let is_plain =
        |(at, byte): (usize, u8)| byte.is_ascii_lowercase() || byte == b'_' || (at > 0 && byte.is_ascii_digit());
    let is_word = || KEYWORDS.split_ascii_whitespace().any(|word| word == name);
    match !name.is_empty() && name.bytes().enumerate().all(is_plain) && !is_word() {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A name that no statement can spell and that is shown as another.
pub(crate) fn hidden(mark: impl std::fmt::Display, shown: &str) -> Ident {
    Ident::with_quote('"', format!("\0{mark}\0{shown}"))
}

/// The name that a user sees for a column: of a hidden name what stands after its mark.
pub(crate) fn shown(name: &str) -> &str {
    match name.strip_prefix('\0').and_then(|rest| rest.split_once('\0')) {
        Some((_, shown)) => shown,
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_quoted_where_they_have_to_be() {
        assert_eq!(["a_1", "1a", "A\"b", ""].map(quoted), ["a_1", "\"1a\"", "\"A\"\"b\"", "\"\""]);
    }
}
