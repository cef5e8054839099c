//! Arrays as texts: `{1,"a b",NULL}`.

/// What stands between items for nothing: PostgreSQL knows these alone.
fn is_blank(sign: char) -> bool {
    matches!(sign, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// The items of an array of one dimension as PostgreSQL writes it: separated by commas, in double quotes where that is
/// needed, with a backslash before what would else have a meaning.
pub(crate) fn items(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim_matches(is_blank).strip_prefix('{')?.strip_suffix('}')?;
    if inner.trim_matches(is_blank).is_empty() {
        return Some(Vec::new());
    }
    let (mut items, mut item, mut is_quoted, mut within) = (Vec::new(), String::new(), false, false);
    let mut signs = inner.chars();
    let end = |item: &mut String, is_quoted: bool| {
        let item = std::mem::take(item);
        match is_quoted {
            true => Some(Some(item)),
            false if item.trim_matches(is_blank).is_empty() => None,
            false if item.trim_matches(is_blank).eq_ignore_ascii_case("null") => Some(None),
            false => Some(Some(item.trim_matches(is_blank).to_owned())),
        }
    };
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => item.push(signs.next()?),
            '"' => {
                // Nothing but blanks stands beside quotes.
                if !within && !item.trim_matches(is_blank).is_empty() {
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
            blank if is_quoted && !within && is_blank(blank) => {}
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

/// An item of an array of one dimension or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Value(Option<String>),
    Items(Vec<Item>),
}

/// The items of an array, which may be arrays; those beside each other have one shape.
pub(crate) fn nested_items(text: &str) -> Option<Vec<Item>> {
    if !has_dimensions(text) {
        return Some(items(text)?.into_iter().map(Item::Value).collect());
    }
    let inner = text.trim_matches(is_blank).strip_prefix('{')?.strip_suffix('}')?;
    let parts = parts(inner)?;
    let read = parts.into_iter().map(nested_items).collect::<Option<Vec<_>>>()?;
    let shapes: Vec<Vec<usize>> = read.iter().map(|items| shape(items)).collect();
    let is_even = shapes.iter().all(|shape| *shape == shapes[0] && shape[0] > 0);
    is_even.then(|| read.into_iter().map(Item::Items).collect())
}

/// How many items there are in each dimension.
fn shape(items: &[Item]) -> Vec<usize> {
    let mut lengths = vec![items.len()];
    if let Some(Item::Items(first)) = items.first() {
        lengths.extend(shape(first));
    }
    lengths
}

/// The parts of a text between commas that stand in no quotes and no braces.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut depth, mut is_quoted, mut is_escaped) = (Vec::new(), 0, 0_usize, false, false);
    for (at, sign) in text.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '{' if !is_quoted => depth += 1,
            '}' if !is_quoted => depth = depth.checked_sub(1)?,
            ',' if !is_quoted && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (depth == 0 && !is_quoted).then_some(parts)
}

/// Whether the items of an array are arrays.
pub(crate) fn has_dimensions(text: &str) -> bool {
    text.trim_matches(is_blank)
        .strip_prefix('{')
        .is_some_and(|inner| inner.trim_start_matches(is_blank).starts_with('{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_are_arrays_have_one_shape() {
        let value = |text: &str| Item::Value(Some(text.to_owned()));
        let two = vec![Item::Items(vec![value("1"), value("a,{")]), Item::Items(vec![Item::Value(None), value("}")])];
        assert_eq!(nested_items(r#" {{1,"a,{"} , {NULL,"}"}}"#), Some(two));
        assert_eq!(nested_items("{1}"), Some(vec![value("1")]));
        for wrong in ["{{1},{2,3}}", "{{1},2}", "{{1}", "{{1}}}", "{{{1}},{2}}", "{{1} {2}}", "{{1},}", "{{},{}}"] {
            assert_eq!(nested_items(wrong), None, "{wrong}");
        }
    }

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
        assert_eq!(
            read("{\x01, \u{85},\u{a0},\x0b\x1f}").map(|all| all.concat()),
            Some("\x01\u{85}\u{a0}\x1f".to_owned())
        );
        for wrong in ["", "1,2", "{1,}", "{,}", "{\"a}", "{{1},{2}}", "{a\"b\"}", "{\"a\"b}", "{a\\"] {
            assert_eq!(items(wrong), None, "{wrong}");
        }
    }
}
