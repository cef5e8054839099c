//! The text of a uuid, by which its column stores it.

/// The characters of a uuid.
pub(super) const UUID_CHARS: usize = 36;

/// A uuid as its column stores it: canonical lower-case text.
pub(super) fn text_of_uuid(uuid: &[u8; 16]) -> [u8; UUID_CHARS] {
    let mut text = [b'-'; UUID_CHARS];
    let places = (0..UUID_CHARS).filter(|place| !matches!(place, 8 | 13 | 18 | 23));
    for (i, place) in places.enumerate() {
        let digit = uuid[i / 2] >> (4 * (1 - i % 2)) & 0xf;
        text[place] = b"0123456789abcdef"[usize::from(digit)];
    }
    text
}

/// The bytes of a uuid written canonically; both sides of this border write it so.
pub(super) fn uuid_of_text(text: &[u8]) -> [u8; 16] {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    let mut digits = text.iter().filter(|byte| **byte != b'-').map(|byte| digit(*byte));
    std::array::from_fn(|_| digits.next().unwrap_or(0) << 4 | digits.next().unwrap_or(0))
}
