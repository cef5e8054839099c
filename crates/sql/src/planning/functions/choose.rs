//! Which of several functions of one name a call means: PostgreSQL's rules for overloads.
//!
//! A function is a candidate if each argument has a parameter, by its place or its name, and a type that becomes the parameter's by
//! itself. Of several candidates those remain that take most arguments as they are, then those that take most as they are or as the
//! preferred type of its kind; texts without a type are then taken for the kind of type that the candidates want there.
use engine::{DataType, FunctionDefinition};

use crate::interrupt::made_types::MadeFunction;
use crate::values::pg_types::number_of;

/// What is known of the type of an argument from the text of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Its type.
    Known(DataType),
    /// A text without a type, or NULL.
    Untyped,
    /// It has one that only the planner finds.
    Unseen,
}

/// An argument of a call.
pub(super) struct Given {
    pub(super) name: Option<String>,
    pub(super) sight: Sight,
}

/// Why no function was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    None,
    Several,
}

/// A function, and which argument goes to each of its parameters; what no argument goes to has its default.
#[derive(Clone)]
pub(super) struct Candidate<'a> {
    pub(super) function: &'a MadeFunction,
    pub(super) places: Vec<Option<usize>>,
}

/// The one that a call means.
pub(super) fn choose<'a>(
    functions: impl Iterator<Item = &'a MadeFunction>,
    given: &[Given],
) -> Result<Candidate<'a>, Miss> {
    let mut candidates: Vec<Candidate<'a>> = functions.filter_map(|function| candidate(function, given)).collect();
    hide_longer(&mut candidates, given.len());
    let is_exact = |from: Sight, to: DataType| matches!(from, Sight::Known(from) if number_of(from) == number_of(to));
    let is_good =
        |from: Sight, to: DataType| is_exact(from, to) || (matches!(from, Sight::Known(_)) && is_preferred(to));
    keep_best(&mut candidates, |candidate| candidate.count(given, is_exact));
    keep_best(&mut candidates, |candidate| candidate.count(given, is_good));
    keep_kinds(&mut candidates, given);
    match candidates.len() {
        0 => Err(Miss::None),
        1 => candidates.pop().ok_or(Miss::None),
        // Those of schemas that are searched later.
        _ if candidates.iter().all(|other| other.function.types() == candidates[0].function.types()) => {
            Ok(candidates.swap_remove(0))
        }
        _ => Err(Miss::Several),
    }
}

impl Candidate<'_> {
    fn parameter(&self, argument: usize) -> DataType {
        let place = self.places.iter().position(|given| *given == Some(argument)).unwrap_or(0);
        self.function.definition.arguments[place].data_type
    }

    fn count(&self, given: &[Given], is_such: impl Fn(Sight, DataType) -> bool) -> usize {
        given.iter().enumerate().filter(|(at, given)| is_such(given.sight, self.parameter(*at))).count()
    }

    fn is_full(&self) -> bool {
        self.places.iter().all(Option::is_some)
    }
}

/// A function as a candidate, if it takes the arguments.
fn candidate<'a>(function: &'a MadeFunction, given: &[Given]) -> Option<Candidate<'a>> {
    let definition = &function.definition;
    let places = places(definition, given)?;
    let candidate = Candidate { function, places };
    let is_taken = |(at, given): (usize, &Given)| match given.sight {
        Sight::Known(from) => becomes(from, candidate.parameter(at)),
        Sight::Untyped | Sight::Unseen => true,
    };
    given.iter().enumerate().all(is_taken).then_some(candidate)
}

/// Which argument goes to each parameter.
fn places(definition: &FunctionDefinition, given: &[Given]) -> Option<Vec<Option<usize>>> {
    let mut places = vec![None; definition.arguments.len()];
    for (at, argument) in given.iter().enumerate() {
        let place = match &argument.name {
            None => at,
            Some(name) => definition.arguments.iter().position(|argument| argument.name == *name)?,
        };
        if places.get_mut(place)?.replace(at).is_some() {
            return None;
        }
    }
    let is_there =
        |(argument, place): (&engine::FunctionArgument, &Option<usize>)| place.is_some() || argument.default.is_some();
    definition.arguments.iter().zip(&places).all(is_there).then_some(places)
}

/// Gives up candidates that need defaults beside one that needs none and takes the same types.
fn hide_longer(candidates: &mut Vec<Candidate<'_>>, given: usize) {
    let types =
        |candidate: &Candidate<'_>| -> Vec<u32> { (0..given).map(|at| number_of(candidate.parameter(at))).collect() };
    let whole: Vec<Vec<u32>> = candidates.iter().filter(|candidate| candidate.is_full()).map(types).collect();
    candidates.retain(|candidate| candidate.is_full() || !whole.contains(&types(candidate)));
}

fn keep_best<'a>(candidates: &mut Vec<Candidate<'a>>, score: impl Fn(&Candidate<'a>) -> usize) {
    let best = candidates.iter().map(&score).max();
    candidates.retain(|candidate| Some(score(candidate)) == best);
}

/// Of each text without a type keeps the candidates that take it as a text, or else as the one kind that they take.
fn keep_kinds(candidates: &mut Vec<Candidate<'_>>, given: &[Given]) {
    for (at, _) in given.iter().enumerate().filter(|(_, given)| given.sight == Sight::Untyped) {
        if candidates.len() < 2 {
            return;
        }
        let kinds: Vec<char> = candidates.iter().map(|candidate| kind(candidate.parameter(at))).collect();
        let wanted = match kinds.contains(&'S') {
            true => 'S',
            false if kinds.iter().all(|kind| *kind == kinds[0]) => kinds[0],
            false => continue,
        };
        candidates.retain(|candidate| kind(candidate.parameter(at)) == wanted);
        if candidates.iter().any(|candidate| is_preferred(candidate.parameter(at))) {
            candidates.retain(|candidate| is_preferred(candidate.parameter(at)));
        }
    }
}

