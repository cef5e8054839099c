//! What operators say of the types of parameters that stand beside them.
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::{ArrayItem, DataType, GeometryKind, NetworkKind};

pub(super) fn is_time(data_type: Option<DataType>) -> bool {
    matches!(data_type.map(DataType::whole), Some(DataType::Date | DataType::Timestamp | DataType::TimestampTz))
}

pub(super) fn is_arithmetic(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

pub(super) fn is_space(data_type: Option<DataType>) -> bool {
    matches!(data_type, Some(DataType::Range(_) | DataType::Geometry(_) | DataType::Network(_)))
}

/// The type of a parameter beside a range, a shape or an address: that of the other operand, but a point where a shape is moved by
/// one, and a number where an address is. Beside `point <@` it may be of several.
pub(super) fn beside_space(op: &BinaryOperator, other: Option<DataType>) -> Option<DataType> {
    match other {
        Some(DataType::Geometry(_)) if is_arithmetic(op) => Some(DataType::Geometry(GeometryKind::Point)),
        Some(DataType::Geometry(GeometryKind::Point)) if *op == BinaryOperator::ArrowAt => None,
        Some(DataType::Network(_)) if *op == BinaryOperator::Plus => Some(DataType::BigInt),
        Some(DataType::Network(NetworkKind::Cidr)) => Some(DataType::Network(NetworkKind::Inet)),
        other => other,
    }
}

/// Whether values of a type are made of others, so that operators ask for those.
pub(super) fn is_whole(data_type: DataType) -> bool {
    matches!(data_type, DataType::Jsonb | DataType::HSTORE | DataType::Array(_))
}

pub(super) fn asks_parts(op: &BinaryOperator) -> bool {
    use BinaryOperator::{
        ArrowAt, AtArrow, HashArrow, HashLongArrow, HashMinus, PGOverlap, Question, QuestionAnd, QuestionPipe,
        StringConcat,
    };

    matches!(
        op,
        AtArrow
            | ArrowAt
            | PGOverlap
            | StringConcat
            | Question
            | QuestionPipe
            | QuestionAnd
            | HashArrow
            | HashLongArrow
            | HashMinus
    )
}

/// The type of what stands beside a document, where it is another one: keys, and paths of them.
pub(super) fn beside_document(op: &BinaryOperator) -> Option<DataType> {
    use BinaryOperator::{HashArrow, HashLongArrow, HashMinus, Question, QuestionAnd, QuestionPipe};

    match op {
        Question => Some(DataType::TEXT),
        QuestionPipe | QuestionAnd | HashArrow | HashLongArrow | HashMinus => Some(DataType::Array(ArrayItem::TEXT)),
        _ => None,
    }
}

/// The type of a parameter in arithmetic: PostgreSQL takes the operator whose operands are of one type, where there is one.
pub(super) fn beside_time(op: &BinaryOperator, other: Option<DataType>, is_left: bool) -> Option<DataType> {
    use BinaryOperator::{Divide, Minus, Multiply, Plus};

    match (op, other.map(DataType::whole)?) {
        (Minus, DataType::Jsonb) if is_left => Some(DataType::TEXT),
        (Plus, DataType::Timestamp | DataType::TimestampTz) => Some(DataType::Interval),
        (Plus, DataType::Date) => None,
        (Multiply | Divide, DataType::Interval) => Some(DataType::Double),
        (_, other) => Some(other),
    }
}

/// The type of what is computed of numbers of two types.
pub(super) fn wider(left: Option<DataType>, right: Option<DataType>) -> Option<DataType> {
    let (Some(of_left), Some(of_right)) = (left, right) else { return left.or(right) };
    let place = |data_type| match data_type {
        DataType::SmallInt => Some(0),
        DataType::Integer => Some(1),
        DataType::BigInt => Some(2),
        DataType::Decimal { .. } | DataType::Numeric => Some(3),
        DataType::Real => Some(4),
        DataType::Double => Some(5),
        _ => None,
    };
    match (place(of_left), place(of_right)) {
        // Of a real and a number of another kind.
        (Some(4), Some(other)) | (Some(other), Some(4)) if other != 4 => Some(DataType::Double),
        (Some(of_left), Some(of_right)) if of_right > of_left => right,
        _ => left,
    }
}

pub(super) fn is_number(data_type: DataType) -> bool {
    matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt)
}

/// Whether an operator takes bits of two integers of one type.
pub(super) fn beside_bits(op: &BinaryOperator) -> bool {
    use BinaryOperator::{BitwiseAnd, BitwiseOr, BitwiseXor, PGBitwiseXor};
    matches!(op, BitwiseAnd | BitwiseOr | BitwiseXor | PGBitwiseXor)
}

pub(super) fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}
