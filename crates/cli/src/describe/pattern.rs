//! The patterns of `\d` and its kin: `foo*`, `schema.name`, `"Quoted"`.
//!
//! A pattern becomes regular expressions as psql makes them: letters are folded to lower case outside of quotes, `*` stands for any
//! signs and `?` for one, a dot parts the schema from the name, and within quotes every sign stands for itself.

/// A pattern as conditions of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    schema: Option<String>,
    name: String,
}

/// The columns that a pattern is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns<'a> {
    /// The schema's name; without one the pattern has none.
    pub(super) schema: Option<&'a str>,
    /// The name.
    pub(super) name: &'a str,
    /// Another text that the name may be.
    pub(super) other: Option<&'a str>,
    /// Whether the object is found without its schema.
    pub(super) is_visible: Option<&'a str>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it has too many dots.
    pub(super) fn read(pattern: &str) -> Result<Pattern, String> {
        let mut parts = vec![String::new()];
        let mut is_quoted = false;
        let mut signs = pattern.chars().peekable();
        while let Some(sign) = signs.next() {
            let part = parts.len() - 1;
            let part = &mut parts[part];
            match sign {
                '"' if is_quoted && signs.peek() == Some(&'"') => {
                    signs.next();
                    part.push('"');
                }
                '"' => is_quoted = !is_quoted,
                '*' if !is_quoted => part.push_str(".*"),
                '?' if !is_quoted => part.push('.'),
                '.' if !is_quoted => parts.push(String::new()),
                // A dollar is a sign of names, and of no use at the end of an expression that has one.
                '$' => part.push_str("\\$"),
                sign if is_quoted && "|*+?()[]{}.^\\".contains(sign) => part.extend(['\\', sign]),
                sign if is_quoted => part.push(sign),
                sign => part.extend(sign.to_lowercase()),
            }
        }
        match <[String; 2]>::try_from(parts) {
            Ok([schema, name]) => Ok(Pattern { schema: Some(schema), name }),
            Err(mut parts) => match (parts.pop(), parts.is_empty()) {
                (Some(name), true) => Ok(Pattern { schema: None, name }),
                _ => Err(format!("improper qualified name (too many dotted names): {pattern}")),
            },
        }
    }

    /// The conditions, each beginning with `AND`.
    pub(super) fn conditions(&self, columns: Columns<'_>) -> String {
        let mut conditions = String::new();
        let matches = |column: &str, part: &str| {
            let part = part.replace('\'', "''");
            let part = if part.contains('\\') {
                format!("E'^({})$'", part.replace('\\', "\\\\"))
            } else {
                format!("'^({part})$'")
            };
            format!("{column} OPERATOR(pg_catalog.~) {part} COLLATE pg_catalog.default")
        };
        if self.name != ".*" {
            let name = matches(columns.name, &self.name);
            conditions.push_str(&match columns.other {
                Some(other) => format!("\n  AND ({name}\n        OR {})", matches(other, &self.name)),
                None => format!("\n  AND {name}"),
            });
        }
        match (&self.schema, columns.schema) {
            (Some(schema), Some(column)) if schema != ".*" => {
                conditions.push_str(&format!("\n  AND {}", matches(column, schema)));
            }
            (Some(_), _) => {}
            (None, _) => conditions.push_str(&visible(columns)),
        }
        conditions
    }
}

/// The condition that an object is found without its schema.
pub(super) fn visible(columns: Columns<'_>) -> String {
    columns.is_visible.map_or_else(String::new, |is_visible| format!("\n  AND {is_visible}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str) -> (Option<String>, String) {
        let Pattern { schema, name } = Pattern::read(pattern).unwrap();
        (schema, name)
    }

    #[test]
    fn patterns_become_expressions() {
        assert_eq!(read("Foo*"), (None, "foo.*".to_owned()));
        assert_eq!(read("s?.\"A.b*\""), (Some("s.".to_owned()), "A\\.b\\*".to_owned()));
        assert_eq!(read("\"a\"\"b\"$"), (None, "a\"b\\$".to_owned()));
        assert_eq!(read("a(b|c)"), (None, "a(b|c)".to_owned()));
        assert!(Pattern::read("a.b.c").unwrap_err().contains("too many dotted names"));
    }

    #[test]
    fn a_schema_replaces_the_path() {
        let columns = Columns { schema: Some("n"), name: "c", other: None, is_visible: Some("v(c)") };
        let conditions = |pattern| Pattern::read(pattern).unwrap().conditions(columns);
        assert_eq!(conditions("*"), "\n  AND v(c)");
        assert_eq!(conditions("*.*"), "");
        let expected = "\n  AND c OPERATOR(pg_catalog.~) '^(it''s)$' COLLATE pg_catalog.default\
                        \n  AND n OPERATOR(pg_catalog.~) '^(s)$' COLLATE pg_catalog.default";
        assert_eq!(conditions("s.it's"), expected);
    }
}
