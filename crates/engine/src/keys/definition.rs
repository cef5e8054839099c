//! The definition of an index, as the catalog keeps it.
//!
//! ```text
//! CREATE UNIQUE INDEX i ON t (a, lower(b)) WHERE c > 0
//!                             │  └ an expression     └ the predicate: rows for which it does not hold have no entry
//!                             └ a column
//! ```
//!
//! Expressions are texts in SQL, which the engine does not read: see [`ExpressionCompiler`](crate::keys::computed::ExpressionCompiler). An
//! index of columns alone is kept as it was before there were expressions: a list of their positions.
use serde::{Deserialize, Serialize};
use types::geometry::Relation;
use types::{DataType, Geometry, Value};

use super::inverted::TermClass;

/// How an index keeps its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexMethod {
    /// In order, for keys of any kind, in a B+tree.
    #[default]
    Btree,
    /// In order, for one column with values that are numbers of 64 bits at most, in a KISS-Tree.
    Kiss,
    /// Without order, for lookups of whole keys, in a hash table.
    Hash,
    /// By windows over one or two columns of whole numbers, in columns that are distributed by bits.
    Bwd,
    /// By what values overlap: ranges, points, boxes, circles and all others, in a generalized search tree.
    Gist,
    /// By the terms of values, in a B+tree of them: the items of arrays, the keys and values of documents, the trigrams of texts.
    Gin,
    /// PostgreSQL's summaries of neighbouring pages. No index is kept so: one by another method tells this name
    /// ([`IndexDefinition::told`]).
    Brin,
    /// PostgreSQL's trees that part space. No index is kept so: one by another method tells this name.
    Spgist,
}

/// All that is said of a method outside of its structure.
struct MethodFacts {
    name: &'static str,
    number: u32,
    is_ordered: bool,
    takes_only_words: bool,
    is_spatial: bool,
    may_be_unique: bool,
}

impl IndexMethod {
    /// All methods.
    pub const ALL: [IndexMethod; 8] = [
        IndexMethod::Btree,
        IndexMethod::Hash,
        IndexMethod::Kiss,
        IndexMethod::Bwd,
        IndexMethod::Gist,
        IndexMethod::Gin,
        IndexMethod::Brin,
        IndexMethod::Spgist,
    ];

    fn facts(self) -> MethodFacts {
        let of = |name, number, is_ordered| MethodFacts {
            name,
            number,
            is_ordered,
            takes_only_words: false,
            is_spatial: false,
            may_be_unique: true,
        };
        let of_space = |name, number| MethodFacts { is_spatial: true, may_be_unique: false, ..of(name, number, false) };
        match self {
            IndexMethod::Btree => of("btree", 403, true),
            IndexMethod::Kiss => MethodFacts { takes_only_words: true, ..of("kiss", 9_405, true) },
            IndexMethod::Hash => of("hash", 405, false),
            IndexMethod::Bwd => of_space("bwd", 9_406),
            IndexMethod::Gist => of_space("gist", 783),
            IndexMethod::Gin => MethodFacts { may_be_unique: false, ..of("gin", 2742, false) },
            IndexMethod::Brin => MethodFacts { may_be_unique: false, ..of("brin", 3580, false) },
            IndexMethod::Spgist => MethodFacts { may_be_unique: false, ..of("spgist", 4000, false) },
        }
    }

    /// The name in SQL.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The method with this name in SQL.
    pub fn named(name: &str) -> Option<IndexMethod> {
        IndexMethod::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Its number in PostgreSQL's list of access methods, or one that PostgreSQL does not use.
    pub fn number(self) -> u32 {
        self.facts().number
    }

    /// Whether keys can be read in their order, and ranges of them.
    pub fn is_ordered(self) -> bool {
        self.facts().is_ordered
    }

    /// Whether it may refuse a second row with one key.
    pub fn may_be_unique(self) -> bool {
        self.facts().may_be_unique
    }

    /// Whether indexes are kept so. The others are told alone.
    pub fn is_kept(self) -> bool {
        !matches!(self, IndexMethod::Brin | IndexMethod::Spgist)
    }

    /// Whether it is asked for a part of space ([`IndexWindow`](crate::IndexWindow)).
    pub fn is_spatial(self) -> bool {
        self.facts().is_spatial
    }

    /// Whether the rows of a key are found by that key: not where an index knows less of it than a row has.
    pub fn finds_keys(self) -> bool {
        !matches!(self, IndexMethod::Gist | IndexMethod::Gin)
    }

    /// Whether a key must be one value of 64 bits at most.
    pub(crate) fn takes_only_words(self) -> bool {
        self.facts().takes_only_words
    }
}

/// An expression over the columns of one row, with a value that depends on nothing else.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexExpression {
    /// How it is written, as messages show it: a call of a function, or anything else in parentheses.
    pub text: String,
    /// Positions of the columns that it reads, each once.
    pub columns: Vec<usize>,
    /// The type of its values.
    pub data_type: DataType,
}

