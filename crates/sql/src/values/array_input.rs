//! Arrays as texts: `{1,"a b",NULL}`.

/// The items of an array of one dimension as PostgreSQL writes it: separated by commas, in double quotes where that is
/// needed, with a backslash before what would else have a meaning.
pub(crate) fn items(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    let (mut items, mut item, mut is_quoted, mut within) = (Vec::new(), String::new(), false, false);
    let mut signs = inner.chars();
    let end = |item: &mut String, is_quoted: bool| {
        let item = std::mem::take(item);
        match is_quoted {
            true => Some(Some(item)),
            false if item.trim().is_empty() => None,
            false if item.trim().eq_ignore_ascii_case("null") => Some(None),
            false => Some(Some(item.trim().to_owned())),
        }
    };
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => item.push(signs.next()?),
            '"' => {
                // Nothing but blanks stands beside quotes.
                if !within && !item.trim().is_empty() {
                    return None;
                }
                if !within {
                    item.clear();
                }
                (within, is_quoted) = (!within, true);
            }
            ',' if !within => {
                items.push(end(&mut item, is_quoted)?);
                is_quoted = false;
            }
            '{' | '}' if !within => return None,
            blank if is_quoted && !within && blank.is_whitespace() => {}
            _ if is_quoted && !within => return None,
            other => item.push(other),
        }
    }
    if within {
        return None;
    }
    items.push(end(&mut item, is_quoted)?);
    Some(items)
}

/// Whether the items of an array are arrays.
pub(crate) fn has_dimensions(text: &str) -> bool {
    text.trim().strip_prefix('{').is_some_and(|inner| inner.trim_start().starts_with('{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_read_as_postgresql_writes_them() {
        let read =
            |text| items(text).map(|items| items.into_iter().map(|i| i.unwrap_or("-".into())).collect::<Vec<_>>());
        assert_eq!(read("{}"), Some(vec![]));
        assert_eq!(read(" { 1 , 2 }"), Some(vec!["1".into(), "2".into()]));
        assert_eq!(
            read(r#"{"a,\"b\\", NULL ,"null",""}"#),
            Some(vec![r#"a,"b\"#.into(), "-".into(), "null".into(), "".into()])
        );
        for wrong in ["", "1,2", "{1,}", "{,}", "{\"a}", "{{1},{2}}", "{a\"b\"}", "{\"a\"b}", "{a\\"] {
            assert_eq!(items(wrong), None, "{wrong}");
        }
    }
}
