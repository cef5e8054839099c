//! Points, boxes and circles from text, with the brackets that PostgreSQL lets them have:
//!
//! ```text
//! point    (x,y)              x,y
//! box      ((x,y),(x,y))      (x,y),(x,y)      x,y,x,y
//! circle   <(x,y),r>          ((x,y),r)        (x,y),r      x,y,r
//! ```
use super::{Circle, Geometry, GeometryFault, GeometryKind, Point, Rectangle};

type Result<T> = std::result::Result<T, GeometryFault>;

impl Geometry {
    /// The shape that a text stands for.
    ///
    /// # Errors
    /// [`GeometryFault::Syntax`], [`GeometryFault::Number`].
    pub fn parse(kind: GeometryKind, text: &str) -> Result<Geometry> {
        let mut reader = Reader(text);
        let shape = match kind {
            GeometryKind::Point => Geometry::Point(reader.point()?),
            GeometryKind::Box => reader.corners()?,
            GeometryKind::Circle => reader.circle()?,
        };
        if reader.0.is_empty() { Ok(shape) } else { Err(GeometryFault::Syntax) }
    }
}

/// The rest of a text.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches(is_space);
    }

    /// Passes a character, if it is the next one.
    fn passes(&mut self, c: char) -> bool {
        let rest = self.0.strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Passes a bracket and the space behind it.
    fn close(&mut self, bracket: char) -> Result<()> {
        if !self.passes(bracket) {
            return Err(GeometryFault::Syntax);
        }
        self.skip_space();
        Ok(())
    }

    /// Passes a bracket if another one follows it.
    fn opens_twice(&mut self) -> bool {
        let inner = self.0.strip_prefix('(').map(|rest| rest.trim_start_matches(is_space));
        match inner.filter(|inner| inner.starts_with('(')) {
            Some(inner) => {
                self.0 = inner;
                true
            }
            None => false,
        }
    }

    fn point(&mut self) -> Result<Point> {
        self.skip_space();
        let has_bracket = self.passes('(');
        let x = self.number()?;
        if !self.passes(',') {
            return Err(GeometryFault::Syntax);
        }
        let y = self.number()?;
        if has_bracket {
            self.close(')')?;
        }
        Ok(Point::new(x, y))
    }

    fn corners(&mut self) -> Result<Geometry> {
        self.skip_space();
        let is_alone = self.0.rfind('(') == Some(0);
        let has_bracket = self.opens_twice() || is_alone && self.passes('(');
        let first = self.point()?;
        self.passes(',');
        let second = self.point()?;
        self.passes(',');
        if has_bracket {
            self.close(')')?;
        }
        Ok(Geometry::Box(Rectangle::of_corners(first, second)))
    }

    fn circle(&mut self) -> Result<Geometry> {
        self.skip_space();
        let bracket = if self.passes('<') { Some('>') } else { self.opens_twice().then_some(')') };
        let center = self.point()?;
        self.passes(',');
        let radius = self.number()?;
        if radius < 0.0 {
            return Err(GeometryFault::Syntax);
        }
        match bracket {
            Some('>') if self.0.starts_with(')') => self.close(')')?,
            Some(bracket) => self.close(bracket)?,
            None => {}
        }
        Ok(Geometry::Circle(Circle { center, radius }))
    }

    /// A number with the space around it.
    fn number(&mut self) -> Result<f64> {
        self.skip_space();
        let length = number_length(self.0).ok_or(GeometryFault::Syntax)?;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        self.skip_space();
        let value: f64 = text.parse().map_err(|_| GeometryFault::Syntax)?;
        let is_digits = text.bytes().any(|byte| byte.is_ascii_digit());
        let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
        let is_lost = value == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
        if is_digits && (value.is_infinite() || is_lost) {
            return Err(GeometryFault::Number(text.to_owned()));
        }
        Ok(value)
    }
}

/// How long the number is with which a text begins.
fn number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    for word in ["infinity", "inf", "nan"] {
        let found = text.get(sign..sign + word.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(word)) {
            return Some(sign + word.len());
        }
    }
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = if signed <= bytes.len() { digits(signed) } else { 0 };
        end = if exponent > 0 { signed + exponent } else { end };
    }
    Some(end)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}