/// A part of the keys of an index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IndexPart {
    /// The column at this position.
    Column(usize),
    /// The value of an expression.
    Expression(IndexExpression),
}

/// The order that a part of the keys of an index was asked for in. The index is read from either end: it is told, and nothing goes by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PartOrder {
    /// Whether greater values come first.
    pub descending: bool,
    /// Whether NULL comes before all values.
    pub nulls_first: bool,
}

/// When two keys exclude each other, as far as a part of them goes: in an exclusion constraint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exclusion {
    /// If they are equal there.
    Equal,
    /// If they overlap there.
    Overlapping,
    /// If one ends there where the other begins.
    Adjacent,
    /// If they differ there.
    Different,
}

impl Exclusion {
    /// The operator in SQL.
    pub fn operator(self) -> &'static str {
        match self {
            Exclusion::Equal => "=",
            Exclusion::Overlapping => "&&",
            Exclusion::Adjacent => "-|-",
            Exclusion::Different => "<>",
        }
    }

    /// Whether two values are so that the keys that they are parts of may exclude each other.
    pub(crate) fn holds(self, one: &Value, other: &Value) -> bool {
        match (self, one, other) {
            (_, Value::Null, _) | (_, _, Value::Null) => false,
            (Exclusion::Equal, one, other) => one == other,
            (Exclusion::Different, one, other) => one != other,
            (Exclusion::Adjacent, Value::Range(one), Value::Range(other)) => one.is_adjacent(other),
            (Exclusion::Overlapping, Value::Range(one), Value::Range(other)) => one.overlaps(other),
            (Exclusion::Overlapping, Value::Network(one), Value::Network(other)) => one.overlaps(*other),
            (Exclusion::Overlapping, Value::Geometry(one), Value::Geometry(other)) => match (one, other) {
                (Geometry::Box(one), Geometry::Box(other)) => one.is(Relation::Overlaps, other),
                // What is too large to be worked out is in the way.
                (Geometry::Circle(one), Geometry::Circle(other)) => one.is(Relation::Overlaps, other).unwrap_or(true),
                _ => false,
            },
            (Exclusion::Overlapping | Exclusion::Adjacent, ..) => false,
        }
    }
}

/// When a UNIQUE or an exclusion constraint is looked at that may be put off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// At the end of each statement, unless the transaction says otherwise.
    Immediate,
    /// Before the commit, unless the transaction says otherwise.
    Deferred,
}

/// The definition of an index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexDefinition {
    /// Its name, which no other index and no table has.
    pub name: String,
    /// The parts of its keys, in key order.
    #[serde(rename = "columns")]
    pub parts: Vec<IndexPart>,
    /// Whether no two rows may have one key. Keys with NULL in them are not compared.
    pub unique: bool,
    /// Whether NULL equals NULL there, so that keys with NULL in them are compared, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nulls_equal: bool,
    /// When no two rows may have one key, if a transaction may put that off; the index itself is not unique then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferral: Option<Deferral>,
    /// How it keeps them.
    pub method: IndexMethod,
    /// The method that it was asked for, if it is kept by another one. It is told, and nothing goes by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<IndexMethod>,
    /// Whether it stands for a UNIQUE constraint of the table.
    #[serde(default)]
    pub is_constraint: bool,
    /// Whether that is the primary key of a table whose key a transaction may put off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_primary: bool,
    /// A condition: the index is of the rows for which it holds, or of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<IndexExpression>,
    /// For each part when two keys exclude each other, if it stands for an exclusion constraint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion: Vec<Exclusion>,
    /// The terms that each part has, of an inverted index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<TermClass>,
    /// The operator class of each part, by its name, where it is not that of the type, if one is not. Keys have one order whatever it is:
    /// they are told, and nothing goes by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_classes: Vec<Option<String>>,
    /// The collation of each part, by its name, where it is not that of the part, if one is not. Keys are in the order of their bytes
    /// whatever it is: they are told, and nothing goes by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collations: Vec<Option<String>>,
    /// Options with their values that say how pages are filled elsewhere: they are told, and nothing goes by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
    /// The order of each part, if one is not ascending with NULL last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<PartOrder>,
    /// Positions of the columns that it was asked to have beside its keys. Rows are read from the table: they are told, and nothing
    /// goes by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included: Vec<usize>,
    /// The bytes that are searched first in an index of distributed columns, if they were said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<u64>,
}

