//! The columns of a `CREATE TABLE`: their types and constraints, and what fills them.
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, DataType as SqlType, Expr, GeneratedAs, ObjectName, PrimaryKeyConstraint,
    SequenceOptions as AskedOption, Spanned,
};
use engine::{
    Column, ColumnDefault, ColumnDomain, DataType, Deferral, DomainDefinition, Identity, SequenceOptions, Transaction,
};

use crate::access::default_expressions::next_of_text;
use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::parsing::sequence_options::AskedOptions;
use crate::planning::default_define::define;
use crate::semantics::spelling::collations;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::statements::checks::AskedCheck;
use crate::statements::foreign_keys::AskedKey;
use crate::statements::indexes::{self, Unique, free_name_of};
use crate::syntax::constraint_tokens::NULLS_NOT_DISTINCT;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::values::literals::{Literal, literal};
use crate::values::types::{column_type, domain_of};

/// A column that is to be made.
pub(crate) struct NewColumn<'a> {
    pub(crate) column: Column,
    pub(crate) is_key: bool,
    pub(crate) key_name: Option<String>,
    /// When that key is looked at, if a transaction may put that off.
    pub(crate) key_deferral: Option<Deferral>,
    pub(crate) unique: Option<Unique>,
    pub(crate) checks: Vec<AskedCheck<'a>>,
    pub(crate) foreign_keys: Vec<AskedKey<'a>>,
    /// What there is to say about its type.
    pub(crate) notice: Option<&'static str>,
    /// The domain that it is of.
    pub(crate) domain: Option<(String, DomainDefinition)>,
    filled: Option<Filled<'a>>,
}

/// What fills a column.
enum Filled<'a> {
    Expression(&'a Expr),
    /// The other columns of its row.
    Generated(&'a Expr),
    /// The numbers of a sequence of its own; of an identity column, how strictly.
    Numbers(SequenceOptions, Option<Identity>),
}

/// The column of a definition in a table of this name.
pub(crate) fn read<'a>(definition: &'a ColumnDef, table: &str, source: &Source) -> Result<NewColumn<'a>> {
    let position = source.start(definition.span());
    let name = fold(&definition.name);
    let serial = serial(&definition.data_type);
    let domain = domain_of(&definition.data_type);
    let (data_type, notice) = match (serial, &domain) {
        (Some(data_type), _) => (data_type, None),
        (None, Some((_, domain))) => (domain.base, None),
        (None, None) => column_type(&definition.data_type).map_err(|error| error.at(position))?,
    };
    let mut new = NewColumn {
        column: Column { nullable: serial.is_none(), ..Column::new(name, data_type) },
        is_key: false,
        key_name: None,
        key_deferral: None,
        unique: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        notice,
        domain,
        filled: None,
    };
    if serial.is_some() {
        new.fill(Filled::Numbers(numbers(data_type, &[])?, None), table)?;
    }
    let (mut says_null, mut nulls_equal) = (false, false);
    for option in &definition.options {
        match &option.option {
            ColumnOption::Null => says_null = true,
            ColumnOption::NotNull => new.column.nullable = false,
            ColumnOption::PrimaryKey(constraint) => {
                new.key_deferral = key_deferral(constraint, position, source)?;
                new.is_key = true;
                new.key_name = option.name.as_ref().map(fold);
            }
            ColumnOption::Collation(mark) if is_mark(mark) => nulls_equal = true,
            ColumnOption::Collation(asked) => new.column.collation = collations::of_type(asked, data_type, source)?,
            ColumnOption::Unique(constraint) => {
                let named = (&new.column.name, option.name.as_ref());
                new.unique = Some(Unique::of_column(named.0, named.1, constraint, nulls_equal, source)?);
            }
            ColumnOption::Default(expr) => new.fill(Filled::Expression(expr), table)?,
            ColumnOption::ForeignKey(key) => {
                new.foreign_keys.push(AskedKey::of_column(key, option.name.as_ref(), &new.column.name, source)?);
            }
            ColumnOption::Check(check) => new.checks.push(AskedCheck::read(check, option.name.as_ref(), source)?),
            ColumnOption::Generated {
                generated_as, sequence_options: Some(options), generation_expr: None, ..
            } => new.identify(generated_as, options, table, position)?,
            ColumnOption::Generated { generated_as: GeneratedAs::ExpStored, generation_expr: Some(expr), .. } => {
                new.fill(Filled::Generated(expr), table)?;
            }
            other => return Err(refused(other, &new.column, source, position)),
        }
    }
    if says_null && (new.is_key || !new.column.nullable) {
        let message =
            format!("conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{table}\"", new.column.name);
        return Err(SqlError::syntax(message).at(position));
    }
    Ok(new)
}

