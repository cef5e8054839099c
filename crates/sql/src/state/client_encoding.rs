//! How texts are sent: as UTF-8, which is also what a client gets that asks for no conversion.
use crate::error::{Result, SqlError};
use crate::state::setting_values::invalid;

/// The encoding that a client asked for, by its name.
#[derive(Clone, Copy)]
pub(crate) struct ClientEncoding(pub(crate) &'static str);

impl Default for ClientEncoding {
    fn default() -> ClientEncoding {
        ClientEncoding(UTF8)
    }
}

const UTF8: &str = "UTF8";
/// That of a client that takes bytes as they are.
const SQL_ASCII: &str = "SQL_ASCII";

/// PostgreSQL's other encodings, each before its other names. Only their letters and digits count.
const OTHERS: &[&[&str]] = &[
    &["EUC_JP"],
    &["EUC_CN"],
    &["EUC_KR"],
    &["EUC_TW"],
    &["EUC_JIS_2004"],
    &["MULE_INTERNAL"],
    &["LATIN1", "iso88591"],
    &["LATIN2", "iso88592"],
    &["LATIN3", "iso88593"],
    &["LATIN4", "iso88594"],
    &["LATIN5", "iso88599"],
    &["LATIN6", "iso885910"],
    &["LATIN7", "iso885913"],
    &["LATIN8", "iso885914"],
    &["LATIN9", "iso885915"],
    &["LATIN10", "iso885916"],
    &["WIN1256"],
    &["WIN1258", "abc", "tcvn", "tcvn5712", "vscii"],
    &["WIN866", "alt"],
    &["WIN874"],
    &["KOI8R", "koi8"],
    &["WIN1251", "win"],
    &["WIN1252"],
    &["ISO_8859_5"],
    &["ISO_8859_6"],
    &["ISO_8859_7"],
    &["ISO_8859_8"],
    &["WIN1250"],
    &["WIN1253"],
    &["WIN1254"],
    &["WIN1255"],
    &["WIN1257"],
    &["KOI8U"],
    &["SJIS", "mskanji", "shiftjis", "win932", "windows932"],
    &["BIG5", "win950", "windows950"],
    &["GBK", "win936", "windows936"],
    &["UHC", "win949", "windows949"],
    &["GB18030"],
    &["JOHAB"],
    &["SHIFT_JIS_2004"],
];

/// The letters and digits of a name.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

impl ClientEncoding {
    /// The encoding of this name.
    ///
    /// # Errors
    /// There is none, or texts would have to be converted.
    pub(crate) fn read(name: &str, value: &str) -> Result<ClientEncoding> {
        let asked = plain(value);
        match asked.as_str() {
            "utf8" | "unicode" => return Ok(ClientEncoding(UTF8)),
            "sqlascii" => return Ok(ClientEncoding(SQL_ASCII)),
            _ => {}
        }
        let is_asked = |known: &&str| {
            let known = plain(known);
            known == asked
                || asked.strip_prefix("windows").is_some_and(|page| !page.is_empty() && known == format!("win{page}"))
        };
        let found = OTHERS.iter().find(|names| names.iter().any(|known| is_asked(&known)));
        let Some([known, ..]) = found else { return Err(invalid(name, value)) };
        let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
        let detail = format!("Conversion between {known} and {UTF8} is not supported.");
        Err(SqlError::new("0A000", message).detail(detail).hint("Use UTF8, and convert texts in the client."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_by_their_letters_and_digits() {
        let read =
            |value| ClientEncoding::read("client_encoding", value).map(|of| of.0).map_err(|error| error.sqlstate);
        for value in ["utf8", "UTF-8", "Unicode", "u_t-f8"] {
            assert_eq!(read(value), Ok(UTF8));
        }
        assert_eq!(read("sql-ascii"), Ok(SQL_ASCII));
        for value in ["latin1", "ISO-8859-1", "iso88591", "Windows-1252", "win1252", "MULE_INTERNAL", "sjis"] {
            assert_eq!(read(value).unwrap_err(), "0A000", "{value}");
        }
        for value in ["", "5", "foo", "windows", "utf8, latin1"] {
            assert_eq!(read(value).unwrap_err(), "22023", "{value}");
        }
    }
}
