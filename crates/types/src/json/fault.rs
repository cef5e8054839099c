//! What is wrong with a text that is no JSON, and where.

/// How many levels of arrays and objects are read. Each takes a part of the stack.
pub(super) const DEPTH_MAX: usize = 500;

/// Why a text is no JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It ends where something has to follow.
    Ended,
    /// A value has to be here.
    Value,
    /// An item or `]` has to be here.
    FirstItem,
    /// `,` or `]` has to be here.
    NextItem,
    /// A key or `}` has to be here.
    FirstKey,
    /// A key has to be here.
    Key,
    /// `:` has to be here.
    Colon,
    /// `,` or `}` has to be here.
    NextKey,
    /// Something follows the value.
    Behind,
    /// A word or number that there is not.
    Token,
    /// A character in a string that is written with a backslash only.
    Control,
    /// A backslash with something behind it that it does not stand before.
    Escape,
    /// `\u` without four digits.
    Digits,
    /// The character 0, which no text has.
    Zero,
    /// The first half of a character behind another one.
    HighBehindHigh,
    /// The second half of a character without the first, or the first without the second.
    LowAlone,
    /// More levels than are read.
    Depth,
    /// A number with more digits than a `numeric` has.
    Overflow,
}

/// What is wrong with a text, and the bytes of it that are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonFault {
    /// why it is no JSON
    pub what: What,
    /// where the part that is meant begins
    pub start: usize,
    /// where it ends
    pub end: usize,
}

impl JsonFault {
    /// PostgreSQL's code and message.
    pub fn error(self) -> (&'static str, &'static str) {
        match self.what {
            What::Depth => ("54001", "stack depth limit exceeded"),
            What::Overflow => ("22003", "value overflows numeric format"),
            What::Zero => ("22P05", "unsupported Unicode escape sequence"),
            _ => ("22P02", "invalid input syntax for type json"),
        }
    }

    /// PostgreSQL's detail, of the text that it was found in.
    pub fn detail(self, text: &str) -> String {
        let found = text.get(self.start..self.end).unwrap_or_default();
        let expected = |what: &str| format!("Expected {what}, but found \"{found}\".");
        match self.what {
            What::Ended => "The input string ended unexpectedly.".to_owned(),
            What::Value => expected("JSON value"),
            What::FirstItem => expected("array element or \"]\""),
            What::NextItem => expected("\",\" or \"]\""),
            What::FirstKey => expected("string or \"}\""),
            What::Key => expected("string"),
            What::Colon => expected("\":\""),
            What::NextKey => expected("\",\" or \"}\""),
            What::Behind => expected("end of input"),
            What::Token => format!("Token \"{found}\" is invalid."),
            What::Control => {
                let byte = found.bytes().next().unwrap_or_default();
                format!("Character with value 0x{byte:02x} must be escaped.")
            }
            What::Escape => format!("Escape sequence \"{found}\" is invalid."),
            What::Digits => "\"\\u\" must be followed by four hexadecimal digits.".to_owned(),
            What::Zero => "\\u0000 cannot be converted to text.".to_owned(),
            What::HighBehindHigh => "Unicode high surrogate must not follow a high surrogate.".to_owned(),
            What::LowAlone => "Unicode low surrogate must follow a high surrogate.".to_owned(),
            What::Depth => format!("JSON of more than {} levels is not read.", DEPTH_MAX),
            What::Overflow => format!("The number \"{found}\" has too many digits."),
        }
    }
}
