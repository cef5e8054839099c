//! Texts, trees and bytes of JSON say the same, and compare as PostgreSQL does.
use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

fn any_json() -> impl Strategy<Value = Json> {
    let number = "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,6})?(e-?[0-9]{1,2})?";
    let number = number.prop_filter_map("a number", |text| JsonNumber::read(&text).map(Json::Number));
    let text = "[a-cä\"\\\\\n\u{1}]{0,4}".prop_map(Json::Text);
    let plain = prop_oneof![Just(Json::Null), any::<bool>().prop_map(Json::Boolean), number, text];
    plain.prop_recursive(3, 24, 4, |inner| {
        let members = prop::collection::vec(("[a-c]{0,3}", inner.clone()), 0..4);
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Json::Array), members.prop_map(Json::object)]
    })
}

/// The order of the types of values, and of values of one type: numbers of items, then item by item.
fn compare(left: &Json, right: &Json, is_whole: bool) -> Ordering {
    let rank = |json: &Json| match json {
        Json::Array(items) if is_whole && items.is_empty() => 0,
        Json::Null => 1,
        Json::Text(_) => 2,
        Json::Number(_) => 3,
        Json::Boolean(_) => 4,
        Json::Array(_) => 5,
        Json::Object(_) => 6,
    };
    let all = |pairs: Vec<Ordering>| pairs.into_iter().fold(Ordering::Equal, Ordering::then);
    rank(left).cmp(&rank(right)).then_with(|| match (left, right) {
        (Json::Text(left), Json::Text(right)) => left.cmp(right),
        (Json::Number(left), Json::Number(right)) => left.compare(right),
        (Json::Boolean(left), Json::Boolean(right)) => left.cmp(right),
        (Json::Array(left), Json::Array(right)) => {
            let items = left.iter().zip(right).map(|(left, right)| compare(left, right, false));
            left.len().cmp(&right.len()).then(all(items.collect()))
        }
        (Json::Object(left), Json::Object(right)) => {
            let members = left
                .iter()
                .zip(right)
                .map(|(left, right)| left.0.cmp(&right.0).then_with(|| compare(&left.1, &right.1, false)));
            left.len().cmp(&right.len()).then(all(members.collect()))
        }
        _ => Ordering::Equal,
    })
}

proptest! {
    #[test]
    fn a_value_comes_back_from_its_text_and_from_its_bytes(json in any_json()) {
        prop_assert_eq!(Json::parse(&json.to_string()), Ok(json.clone()));
        prop_assert_eq!(Json::parse(&json.pretty()), Ok(json.clone()));
        prop_assert_eq!(Jsonb::of(&json).to_json(), json.clone());
        prop_assert_eq!(check_json(&json.to_string()), Ok(()));
    }

    #[test]
    fn bytes_compare_as_values_do(left in any_json(), right in any_json()) {
        let (first, second) = (Jsonb::of(&left), Jsonb::of(&right));
        let order = Jsonb::key_of(first.as_bytes()).cmp(Jsonb::key_of(second.as_bytes()));
        prop_assert_eq!(order, compare(&left, &right, true), "{} and {}", left, right);
    }

    #[test]
    fn parts_are_found_without_the_whole(json in any_json(), key in "[a-c]{0,3}", place in -4i64..4) {
        let bytes = Jsonb::of(&json);
        let found = Jsonb::field(bytes.as_bytes(), &key);
        prop_assert_eq!(found, json.field(&key).map(Jsonb::of));
        let item = match &json {
            Json::Array(items) => {
                let at = if place < 0 { place + items.len() as i64 } else { place };
                usize::try_from(at).ok().and_then(|at| items.get(at))
            }
            _ => None,
        };
        prop_assert_eq!(Jsonb::item(bytes.as_bytes(), place), item.map(Jsonb::of));
        let kind = match &json {
            Json::Array(items) => JsonbKind::Array(items.len()),
            Json::Object(members) => JsonbKind::Object(members.len()),
            _ => JsonbKind::of(bytes.as_bytes()),
        };
        prop_assert_eq!(JsonbKind::of(bytes.as_bytes()), kind);
    }

    #[test]
    fn no_text_and_no_bytes_are_a_panic(text in "[\\[\\]{}:,\"\\\\u0-9a-f.eE+ \\-tnrlse]{0,24}", bytes in any::<Vec<u8>>()) {
        if let Err(fault) = Json::parse(&text) {
            prop_assert!(!fault.detail(&text).is_empty());
        }
        let is_checked = check_json(&text).is_ok();
        prop_assert!(is_checked || Json::parse(&text).is_err(), "what is read is a json");
        let _ = members(&text);
        let value = Jsonb::from_bytes(&bytes);
        let _ = (value.to_string(), JsonbKind::of(&bytes), Jsonb::key_of(&bytes), Jsonb::text_of(&bytes));
        let _ = (Jsonb::field(&bytes, "a"), Jsonb::item(&bytes, -1));
    }
}

