//! The collation of a column beside its Arrow type, which does not say it.
use arrow_schema::Field;
use engine::{Collation, DataType};

/// The name of the database's own collation.
pub(crate) const DEFAULT: &str = "default";

/// Names of the order by bytes, which the database's own collation, `default`, has as well.
pub(crate) const BYTE_ORDERS: [&str; 3] = ["C", "POSIX", "ucs_basic"];

/// The languages that CLDR has collations for, or orders as the root does. `und` is the root itself.
pub(crate) const LANGUAGES: &str = " \
    und root af am ar as az be bg bn bo bs ca chr cs cy da de dsb ee el en eo es et fa fi fil fo fr fy ga gl gu ha haw he hi hr hsb hu \
    hy id ig is it ja ka kk kl km kn ko kok ku ky lb lkt ln lo lt lv mk ml mn mr ms mt my nb ne nl nn no om or pa pl ps pt ro ru sa se \
    si sk sl smn sq sr sv sw ta te th tk to tr ug uk ur uz vi wae wo xh yi yo zh zu ";

/// The locale of a collation by its name: of ICU (`de-AT-x-icu`), or of an operating system (`de_AT`, `de_AT.utf8`).
pub(crate) fn locale_named(name: &str) -> Option<String> {
    let tag = match name.strip_suffix("-x-icu") {
        Some(tag) => tag.to_owned(),
        None if name == "unicode" => "und".to_owned(),
        None => {
            let (locale, encoding) = name.split_once('.').unwrap_or((name, "utf8"));
            let is_utf8 = ["utf8", "UTF8", "utf-8", "UTF-8"].contains(&encoding);
            let (language, region) = locale.split_once('_').filter(|_| is_utf8)?;
            let is_region = region.len() == 2 && region.bytes().all(|sign| sign.is_ascii_uppercase());
            is_region.then(|| format!("{language}-{region}"))?
        }
    };
    let mut parts = tag.split('-');
    let is_known = parts.next().is_some_and(|language| LANGUAGES.contains(&format!(" {language} ")));
    let is_part = |part: &str| (2..=4).contains(&part.len()) && part.bytes().all(|sign| sign.is_ascii_alphanumeric());
    (is_known && parts.all(is_part)).then(|| tag.replace("root", "und"))
}

/// Whether each database has a collation of this name.
pub(crate) fn is_built_in(name: &str) -> bool {
    name == DEFAULT || BYTE_ORDERS.contains(&name) || locale_named(name).is_some()
}

/// A collation that a user has made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MadeCollation {
    /// `i` of ICU, `c` of an operating system
    pub(crate) provider: char,
    /// PostgreSQL's number of its encoding, or -1 for any
    pub(crate) encoding: i64,
    /// the locale as it was said
    pub(crate) told: String,
}

impl MadeCollation {
    /// The language as a tag of BCP 47; none where texts are ordered by their bytes.
    pub(crate) fn locale(&self) -> Option<String> {
        match self.provider {
            'i' => tag_of(&self.told),
            _ => locale_named(&self.told),
        }
    }

    /// The text by which a database remembers it.
    pub(crate) fn kept(&self) -> String {
        format!("{} {} {}", self.provider, self.encoding, self.told)
    }

    /// The collation that a database remembers by a text.
    pub(crate) fn of_kept(text: &str) -> Option<MadeCollation> {
        let mut parts = text.splitn(3, ' ');
        let provider = parts.next()?.chars().next()?;
        Some(MadeCollation { provider, encoding: parts.next()?.parse().ok()?, told: parts.next()?.to_owned() })
    }
}

/// The tag of a locale of ICU (`de_AT`, `de-u-co-phonebk`), if its language is known and what it says besides is heeded: which of the
/// orders of a language (`co`), digits as numbers (`kn`), which case comes first (`kf`).
pub(crate) fn tag_of(locale: &str) -> Option<String> {
    let tag = locale.replace('_', "-");
    let (language, extension) = tag.split_once("-u-").unwrap_or((&tag, ""));
    let mut parts = language.split('-');
    let first = parts.next()?.to_ascii_lowercase();
    let is_part = |part: &str| (2..=8).contains(&part.len()) && part.bytes().all(|sign| sign.is_ascii_alphanumeric());
    let is_known = (first.is_empty() || LANGUAGES.contains(&format!(" {first} "))) && parts.all(is_part);
    let mut keys = extension.split('-').filter(|part| part.len() == 2);
    let heeds = extension.is_empty() || extension.split('-').all(is_part);
    let is_heeded = heeds && keys.all(|key| ["co", "kn", "kf"].contains(&key));
    let tag = if first.is_empty() || first == "root" { tag.replacen(&first, "und", 1) } else { tag.clone() };
    (is_known && is_heeded).then_some(tag)
}

/// The key under which a field's metadata tells the collation, as its name and, behind a byte 0, the language if it is of one.
const COLLATION_KEY: &str = "lstore.collation";

/// A field with the collation of its column.
pub(crate) fn with_collation(field: Field, collation: Option<&Collation>) -> Field {
    let Some(Collation { name, locale }) = collation else { return field };
    let mut metadata = field.metadata().clone();
    metadata.insert(COLLATION_KEY.to_owned(), format!("{name}\0{}", locale.as_deref().unwrap_or_default()));
    field.with_metadata(metadata)
}

/// The collation of a field, if it is not the default.
pub(crate) fn collation_of(field: &Field) -> Option<Collation> {
    let (name, locale) = field.metadata().get(COLLATION_KEY)?.split_once('\0')?;
    let locale = Some(locale).filter(|locale| !locale.is_empty()).map(str::to_owned);
    Some(Collation { name: name.to_owned(), locale })
}

/// The key under which it tells the names of two collations of which neither holds.
const CONFLICT_KEY: &str = "lstore.collations";

/// A field of values that have two collations.
pub(crate) fn with_conflict(field: Field, [one, other]: [&Collation; 2]) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(CONFLICT_KEY.to_owned(), format!("{}\0{}", one.name, other.name));
    field.with_metadata(metadata)
}

/// The collations of a field that has two.
pub(crate) fn conflict_of(field: &Field) -> Option<[Collation; 2]> {
    let (one, other) = field.metadata().get(CONFLICT_KEY)?.split_once('\0')?;
    Some([one, other].map(|name| Collation { name: name.to_owned(), locale: None }))
}

/// Whether values of a type have collations: texts, and arrays of them.
pub(crate) fn is_collatable(data_type: DataType) -> bool {
    match data_type {
        DataType::HSTORE => false,
        DataType::Text { .. } | DataType::Char { .. } => true,
        DataType::Array(item) => is_collatable(item.data_type()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_of_icu_are_tags_where_all_of_them_is_heeded() {
        for (locale, tag) in [
            ("de", Some("de")),
            ("de_AT", Some("de-AT")),
            ("de-u-co-phonebk", Some("de-u-co-phonebk")),
            ("en-u-kn-true", Some("en-u-kn-true")),
            ("en-u-kn", Some("en-u-kn")),
            ("und-u-kf-upper-kn-true", Some("und-u-kf-upper-kn-true")),
            ("", Some("und")),
            ("zh-Hans-CN", Some("zh-Hans-CN")),
            ("und-u-ks-level2", None),
            ("xx@@@", None),
            ("xx", None),
        ] {
            assert_eq!(tag_of(locale).as_deref(), tag, "{locale}");
        }
        let made = MadeCollation { provider: 'i', encoding: -1, told: "de-u-co-phonebk".to_owned() };
        assert_eq!(MadeCollation::of_kept(&made.kept()), Some(made));
    }
}