impl IndexDefinition {
    /// An index of columns, given by position, in a B+tree.
    pub fn new(name: impl Into<String>, columns: &[usize]) -> IndexDefinition {
        IndexDefinition::of(name, columns.iter().map(|column| IndexPart::Column(*column)).collect())
    }

    /// An index of columns and expressions, in a B+tree.
    pub fn of(name: impl Into<String>, parts: Vec<IndexPart>) -> IndexDefinition {
        IndexDefinition {
            name: name.into(),
            parts,
            unique: false,
            nulls_equal: false,
            deferral: None,
            method: IndexMethod::Btree,
            told: None,
            is_constraint: false,
            is_primary: false,
            predicate: None,
            exclusion: Vec::new(),
            classes: Vec::new(),
            named_classes: Vec::new(),
            collations: Vec::new(),
            options: Vec::new(),
            orders: Vec::new(),
            included: Vec::new(),
            budget_bytes: None,
        }
    }

    /// Makes the index refuse a second row with one key.
    pub fn unique(mut self) -> IndexDefinition {
        self.unique = true;
        self
    }

    /// Makes keys with NULL in them be compared as others are.
    pub fn with_equal_nulls(mut self) -> IndexDefinition {
        self.nulls_equal = true;
        self
    }

    /// Makes the index stand for a UNIQUE or an exclusion constraint that a transaction may put off.
    pub fn deferrable(mut self, deferral: Deferral) -> IndexDefinition {
        (self.unique, self.deferral) = (false, Some(deferral));
        self
    }

    /// Whether no two rows may have one key, at once or later.
    pub fn is_unique(&self) -> bool {
        self.unique || (self.deferral.is_some() && self.exclusion.is_empty())
    }

    /// Sets the method.
    pub fn using(mut self, method: IndexMethod) -> IndexDefinition {
        self.method = method;
        self
    }

    /// Notes the method that it was asked for, whichever keeps it.
    pub fn told_as(mut self, asked: IndexMethod) -> IndexDefinition {
        debug_assert!(self.method.is_kept(), "{:?} is told, and keeps nothing", self.method);
        self.told = (asked != self.method).then_some(asked);
        self
    }

    /// The method that is told of it: the one that it was asked for.
    pub fn told_method(&self) -> IndexMethod {
        self.told.unwrap_or(self.method)
    }

    /// Makes it an inverted index, whose parts have these terms.
    pub fn inverted(mut self, classes: Vec<TermClass>) -> IndexDefinition {
        (self.method, self.classes) = (IndexMethod::Gin, classes);
        self
    }

    /// Makes the index refuse a second row with a key that is so beside another one.
    pub fn excluding(mut self, exclusion: Vec<Exclusion>) -> IndexDefinition {
        (self.exclusion, self.is_constraint) = (exclusion, true);
        self
    }

    /// Notes the order of each part.
    pub fn ordered(mut self, orders: Vec<PartOrder>) -> IndexDefinition {
        debug_assert_eq!(orders.len(), self.parts.len(), "an order for each part");
        self.orders = if orders.iter().all(|order| *order == PartOrder::default()) { Vec::new() } else { orders };
        self
    }

    /// The order that the part numbered `at` was asked for in.
    pub fn order(&self, at: usize) -> PartOrder {
        self.orders.get(at).copied().unwrap_or_default()
    }

    /// Notes the operator class of each part that has another one than its type.
    pub fn classed(mut self, classes: Vec<Option<String>>) -> IndexDefinition {
        debug_assert_eq!(classes.len(), self.parts.len(), "a class for each part");
        self.named_classes = if classes.iter().all(Option::is_none) { Vec::new() } else { classes };
        self
    }