fn shown(text: &str) -> String {
    Jsonb::parse(text).map_or_else(|fault| format!("{:?}", fault.what), |value| value.to_string())
}

#[test]
fn values_are_shown_in_their_normal_form() {
    assert_eq!(shown(r#" {"bb":1,"a":[1 , 2],"bb":{}, "c":null} "#), r#"{"a": [1, 2], "c": null, "bb": {}}"#);
    assert_eq!(shown("[1.50, -0, -0.0, 1e3, 1.5e1, 15e-1, 1E-3, 0e5]"), "[1.50, 0, 0.0, 1000, 15, 1.5, 0.001, 0]");
    assert_eq!(shown(r#""A\u00e4\ud83d\ude00\/\n\u001f""#), "\"Aä😀/\\n\\u001f\"");
    assert_eq!(shown("123456789012345678901234567890.123456789012345678901234567890").len(), 61);
    assert_eq!(
        Json::parse("{\"a\":[],\"b\":[1]}").unwrap().pretty(),
        "{\n    \"a\": [\n    ],\n    \"b\": [\n        1\n    ]\n}"
    );
}

#[test]
fn what_is_wrong_is_told_as_postgresql_does() {
    let detail = |text: &str| Json::parse(text).unwrap_err().detail(text);
    assert_eq!(detail(""), "The input string ended unexpectedly.");
    assert_eq!(detail("{\"a\""), "The input string ended unexpectedly.");
    assert_eq!(detail("{a:1}"), "Token \"a\" is invalid.");
    assert_eq!(detail("{1:1}"), "Expected string or \"}\", but found \"1\".");
    assert_eq!(detail("{\"a\":1,}"), "Expected string, but found \"}\".");
    assert_eq!(detail("{\"a\" 1}"), "Expected \":\", but found \"1\".");
    assert_eq!(detail("{\"a\":1 2}"), "Expected \",\" or \"}\", but found \"2\".");
    assert_eq!(detail("[1 2]"), "Expected \",\" or \"]\", but found \"2\".");
    assert_eq!(detail("[}"), "Expected array element or \"]\", but found \"}\".");
    assert_eq!(detail("1 2"), "Expected end of input, but found \"2\".");
    assert_eq!(detail("01"), "Token \"01\" is invalid.");
    assert_eq!(detail("\"\\x\""), "Escape sequence \"\\x\" is invalid.");
    assert_eq!(detail("\"\\u12\""), "\"\\u\" must be followed by four hexadecimal digits.");
    assert_eq!(detail("\"\\ud800\""), "Unicode low surrogate must follow a high surrogate.");
    assert_eq!(Json::parse("\"\\u0000\"").unwrap_err().error().0, "22P05");
    assert_eq!(check_json("\"\\u0000\""), Ok(()));
    assert_eq!(shown("1e131072"), "Overflow");
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!((shown(&deep(500)).len(), shown(&deep(501))), (1000, "Depth".to_owned()));
    assert_eq!(shown(&deep(1_000_000)), "Depth");
}

#[test]
fn members_are_where_they_stand_in_the_text() {
    let text = r#" {"a" : [1, 2 ] , "b":"x\"y"} "#;
    let Ok(Members::Object(found)) = members(text) else { panic!("an object") };
    let texts: Vec<&str> = found.iter().map(|(_, range)| &text[range.clone()]).collect();
    assert_eq!(texts, ["[1, 2 ]", "\"x\\\"y\""]);
    assert_eq!(members("[ ]"), Ok(Members::Array(vec![])));
    assert_eq!(members("\"a\\n\""), Ok(Members::Plain { text: Some("a\n".to_owned()), kind: "string" }));
    assert_eq!(members("null"), Ok(Members::Plain { text: None, kind: "null" }));
}

/// A part of a value that the value contains: without some of its members and items, which `is_kept` tells one after the other.
fn part_of(json: &Json, is_kept: &mut dyn FnMut() -> bool) -> Json {
    match json {
        Json::Array(items) => {
            let kept: Vec<&Json> = items.iter().filter(|_| is_kept()).collect();
            Json::Array(kept.into_iter().map(|item| part_of(item, is_kept)).collect())
        }
        Json::Object(members) => {
            let kept: Vec<&(String, Json)> = members.iter().filter(|_| is_kept()).collect();
            Json::object(kept.into_iter().map(|(key, value)| (key.clone(), part_of(value, is_kept))).collect())
        }
        plain => plain.clone(),
    }
}

/// Whether a value contains another one, told from their trees.
fn contains_by_trees(whole: &Json, part: &Json) -> bool {
    fn has_parts(whole: &Json, part: &Json) -> bool {
        match (whole, part) {
            (Json::Object(_), Json::Object(members)) => {
                members.iter().all(|(key, value)| whole.field(key).is_some_and(|own| has_parts(own, value)))
            }
            (Json::Array(items), Json::Array(wanted)) => {
                wanted.iter().all(|wanted| items.iter().any(|item| has_parts(item, wanted)))
            }
            (Json::Number(left), Json::Number(right)) => left.compare(right).is_eq(),
            (left, right) => left == right,
        }
    }
    match (whole, part) {
        (Json::Array(items), Json::Null | Json::Boolean(_) | Json::Number(_) | Json::Text(_)) => {
            items.iter().any(|item| has_parts(item, part))
        }
        _ => has_parts(whole, part),
    }
}

fn contains(whole: &Json, part: &Json) -> bool {
    Jsonb::contains(Jsonb::of(whole).as_bytes(), Jsonb::of(part).as_bytes())
}

fn terms(json: &Json, of: JsonTerms) -> Vec<Vec<u8>> {
    let mut terms = Vec::new();
    Jsonb::for_each_term(Jsonb::of(json).as_bytes(), of, &mut |term| terms.push(term.to_vec()));
    terms
}

proptest! {
    #[test]
    fn a_value_has_the_terms_of_all_that_it_contains(json in any_json(), kept in prop::collection::vec(any::<bool>(), 1..40)) {
        let mut kept = kept.into_iter().cycle();
        let part = part_of(&json, &mut || kept.next().unwrap_or(true));
        for of in [JsonTerms::Names, JsonTerms::Paths] {
            let whole = terms(&json, of);
            let missing: Vec<_> = terms(&part, of).into_iter().filter(|term| !whole.contains(term)).collect();
            prop_assert!(missing.is_empty(), "{:?} of {} in {}", of, part, json);
        }
    }

    #[test]
    fn what_a_value_contains_is_told_from_bytes_as_from_trees(
        (one, other) in (any_json(), any_json()),
        kept in prop::collection::vec(any::<bool>(), 1..40),
        key in "[a-c]{0,3}",
    ) {
        let mut kept = kept.into_iter().cycle();
        let part = part_of(&one, &mut || kept.next().unwrap_or(true));
        prop_assert!(contains(&one, &one) && contains(&one, &part), "{} in {}", part, one);
        for (whole, part) in [(&one, &other), (&other, &one), (&part, &one), (&other, &part)] {
            prop_assert_eq!(contains(whole, part), contains_by_trees(whole, part), "{} in {}", part, whole);
        }
        let has_key = match &one {
            Json::Object(_) => one.field(&key).is_some(),
            Json::Array(items) => items.contains(&Json::Text(key.clone())),
            plain => *plain == Json::Text(key.clone()),
        };
        prop_assert_eq!(Jsonb::has_key(Jsonb::of(&one).as_bytes(), &key), has_key);
    }

    #[test]
    fn no_bytes_whatever_have_terms_without_end(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut count = 0;
        Jsonb::for_each_term(&bytes, JsonTerms::Names, &mut |_| count += 1);
        prop_assert!(count <= bytes.len());
        // Whatever it is, it is answered.
        let _ = (Jsonb::contains(&bytes, &bytes), Jsonb::contains(&bytes, b"\0"), Jsonb::has_key(&bytes, "a"));
    }
}

#[test]
fn terms_are_those_of_keys_and_plain_values() {
    let json = Json::parse(r#"{"a": [1.50, "x", {"b": "x"}], "c": null}"#).unwrap();
    let shown = |term: &Vec<u8>| String::from_utf8_lossy(&term[..term.len().min(2)]).into_owned();
    let names: Vec<String> = terms(&json, JsonTerms::Names).iter().map(shown).collect();
    assert_eq!(names[0], "ka");
    assert!(names[1].starts_with('n'));
    assert_eq!(names[2..], ["kx", "kb", "tx", "kc", "z"], "an item that is a string counts as a key");
    assert_eq!(terms(&json, JsonTerms::Names)[2], Jsonb::term_of_key("x"));
    let paths = terms(&json, JsonTerms::Paths);
    assert_eq!((paths.len(), paths[0].len()), (4, 8));
    assert_ne!(paths[1], paths[2], "one is under \"a\", the other under \"a\" and \"b\"");
    let within_array = Json::parse(r#"{"a": "x"}"#).unwrap();
    assert_eq!(terms(&within_array, JsonTerms::Paths), [paths[1].clone()], "an array is no step of a path");
    let equal = |of| terms(&Json::parse("[1.50]").unwrap(), of) == terms(&Json::parse("[1.5]").unwrap(), of);
    assert!(equal(JsonTerms::Names) && equal(JsonTerms::Paths));
}