/// Whether a collation stands for `NULLS NOT DISTINCT`.
fn is_mark(collation: &ObjectName) -> bool {
    last_part(collation).is_some_and(|name| name == NULLS_NOT_DISTINCT)
}

/// The type of a column that is called after the numbers that fill it.
fn serial(name: &SqlType) -> Option<DataType> {
    let SqlType::Custom(name, modifiers) = name else { return None };
    match name.to_string().to_lowercase().as_str() {
        _ if !modifiers.is_empty() => None,
        "serial" | "serial4" => Some(DataType::Integer),
        "bigserial" | "serial8" => Some(DataType::BigInt),
        "smallserial" | "serial2" => Some(DataType::SmallInt),
        _ => None,
    }
}

/// The options of the sequence of a column.
fn numbers(data_type: DataType, options: &[AskedOption]) -> Result<SequenceOptions> {
    let mut asked = AskedOptions { data_type: Some(data_type), ..AskedOptions::default() };
    for option in options {
        match option {
            AskedOption::IncrementBy(by, _) => asked.increment = Some(number(by)?),
            AskedOption::MinValue(min) => asked.min = Some(min.as_ref().map(number).transpose()?),
            AskedOption::MaxValue(max) => asked.max = Some(max.as_ref().map(number).transpose()?),
            AskedOption::StartWith(start, _) => asked.start = Some(number(start)?),
            AskedOption::Cache(cache) => asked.cache = Some(number(cache)?),
            AskedOption::Cycle(is_off) => asked.cycle = Some(!is_off),
        }
    }
    let options = asked.of_new()?;
    options.check()?;
    Ok(options)
}

fn number(expr: &Expr) -> Result<i64> {
    let Some(Literal::Number(text)) = literal(expr) else {
        return Err(SqlError::syntax(format!("syntax error at or near \"{expr}\"")));
    };
    let out_of_range = || SqlError::new("22003", format!("value \"{text}\" is out of range for type bigint"));
    text.parse().map_err(|_| out_of_range())
}

fn refused(option: &ColumnOption, column: &Column, source: &Source, position: Option<usize>) -> SqlError {
    let what = match option {
        ColumnOption::Generated { .. } | ColumnOption::Identity(_) => "GENERATED",
        _ => "this option",
    };
    let word = what.split(' ').next().unwrap_or(what);
    let position = source.find_word(word).or(position);
    SqlError::unsupported(format!("{what} of column \"{}\"", column.name)).at(position)
}

/// When a primary key is looked at, if a transaction may put that off; one that says more is refused.
pub(crate) fn key_deferral(
    constraint: &PrimaryKeyConstraint,
    position: Option<usize>,
    source: &Source,
) -> Result<Option<Deferral>> {
    let is_plain =
        constraint.index_type.is_none() && constraint.index_options.is_empty() && constraint.index_name.is_none();
    match is_plain {
        true => indexes::deferral(constraint.characteristics.as_ref(), source),
        false => Err(SqlError::unsupported("an option of PRIMARY KEY").at(position)),
    }
}

impl<'a> NewColumn<'a> {
    fn fill(&mut self, filled: Filled<'a>, table: &str) -> Result<()> {
        let is_identity = |filled: &Filled<'_>| matches!(filled, Filled::Numbers(_, Some(_)));
        let name = &self.column.name;
        let is_generated = |filled: &Filled<'_>| matches!(filled, Filled::Generated(_));
        let message = match &self.filled {
            None => {
                self.filled = Some(filled);
                return Ok(());
            }
            Some(before) if is_generated(before) && is_generated(&filled) => {
                format!("multiple generation clauses specified for column \"{name}\" of table \"{table}\"")
            }
            Some(before) if is_generated(before) || is_generated(&filled) => {
                let other = if is_identity(before) || is_identity(&filled) { "identity" } else { "default" };
                format!("both {other} and generation expression specified for column \"{name}\" of table \"{table}\"")
            }
            Some(before) if is_identity(before) && is_identity(&filled) => {
                format!("multiple identity specifications for column \"{name}\" of table \"{table}\"")
            }
            Some(before) if is_identity(before) || is_identity(&filled) => {
                format!("both default and identity specified for column \"{name}\" of table \"{table}\"")
            }
            Some(_) => format!("multiple default values specified for column \"{name}\" of table \"{table}\""),
        };
        Err(SqlError::syntax(message))
    }

