//! Encodings of one byte a character, in which clients may speak beside UTF-8.
//!
//! All of them have ASCII in the lower half, so what is ASCII stays as it is. The upper half is a table. In those of ISO its first 32
//! places are control characters, which stand for themselves, and the table has the other 96.
use std::sync::LazyLock;

use crate::error::SqlError;
use crate::values::pg_types;

/// An encoding of one byte a character.
#[derive(Debug)]
pub struct Encoding {
    name: &'static str,
    /// The characters of the bytes from 128 on; U+FFFD where there is none.
    upper: Vec<char>,
}

const NONE: char = char::REPLACEMENT_CHARACTER;

static ALL: LazyLock<Vec<Encoding>> = LazyLock::new(|| {
    let control = || (128..160_u8).map(char::from);
    let table = |(name, chars): &(&'static str, &str)| {
        let chars: Vec<char> = chars.chars().collect();
        let identical = if chars.len() == 96 { control().collect() } else { Vec::new() };
        Encoding { name, upper: identical.into_iter().chain(chars).collect() }
    };
    let latin = Encoding { name: "LATIN1", upper: (128..=255_u8).map(char::from).collect() };
    std::iter::once(latin).chain(TABLES.iter().map(table)).collect()
});

/// Encodings of PostgreSQL in which no client can speak here.
const OTHERS: [&str; 13] = [
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "MULE_INTERNAL",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Other names of encodings, without what is neither letter nor digit.
const ALIASES: [(&str, &str); 24] = [
    ("abc", "WIN1258"),
    ("alt", "WIN866"),
    ("iso88591", "LATIN1"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("shiftjis", "SJIS"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("unicode", "UTF8"),
    ("vscii", "WIN1258"),
    ("win", "WIN1251"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
];

/// What a name of an encoding means.
#[derive(Clone, Copy, Debug)]
pub enum Named {
    /// UTF-8, or what is not looked at: texts stay as they are. With its name.
    AsItIs(&'static str),
    /// One of one byte a character.
    Bytes(&'static Encoding),
    /// One that PostgreSQL knows.
    Missing,
}

impl Named {
    /// The encoding of a name; `None` where PostgreSQL has none of that name.
    pub fn find(name: &str) -> Option<Named> {
        let plain =
            |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let asked = plain(name);
        let asked = asked.strip_prefix("windows").map(|number| format!("win{number}")).unwrap_or(asked);
        let asked = ALIASES.iter().find(|(alias, _)| *alias == asked).map_or(asked, |(_, name)| plain(name));
        match asked.as_str() {
            "utf8" => return Some(Named::AsItIs("UTF8")),
            "sqlascii" => return Some(Named::AsItIs("SQL_ASCII")),
            _ => {}
        }
        if let Some(found) = ALL.iter().find(|known| plain(known.name) == asked) {
            return Some(Named::Bytes(found));
        }
        OTHERS.iter().any(|other| plain(other) == asked).then_some(Named::Missing)
    }

    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Named::AsItIs(name) => name,
            Named::Bytes(encoding) => encoding.name,
            Named::Missing => "",
        }
    }
}

impl Encoding {
    /// What bytes of a client say.
    ///
    /// # Errors
    /// 22P05 of a byte that stands for nothing.
    pub fn decode(&self, bytes: &[u8]) -> Result<String, SqlError> {
        let character = |byte: &u8| match byte {
            0..128 => Ok(char::from(*byte)),
            _ => match self.upper[usize::from(*byte - 128)] {
                NONE => Err(untranslatable(&[*byte], self.name, "UTF8")),
                found => Ok(found),
            },
        };
        bytes.iter().map(character).collect()
    }

    /// Brings what was appended to a message from `start` on, UTF-8, into this encoding.
    ///
    /// # Errors
    /// 22P05 of a character that it has not.
    pub fn encode_from(&self, out: &mut Vec<u8>, start: usize) -> Result<(), SqlError> {
        self.encode(out, start, |character| {
            let mut bytes = [0; 4];
            Err(untranslatable(character.encode_utf8(&mut bytes).as_bytes(), "UTF8", self.name))
        })
    }

    /// As [`encode_from`](Self::encode_from), with a question mark for what it has not.
    pub fn encode_roughly_from(&self, out: &mut Vec<u8>, start: usize) {
        let done = self.encode(out, start, |_| Ok(b'?'));
        debug_assert!(done.is_ok(), "every character has a byte");
    }

    fn encode(
        &self,
        out: &mut Vec<u8>,
        start: usize,
        missing: impl Fn(char) -> Result<u8, SqlError>,
    ) -> Result<(), SqlError> {
        if out[start..].is_ascii() {
            return Ok(());
        }
        let byte = |character: char| match u8::try_from(character) {
            Ok(byte @ 0..128) => Ok(byte),
            _ => match self.upper.iter().zip(128..=255_u8).find(|(known, _)| **known == character) {
                Some((_, byte)) if character != NONE => Ok(byte),
                _ => missing(character),
            },
        };
        let encoded =
            String::from_utf8_lossy(&out[start..]).chars().map(byte).collect::<Result<Vec<u8>, SqlError>>()?;
        out.truncate(start);
        out.extend_from_slice(&encoded);
        Ok(())
    }
}

/// Whether the binary form of a type is its text.
pub fn is_text(oid: u32) -> bool {
    use super::oids::{BPCHAR, CHAR, JSON, JSONB, JSONPATH, NAME, TEXT, UNKNOWN, VARCHAR};
    matches!(oid, TEXT | VARCHAR | BPCHAR | NAME | CHAR | JSON | JSONB | JSONPATH | UNKNOWN | pg_types::CITEXT)
        || matches!(pg_types::made_type(oid), Some(engine::DataType::Enum(_)))
}

fn untranslatable(bytes: &[u8], from: &str, to: &str) -> SqlError {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let message = format!(
        "character with byte sequence {} in encoding \"{from}\" has no equivalent in encoding \"{to}\"",
        bytes.join(" ")
    );
    SqlError::new("22P05", message)
}

/// The upper halves.
static TABLES: [(&str, &str); 26] = [
    (
        "LATIN2",
        concat!(
            "\u{a0}Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u{ad}ŽŻ°ą˛ł´ľśˇ¸šşťź˝žżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčé",
            "ęëěíîďđńňóôőö÷řůúűüýţ˙",
        ),
    ),
    (
        "LATIN3",
        concat!(
            "\u{a0}Ħ˘£¤\u{fffd}Ĥ§¨İŞĞĴ\u{ad}\u{fffd}Ż°ħ²³´µĥ·¸ışğĵ½\u{fffd}żÀÁÂ\u{fffd}ÄĊĈÇÈÉÊËÌÍ",
            "ÎÏ\u{fffd}ÑÒÓÔĠÖ×ĜÙÚÛÜŬŜßàáâ\u{fffd}äċĉçèéêëìíîï\u{fffd}ñòóôġö÷ĝùúûüŭŝ˙",
        ),
    ),
    (
        "LATIN4",
        concat!(
            "\u{a0}ĄĸŖ¤ĨĻ§¨ŠĒĢŦ\u{ad}Ž¯°ą˛ŗ´ĩļˇ¸šēģŧŊžŋĀÁÂÃÄÅÆĮČÉĘËĖÍÎĪĐŅŌĶÔÕÖ×ØŲÚÛÜŨŪßāáâãäåæįčé",
            "ęëėíîīđņōķôõö÷øųúûüũū˙",
        ),
    ),
    (
        "LATIN5",
        concat!(
            "\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèé",
            "êëìíîïğñòóôõö÷øùúûüışÿ",
        ),
    ),
    (
        "LATIN6",
        concat!(
            "\u{a0}ĄĒĢĪĨĶ§ĻĐŠŦŽ\u{ad}ŪŊ°ąēģīĩķ·ļđšŧž―ūŋĀÁÂÃÄÅÆĮČÉĘËĖÍÎÏÐŅŌÓÔÕÖŨØŲÚÛÜÝÞßāáâãäåæįčé",
            "ęëėíîïðņōóôõöũøųúûüýþĸ",
        ),
    ),
    (
        "LATIN7",
        concat!(
            "\u{a0}”¢£¤„¦§Ø©Ŗ«¬\u{ad}®Æ°±²³“µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčé",
            "źėģķīļšńņóōõö÷ųłśūüżž’",
        ),
    ),
    (
        "LATIN8",
        concat!(
            "\u{a0}Ḃḃ£ĊċḊ§Ẁ©ẂḋỲ\u{ad}®ŸḞḟĠġṀṁ¶ṖẁṗẃṠỳẄẅṡÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏŴÑÒÓÔÕÖṪØÙÚÛÜÝŶßàáâãäåæçèé",
            "êëìíîïŵñòóôõöṫøùúûüýŷÿ",
        ),
    ),
    (
        "LATIN9",
        concat!(
            "\u{a0}¡¢£€¥Š§š©ª«¬\u{ad}®¯°±²³Žµ¶·ž¹º»ŒœŸ¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèé",
            "êëìíîïðñòóôõö÷øùúûüýþÿ",
        ),
    ),
    (
        "LATIN10",
        concat!(
            "\u{a0}ĄąŁ€„Š§š©Ș«Ź\u{ad}źŻ°±ČłŽ”¶·žčș»ŒœŸżÀÁÂĂÄĆÆÇÈÉÊËÌÍÎÏĐŃÒÓÔŐÖŚŰÙÚÛÜĘȚßàáâăäćæçèé",
            "êëìíîïđńòóôőöśűùúûüęțÿ",
        ),
    ),
    (
        "ISO_8859_5",
        concat!(
            "\u{a0}ЁЂЃЄЅІЇЈЉЊЋЌ\u{ad}ЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщ",
            "ъыьэюя№ёђѓєѕіїјљњћќ§ўџ",
        ),
    ),
    (
        "ISO_8859_6",
        concat!(
            "\u{a0}\u{fffd}\u{fffd}\u{fffd}¤\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}،\u{ad}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{61b}\u{fffd}\u{fffd}\u{fffd}\u{61f}",
            "\u{fffd}\u{621}\u{622}\u{623}\u{624}\u{625}\u{626}\u{627}\u{628}\u{629}\u{62a}",
            "\u{62b}\u{62c}\u{62d}\u{62e}\u{62f}\u{630}\u{631}\u{632}\u{633}\u{634}\u{635}\u{636}",
            "\u{637}\u{638}\u{639}\u{63a}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{640}\u{641}",
            "\u{642}\u{643}\u{644}\u{645}\u{646}\u{647}\u{648}\u{649}\u{64a}\u{64b}\u{64c}\u{64d}",
            "\u{64e}\u{64f}\u{650}\u{651}\u{652}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
        ),
    ),
    (
        "ISO_8859_7",
        concat!(
            "\u{a0}‘’£€₯¦§¨©ͺ«¬\u{ad}\u{fffd}―°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\u{fffd}ΣΤΥΦΧΨΩΪΫ",
            "άέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ\u{fffd}",
        ),
    ),
    (
        "ISO_8859_8",
        concat!(
            "\u{a0}\u{fffd}¢£¤¥¦§¨©×«¬\u{ad}®¯°±²³´µ¶·¸¹÷»¼½¾\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}‗\u{5d0}\u{5d1}",
            "\u{5d2}\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\u{5da}\u{5db}\u{5dc}\u{5dd}",
            "\u{5de}\u{5df}\u{5e0}\u{5e1}\u{5e2}\u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\u{5e8}\u{5e9}",
            "\u{5ea}\u{fffd}\u{fffd}\u{200e}\u{200f}\u{fffd}",
        ),
    ),
    (
        "KOI8R",
        concat!(
            "\u{2500}\u{2502}\u{250c}\u{2510}\u{2514}\u{2518}\u{251c}\u{2524}\u{252c}\u{2534}",
            "\u{253c}\u{2580}\u{2584}\u{2588}\u{258c}\u{2590}\u{2591}\u{2592}\u{2593}⌠\u{25a0}∙√≈",
            "≤≥\u{a0}⌡°²·÷\u{2550}\u{2551}\u{2552}ё\u{2553}\u{2554}\u{2555}\u{2556}\u{2557}",
            "\u{2558}\u{2559}\u{255a}\u{255b}\u{255c}\u{255d}\u{255e}\u{255f}\u{2560}\u{2561}Ё",
            "\u{2562}\u{2563}\u{2564}\u{2565}\u{2566}\u{2567}\u{2568}\u{2569}\u{256a}\u{256b}",
            "\u{256c}©юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ",
        ),
    ),
    (
        "KOI8U",
        concat!(
            "\u{2500}\u{2502}\u{250c}\u{2510}\u{2514}\u{2518}\u{251c}\u{2524}\u{252c}\u{2534}",
            "\u{253c}\u{2580}\u{2584}\u{2588}\u{258c}\u{2590}\u{2591}\u{2592}\u{2593}⌠\u{25a0}∙√≈",
            "≤≥\u{a0}⌡°²·÷\u{2550}\u{2551}\u{2552}ёє\u{2554}ії\u{2557}\u{2558}\u{2559}\u{255a}",
            "\u{255b}ґ\u{255d}\u{255e}\u{255f}\u{2560}\u{2561}ЁЄ\u{2563}ІЇ\u{2566}\u{2567}",
            "\u{2568}\u{2569}\u{256a}Ґ\u{256c}©юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯ",
            "РСТУЖВЬЫЗШЭЩЧЪ",
        ),
    ),
    (
        "WIN866",
        concat!(
            "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмноп\u{2591}\u{2592}\u{2593}\u{2502}",
            "\u{2524}\u{2561}\u{2562}\u{2556}\u{2555}\u{2563}\u{2551}\u{2557}\u{255d}\u{255c}",
            "\u{255b}\u{2510}\u{2514}\u{2534}\u{252c}\u{251c}\u{2500}\u{253c}\u{255e}\u{255f}",
            "\u{255a}\u{2554}\u{2569}\u{2566}\u{2560}\u{2550}\u{256c}\u{2567}\u{2568}\u{2564}",
            "\u{2565}\u{2559}\u{2558}\u{2552}\u{2553}\u{256b}\u{256a}\u{2518}\u{250c}\u{2588}",
            "\u{2584}\u{258c}\u{2590}\u{2580}рстуфхцчшщъыьэюяЁёЄєЇїЎў°∙·√№¤\u{25a0}\u{a0}",
        ),
    ),
    (
        "WIN874",
        concat!(
            "€\u{fffd}\u{fffd}\u{fffd}\u{fffd}…\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}‘’“”•–—\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{a0}กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮ",
            "ฯะ\u{e31}าำ\u{e34}\u{e35}\u{e36}\u{e37}\u{e38}\u{e39}\u{e3a}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}฿เแโใไๅๆ\u{e47}\u{e48}\u{e49}\u{e4a}\u{e4b}\u{e4c}\u{e4d}\u{e4e}๏๐๑๒๓๔๕๖๗๘๙๚",
            "๛\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
        ),
    ),
    (
        "WIN1250",
        concat!(
            "€\u{fffd}‚\u{fffd}„…†‡\u{fffd}‰Š‹ŚŤŽŹ\u{fffd}‘’“”•–—\u{fffd}™š›śťžź\u{a0}ˇ˘Ł¤Ą¦§¨©Ş«",
            "¬\u{ad}®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůú",
            "űüýţ˙",
        ),
    ),
    (
        "WIN1251",
        concat!(
            "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—\u{fffd}™љ›њќћџ\u{a0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{ad}®Ї°±Ііґµ¶·ё№є»јЅѕїАБВ",
            "ГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
        ),
    ),
    (
        "WIN1252",
        concat!(
            "€\u{fffd}‚ƒ„…†‡ˆ‰Š‹Œ\u{fffd}Ž\u{fffd}\u{fffd}‘’“”•–—˜™š›œ\u{fffd}žŸ\u{a0}¡¢£¤¥¦§¨©ª«",
            "¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùú",
            "ûüýþÿ",
        ),
    ),
    (
        "WIN1253",
        concat!(
            "€\u{fffd}‚ƒ„…†‡\u{fffd}‰\u{fffd}‹\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}‘’“”•–—",
            "\u{fffd}™\u{fffd}›\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{a0}΅Ά£¤¥¦§¨©\u{fffd}«¬\u{ad}®―°",
            "±²³΄µ¶·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\u{fffd}ΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύ",
            "ώ\u{fffd}",
        ),
    ),
    (
        "WIN1254",
        concat!(
            "€\u{fffd}‚ƒ„…†‡ˆ‰Š‹Œ\u{fffd}\u{fffd}\u{fffd}\u{fffd}‘’“”•–—˜™š›œ\u{fffd}\u{fffd}Ÿ",
            "\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèé",
            "êëìíîïğñòóôõö÷øùúûüışÿ",
        ),
    ),
    (
        "WIN1255",
        concat!(
            "€\u{fffd}‚ƒ„…†‡ˆ‰\u{fffd}‹\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}‘’“”•–—˜™\u{fffd}›",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{a0}¡¢£₪¥¦§¨©×«¬\u{ad}®¯°±²³´µ¶·¸¹÷»¼½¾¿\u{5b0}",
            "\u{5b1}\u{5b2}\u{5b3}\u{5b4}\u{5b5}\u{5b6}\u{5b7}\u{5b8}\u{5b9}\u{fffd}\u{5bb}",
            "\u{5bc}\u{5bd}\u{5be}\u{5bf}\u{5c0}\u{5c1}\u{5c2}\u{5c3}\u{5f0}\u{5f1}\u{5f2}\u{5f3}",
            "\u{5f4}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{5d0}\u{5d1}\u{5d2}",
            "\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\u{5da}\u{5db}\u{5dc}\u{5dd}\u{5de}",
            "\u{5df}\u{5e0}\u{5e1}\u{5e2}\u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\u{5e8}\u{5e9}\u{5ea}",
            "\u{fffd}\u{fffd}\u{200e}\u{200f}\u{fffd}",
        ),
    ),
    (
        "WIN1256",
        concat!(
            "€\u{67e}‚ƒ„…†‡ˆ‰\u{679}‹Œ\u{686}\u{698}\u{688}\u{6af}‘’“”•–—\u{6a9}™\u{691}›œ",
            "\u{200c}\u{200d}\u{6ba}\u{a0}،¢£¤¥¦§¨©\u{6be}«¬\u{ad}®¯°±²³´µ¶·¸¹\u{61b}»¼½¾\u{61f}",
            "\u{6c1}\u{621}\u{622}\u{623}\u{624}\u{625}\u{626}\u{627}\u{628}\u{629}\u{62a}\u{62b}",
            "\u{62c}\u{62d}\u{62e}\u{62f}\u{630}\u{631}\u{632}\u{633}\u{634}\u{635}\u{636}×",
            "\u{637}\u{638}\u{639}\u{63a}\u{640}\u{641}\u{642}\u{643}à\u{644}â\u{645}\u{646}",
            "\u{647}\u{648}çèéêë\u{649}\u{64a}îï\u{64b}\u{64c}\u{64d}\u{64e}ô\u{64f}\u{650}÷",
            "\u{651}ù\u{652}ûü\u{200e}\u{200f}\u{6d2}",
        ),
    ),
    (
        "WIN1257",
        concat!(
            "€\u{fffd}‚\u{fffd}„…†‡\u{fffd}‰\u{fffd}‹\u{fffd}¨ˇ¸\u{fffd}‘’“”•–—\u{fffd}™\u{fffd}›",
            "\u{fffd}¯˛\u{fffd}\u{a0}\u{fffd}¢£¤\u{fffd}¦§Ø©Ŗ«¬\u{ad}®Æ°±²³´µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉ",
            "ŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙",
        ),
    ),
    (
        "WIN1258",
        concat!(
            "€\u{fffd}‚ƒ„…†‡ˆ‰\u{fffd}‹Œ\u{fffd}\u{fffd}\u{fffd}\u{fffd}‘’“”•–—˜™\u{fffd}›œ",
            "\u{fffd}\u{fffd}Ÿ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂĂÄÅÆÇÈÉÊË\u{300}ÍÎÏĐÑ",
            "\u{309}ÓÔƠÖ×ØÙÚÛÜƯ\u{303}ßàáâăäåæçèéêë\u{301}íîïđñ\u{323}óôơö÷øùúûüư₫ÿ",
        ),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_reads_what_it_writes() {
        for known in &*ALL {
            assert_eq!(known.upper.len(), 128, "{}", known.name);
            let bytes: Vec<u8> =
                (0..=255).filter(|byte| *byte < 128 || known.upper[*byte as usize - 128] != NONE).collect();
            let mut out = b"\xff".to_vec();
            out.extend_from_slice(known.decode(&bytes).unwrap().as_bytes());
            known.encode_from(&mut out, 1).unwrap();
            assert_eq!(out[1..], bytes, "{}", known.name);
        }
    }

    #[test]
    fn names_are_found_as_people_write_them() {
        let name = |text| Named::find(text).map(Named::name);
        assert_eq!(
            (name("latin-9"), name("ISO_8859-15"), name("windows-1252")),
            (Some("LATIN9"), Some("LATIN9"), Some("WIN1252"))
        );
        assert_eq!(
            (name("utf-8"), name("sql_ascii"), name("euc_jp"), name("x")),
            (Some("UTF8"), Some("SQL_ASCII"), Some(""), None)
        );
    }

    #[test]
    fn what_an_encoding_has_not_is_an_error() {
        let Some(Named::Bytes(latin)) = Named::find("latin1") else { panic!("no LATIN1") };
        let mut out = "a€".as_bytes().to_vec();
        assert_eq!(latin.encode_from(&mut out, 0).unwrap_err().sqlstate, "22P05");
        latin.encode_roughly_from(&mut out, 0);
        assert_eq!(out, b"a?");
        let Some(Named::Bytes(windows)) = Named::find("win1252") else { panic!("no WIN1252") };
        assert_eq!(windows.decode(b"\x81").unwrap_err().sqlstate, "22P05");
    }
}