/// The kind of a type, by PostgreSQL's letters.
fn kind(data_type: DataType) -> char {
    match data_type {
        DataType::Boolean => 'B',
        DataType::SmallInt
        | DataType::Integer
        | DataType::BigInt
        | DataType::Real
        | DataType::Double
        | DataType::Decimal { .. }
        | DataType::Numeric => 'N',
        DataType::Text { .. } | DataType::Char { .. } => 'S',
        DataType::Date | DataType::Timestamp | DataType::TimestampTz | DataType::Time | DataType::TimeTz => 'D',
        DataType::TimeDigits { of, .. } => kind(of.whole()),
        DataType::Interval => 'T',
        DataType::Array(_) => 'A',
        DataType::Enum(_) => 'E',
        DataType::Range(_) => 'R',
        DataType::Geometry(_) => 'G',
        DataType::Network(_) => 'I',
        DataType::Bytea | DataType::Uuid | DataType::Json | DataType::Jsonb => 'U',
    }
}

/// Whether a type is preferred among those of its kind.
fn is_preferred(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Double
            | DataType::Text { max_chars: None }
            | DataType::TimestampTz
            | DataType::Interval
    )
}

/// Whether a value of one type becomes one of another by itself where a function wants that.
pub(super) fn becomes(from: DataType, to: DataType) -> bool {
    let width = |data_type: DataType| match data_type {
        DataType::SmallInt => Some(0),
        DataType::Integer => Some(1),
        DataType::BigInt => Some(2),
        DataType::Decimal { .. } | DataType::Numeric => Some(3),
        DataType::Real => Some(4),
        DataType::Double => Some(5),
        _ => None,
    };
    let detail = |data_type: DataType| match data_type.whole() {
        DataType::Date => Some(0),
        DataType::Timestamp => Some(1),
        DataType::TimestampTz => Some(2),
        _ => None,
    };
    let grows = |rank: &dyn Fn(DataType) -> Option<i32>| rank(from).zip(rank(to)).is_some_and(|(from, to)| from <= to);
    let is_text = kind(from) == 'S' && kind(to) == 'S';
    let is_span = from.whole() == DataType::Time && to == DataType::Interval;
    number_of(from) == number_of(to) || grows(&width) || grows(&detail) || is_text || is_span
}

#[cfg(test)]
mod tests {
    use engine::{FunctionArgument, FunctionBody, FunctionResult, FunctionVolatility};

    use super::*;

    fn function(types: &[DataType]) -> MadeFunction {
        let argument =
            |data_type: &DataType| FunctionArgument { name: String::new(), data_type: *data_type, default: None };
        MadeFunction {
            schema: "public".to_owned(),
            name: "f".to_owned(),
            definition: FunctionDefinition {
                arguments: types.iter().map(argument).collect(),
                result: FunctionResult::Value(DataType::Integer),
                returns_set: false,
                body: String::new(),
                form: FunctionBody::Text,
                volatility: FunctionVolatility::Volatile,
                is_strict: false,
                options: Vec::new(),
            },
        }
    }

    fn chosen(functions: &[MadeFunction], sights: &[Sight]) -> Result<Vec<DataType>, Miss> {
        let given: Vec<Given> = sights.iter().map(|sight| Given { name: None, sight: *sight }).collect();
        choose(functions.iter(), &given).map(|found| found.function.types())
    }

    #[test]
    fn a_call_means_the_function_that_takes_its_arguments_as_they_are() {
        let known = [DataType::Integer, DataType::Double, DataType::TEXT].map(|data_type| function(&[data_type]));
        assert_eq!(chosen(&known, &[Sight::Known(DataType::Integer)]), Ok(vec![DataType::Integer]));
        assert_eq!(chosen(&known, &[Sight::Known(DataType::BigInt)]), Ok(vec![DataType::Double]));
        assert_eq!(chosen(&known, &[Sight::Untyped]), Ok(vec![DataType::TEXT]));
        assert_eq!(chosen(&known, &[Sight::Known(DataType::Boolean)]), Err(Miss::None));
        assert_eq!(chosen(&known, &[]), Err(Miss::None));
        assert_eq!(chosen(&known[..2], &[Sight::Unseen]), Err(Miss::Several));
    }

    #[test]
    fn a_function_without_defaults_hides_one_of_the_same_types_with_some() {
        let [mut long, mut other] =
            [[DataType::Integer; 2], [DataType::TEXT, DataType::Integer]].map(|of| function(&of));
        for function in [&mut long, &mut other] {
            function.definition.arguments[1].default = Some("1".to_owned());
        }
        let known = [function(&[DataType::Integer]), long, other];
        assert_eq!(chosen(&known, &[Sight::Known(DataType::Integer)]), Ok(vec![DataType::Integer]));
        assert_eq!(chosen(&known[..2], &[Sight::Unseen]), Ok(vec![DataType::Integer]));
        assert_eq!(chosen(&known, &[Sight::Unseen]), Err(Miss::Several), "its type decides");
    }

    #[test]
    fn a_call_that_two_functions_take_alike_means_none() {
        let known = [[DataType::Integer, DataType::BigInt], [DataType::BigInt, DataType::Integer]];
        let known = known.map(|types| function(&types));
        let integers = [Sight::Known(DataType::Integer); 2];
        assert_eq!(chosen(&known, &integers), Err(Miss::Several));
    }
}