    fn identify(
        &mut self,
        strictly: &GeneratedAs,
        options: &[AskedOption],
        table: &str,
        position: Option<usize>,
    ) -> Result<()> {
        let (identity, options) = identity(strictly, options, &self.column).map_err(|error| error.at(position))?;
        self.column.nullable = false;
        self.fill(Filled::Numbers(options, Some(identity)), table)
    }

    /// The expression that it is generated by.
    pub(crate) fn generated(&self) -> Option<&'a Expr> {
        match self.filled {
            Some(Filled::Generated(expr)) => Some(expr),
            _ => None,
        }
    }

    /// What fills the column, which is at this position. Makes its sequence, if it has one.
    pub(crate) fn default(
        &self,
        at: usize,
        table: &str,
        session: &Session,
        write: &mut Write<'_>,
        source: &Source,
    ) -> Result<Option<ColumnDefault>> {
        let own = self.own_default(at, table, session, write, source)?;
        let is_filled = own.is_some() || self.filled.is_some();
        Ok(match (own, self.of_domain(is_filled)) {
            (own, None) => own,
            (Some(own), domain) => Some(ColumnDefault { domain, ..own }),
            (None, Some(domain)) => {
                let expression = self.domain.as_ref().filter(|_| domain.fills).and_then(|(_, of)| of.default.clone());
                let plain = ColumnDefault { column: at, ..ColumnDefault::default() };
                Some(ColumnDefault { expression, domain: Some(domain), ..plain })
            }
        })
    }

    /// What is remembered of the domain that it is of.
    pub(crate) fn of_domain(&self, is_filled: bool) -> Option<ColumnDomain> {
        self.domain.as_ref().map(|(name, _)| ColumnDomain { name: name.clone(), fills: !is_filled })
    }

    fn own_default(
        &self,
        at: usize,
        table: &str,
        session: &Session,
        write: &mut Write<'_>,
        source: &Source,
    ) -> Result<Option<ColumnDefault>> {
        let plain = ColumnDefault { column: at, ..ColumnDefault::default() };
        match &self.filled {
            None | Some(Filled::Generated(_)) => Ok(None),
            Some(Filled::Expression(expr)) => {
                let view = session.view(write.moment()?, Vec::new());
                let text = define(&session.planner, view, expr, &self.column, source)?;
                Ok(text.map(|text| ColumnDefault { expression: Some(text), ..plain }))
            }
            Some(Filled::Numbers(options, identity)) => {
                let filled = filled_from_new_sequence(write.transaction, table, &self.column, *options)?;
                Ok(Some(ColumnDefault { column: at, identity: *identity, ..filled }))
            }
        }
    }
}

/// How strictly an identity column is one, and which numbers fill it.
pub(crate) fn identity(
    strictly: &GeneratedAs,
    options: &[AskedOption],
    column: &Column,
) -> Result<(Identity, SequenceOptions)> {
    let identity = match strictly {
        GeneratedAs::Always => Identity::Always,
        GeneratedAs::ByDefault => Identity::ByDefault,
        GeneratedAs::ExpStored => return Err(SqlError::unsupported("GENERATED")),
    };
    if SequenceOptions::bounds(column.data_type).is_none() {
        return Err(SqlError::new("22023", "identity column type must be smallint, integer, or bigint"));
    }
    Ok((identity, numbers(column.data_type, options)?))
}

/// The default of a column that is filled from a sequence of its own, which is made.
pub(crate) fn filled_from_new_sequence(
    transaction: &mut Transaction,
    table: &str,
    column: &Column,
    options: SequenceOptions,
) -> Result<ColumnDefault> {
    let name = sequence_name(transaction, table, &column.name);
    transaction.create_sequence(&name, options)?;
    let expression = Some(next_of_text(&name));
    Ok(ColumnDefault { expression, sequences: vec![name], ..ColumnDefault::default() })
}

/// The name of the sequence of a column, made as PostgreSQL does.
fn sequence_name(transaction: &Transaction, table: &str, column: &str) -> String {
    free_name_of(transaction, table, &[column.to_owned()], "seq")
}