    /// Notes the collation of each part that has another one than its column.
    pub fn collated(mut self, collations: Vec<Option<String>>) -> IndexDefinition {
        debug_assert_eq!(collations.len(), self.parts.len(), "a collation for each part");
        self.collations = if collations.iter().all(Option::is_none) { Vec::new() } else { collations };
        self
    }

    /// The operator class of the part numbered `at`, if it is not that of the type.
    pub fn named_class(&self, at: usize) -> Option<&str> {
        self.named_classes.get(at)?.as_deref()
    }

    /// Notes the columns that it was asked to have beside its keys.
    pub fn including(mut self, columns: Vec<usize>) -> IndexDefinition {
        self.included = columns;
        self
    }

    /// Sets the bytes that are searched first, of an index of distributed columns.
    pub fn with_budget(mut self, bytes: u64) -> IndexDefinition {
        self.budget_bytes = Some(bytes);
        self
    }

    /// Limits the index to the rows for which a condition holds.
    pub fn only_where(mut self, predicate: IndexExpression) -> IndexDefinition {
        self.predicate = Some(predicate);
        self
    }

    /// Its expressions, the predicate last.
    pub fn expressions(&self) -> impl Iterator<Item = &IndexExpression> {
        let of_part = |part| match part {
            &IndexPart::Column(_) => None,
            IndexPart::Expression(expression) => Some(expression),
        };
        self.parts.iter().filter_map(of_part).chain(&self.predicate)
    }

    /// Whether keys have to be computed, or some rows have none.
    pub fn is_computed(&self) -> bool {
        self.expressions().next().is_some()
    }

    /// Whether others may refer to a row by its key here, as by a primary key.
    pub(crate) fn is_key(&self) -> bool {
        self.unique && !self.is_computed()
    }

    /// Positions of the columns that a row's key is made of, or worked out from. Of an index of columns alone they are these, in
    /// key order.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let column = |part: &IndexPart| match part {
            IndexPart::Column(column) => Some(*column),
            IndexPart::Expression(_) => None,
        };
        let mut reads: Vec<usize> = self.parts.iter().filter_map(column).collect();
        if self.is_computed() {
            reads.extend(self.expressions().flat_map(|expression| &expression.columns));
            reads.sort_unstable();
            reads.dedup();
        }
        reads
    }
}

/// An index in the log and in checkpoints.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct KeptIndex {
    pub(crate) definition: IndexDefinition,
    /// Whether a record may have got another key than the one that it was inserted with.
    pub(crate) has_changed_keys: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_found_by_its_name_and_has_a_number_of_its_own() {
        for method in IndexMethod::ALL {
            assert_eq!(IndexMethod::named(method.name()), Some(method));
            assert_eq!(IndexMethod::ALL.iter().filter(|other| other.number() == method.number()).count(), 1);
        }
        assert_eq!(IndexMethod::named("Btree"), None);
    }

    #[test]
    fn an_index_of_columns_is_kept_as_it_was_before_there_were_expressions() {
        let before = r#"{"name":"i","columns":[2,0],"unique":true,"method":"kiss","is_constraint":false}"#;
        let definition = IndexDefinition::new("i", &[2, 0]).using(IndexMethod::Kiss).unique();
        assert_eq!(serde_json::to_string(&definition).unwrap(), before);
        assert_eq!(serde_json::from_str::<IndexDefinition>(before).unwrap(), definition);
        let older = r#"{"name":"i","columns":[1],"unique":false,"method":"btree"}"#;
        assert_eq!(serde_json::from_str::<IndexDefinition>(older).unwrap(), IndexDefinition::new("i", &[1]));
    }

    #[test]
    fn expressions_and_predicates_come_back_as_they_were_kept() {
        let of = |text: &str, columns: &[usize]| IndexExpression {
            text: text.into(),
            columns: columns.to_vec(),
            data_type: DataType::Decimal { precision: 9, scale: 2 },
        };
        let parts = vec![IndexPart::Column(4), IndexPart::Expression(of("(a + b)", &[1, 4]))];
        let definition = IndexDefinition::of("i", parts).only_where(of("(c > 0)", &[2]));
        let kept = serde_json::to_string(&definition).unwrap();
        assert_eq!(serde_json::from_str::<IndexDefinition>(&kept).unwrap(), definition);
        assert_eq!((definition.reads(), definition.is_computed()), (vec![1, 2, 4], true));
    }
}
