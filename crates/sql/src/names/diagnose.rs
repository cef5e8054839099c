//! DataFusion's errors in PostgreSQL's words: SQLSTATE, message, and where in the statement.
use arrow_schema::ArrowError;
use datafusion::common::{Diagnostic, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::tokenizer::Location;
use engine::{DataType, EnumType};

use crate::error::SqlError;
use crate::names::{planner_messages, with_suggestion};
use crate::syntax::identifiers::shown;
use crate::syntax::source::Source;
use crate::values::pg_types;
use crate::values::types::type_name;

/// The error that a user sees for one that DataFusion gave.
pub(crate) fn diagnose(error: &DataFusionError, source: &Source) -> SqlError {
    match error {
        DataFusionError::Diagnostic(diagnostic, inner) => diagnose(inner, source).at(place(diagnostic, source)),
        DataFusionError::Context(_, inner) => diagnose(inner, source),
        DataFusionError::Shared(inner) => diagnose(inner, source),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => diagnose(first, source),
            None => SqlError::new("XX000", "the query failed"),
        },
        DataFusionError::External(inner) => external(inner.as_ref(), source),
        DataFusionError::ArrowError(inner, _) => arrow(inner),
        DataFusionError::SchemaError(inner, _) => schema(inner, source),
        DataFusionError::SQL(inner, _) => source.parser_error((**inner).clone()),
        DataFusionError::Plan(text) => planning(text, source),
        DataFusionError::NotImplemented(text) if text.contains("OuterReferenceColumn") => {
            SqlError::unsupported("this form of a correlated or lateral subquery")
        }
        DataFusionError::NotImplemented(text) if text.contains("does not support logical expression") => {
            unsupported_expression(text)
        }
        DataFusionError::NotImplemented(text)
            if text.contains(" expression: Some(") && text.contains("Unsupported ") =>
        {
            let clause = between(text, "Unsupported ", " expression").unwrap_or("LIMIT");
            SqlError::unsupported(format!("{clause} that is a subquery, or changes from call to call"))
                .hint("Work the number out first, and pass it as a parameter; or filter by row_number().")
        }
        DataFusionError::NotImplemented(text) if let Some(name) = text.strip_prefix("Unsupported SQL type ") => {
            SqlError::unsupported(format!("type {}", name.trim().to_lowercase()))
        }
        DataFusionError::NotImplemented(text) => SqlError::new("0A000", format!("not supported: {}", clean(text))),
        DataFusionError::ResourcesExhausted(text) => SqlError::new("53200", "out of memory").detail(clean(text)).hint(
            "SHOW lstore.query_memory says what a query may take, and SET lstore.query_memory = '...' gives it more.",
        ),
        DataFusionError::Execution(text) if let Some(error) = planner_messages::in_words(text, source) => error,
        DataFusionError::Execution(text) => by_text(text).unwrap_or_else(|| SqlError::new("22000", clean(text))),
        DataFusionError::IoError(inner) => SqlError::new("58030", format!("could not spill to disk: {inner}")),
        DataFusionError::ExecutionJoin(inner) => SqlError::new("XX000", format!("internal error: {inner}")),
        other => {
            let text = clean(&other.strip_backtrace());
            planning_or(&text, source).unwrap_or_else(|| SqlError::new("XX000", text))
        }
    }
}

/// Expressions that are left over when everything that can be made a join is one.
fn unsupported_expression(text: &str) -> SqlError {
    let kind = text.split("logical expression ").nth(1).unwrap_or_default();
    if kind.starts_with("WindowFunction") {
        return SqlError::new("42P20", "window functions are not allowed here")
            .hint("Filter by it outside, in a query FROM this one.");
    }
    SqlError::new("0A000", format!("not supported: {}", clean(text)))
}

fn place(diagnostic: &Diagnostic, source: &Source) -> Option<usize> {
    let start = diagnostic.span?.start;
    source.offset(Location { line: start.line, column: start.column })
}

/// Errors that travelled through DataFusion in a box.
fn external(error: &(dyn std::error::Error + 'static), source: &Source) -> SqlError {
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return diagnose(error, source);
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return arrow(error);
    }
    if let Some(error) = error.downcast_ref::<SqlError>() {
        return error.clone();
    }
    match error.downcast_ref::<engine::Error>() {
        Some(error) => SqlError::new(error.sqlstate(), error.to_string()),
        None => {
            let text = error.to_string();
            by_text(&text).unwrap_or_else(|| SqlError::new("XX000", clean(&text)))
        }
    }
}

fn arrow(error: &ArrowError) -> SqlError {
    match error {
        ArrowError::DivideByZero => SqlError::new("22012", "division by zero"),
        ArrowError::ArithmeticOverflow(text) => out_of_range(text),
        ArrowError::ExternalError(inner) => external(inner.as_ref(), &Source::new("")),
        ArrowError::CastError(text) | ArrowError::ParseError(text) | ArrowError::ComputeError(text) => {
            by_text(text).unwrap_or_else(|| SqlError::new("22P02", clean(text)))
        }
        other => {
            let text = other.to_string();
            by_text(&text).unwrap_or_else(|| SqlError::new("22000", clean(&text)))
        }
    }
}

/// The type of which a value is out of range, as far as the text says.
fn out_of_range(text: &str) -> SqlError {
    const TYPES: [(&str, &str); 4] =
        [("Int16", "smallint"), ("Int32", "integer"), ("Int64", "bigint"), ("Date32", "date")];
    let target = text.rsplit_once(" to type ").map_or(text, |(_, target)| target);
    let known = TYPES.iter().find(|(arrow, _)| target.contains(arrow));
    let error = match known {
        Some((_, name)) => SqlError::new("22003", format!("{name} out of range")),
        None => SqlError::new("22003", "value out of range"),
    };
    error.detail(clean(text))
}

fn schema(error: &SchemaError, source: &Source) -> SqlError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            if let Some(relation) = &field.relation
                && !valid_fields.iter().any(|valid| valid.relation.as_ref() == Some(relation))
            {
                let message = format!("missing FROM-clause entry for table \"{}\"", shown(relation.table()));
                return SqlError::new("42P01", message).at(source.find_word(relation.table()));
            }
            let name = match &field.relation {
                Some(relation) => format!("{}.{}", shown(relation.table()), field.name),
                None => format!("\"{}\"", field.name),
            };
            let names: Vec<String> = valid_fields.iter().map(|valid| valid.name.clone()).collect();
            let error = SqlError::new("42703", format!("column {name} does not exist"));
            let place = field.relation.as_ref().and_then(|table| source.find_column(table.table(), &field.name));
            with_suggestion(error, &field.name, &names).at(place.or_else(|| source.find_word(&field.name)))
        }
        SchemaError::AmbiguousReference { field } => {
            let message = format!("column reference \"{}\" is ambiguous", field.name);
            SqlError::new("42702", message).at(source.find_word(&field.name))
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } => SqlError::new(
            "42712",
            format!(
                "column \"{name}\" of \"{}\" is there twice: give each table its own alias",
                shown(qualifier.table())
            ),
        ),
        SchemaError::DuplicateUnqualifiedField { name } => {
            SqlError::new("42701", format!("column \"{name}\" specified more than once"))
        }
    }
}

fn planning(text: &str, source: &Source) -> SqlError {
    planning_or(text, source).unwrap_or_else(|| SqlError::new("42601", clean(text)))
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

/// What is said where full-text search is asked for.
pub(crate) const NO_TEXT_SEARCH: &str =
    "There is no full-text search. LIKE, ILIKE and ~ search texts, by an index of gin_trgm_ops where there is one.";

/// Whether a function is one of PostgreSQL's full-text search.
fn is_of_text_search(name: &str) -> bool {
    let is_named =
        ["ts_rank", "ts_rank_cd", "ts_headline", "ts_delete", "ts_rewrite", "setweight", "querytree", "numnode"];
    ["to_tsvector", "to_tsquery", "plainto_tsquery", "phraseto_tsquery", "websearch_to_tsquery", "json_to_tsvector"]
        .into_iter()
        .chain(["jsonb_to_tsvector", "array_to_tsvector", "tsvector_to_array"])
        .chain(is_named)
        .any(|known| known == name)
}

/// Errors of the planner that are known by their text only.
fn planning_or(text: &str, source: &Source) -> Option<SqlError> {
    if let Some(name) = between(text, "table function '", "' not found") {
        let message = format!("function {name} does not exist");
        return Some(SqlError::new("42883", message).at(source.find_word(name)));
    }
    if let Some(name) = between(text, "table '", "' not found") {
        return Some(unknown_table(name, source));
    }
    if let Some(error) = operands(text).or_else(|| planner_messages::in_words(text, source)) {
        return Some(error);
    }
    if let Some(name) = between(text, "Invalid function '", "'").filter(|name| is_window_function(name)) {
        let message = format!("window function {name} requires an OVER clause");
        return Some(SqlError::new("42809", message).at(source.find_word(name)));
    }
    if let Some(name) = between(text, "Invalid function '", "'").filter(|name| is_of_text_search(name)) {
        let error = SqlError::unsupported(format!("function {name}")).hint(NO_TEXT_SEARCH);
        return Some(error.at(source.find_word(name)));
    }
    if let Some(name) = between(text, "Invalid function '", "'") {
        let error = SqlError::new("42883", format!("function {name} does not exist")).at(source.find_word(name));
        return Some(match between(text, "Did you mean '", "'") {
            Some(near) if near.len().abs_diff(name.len()) < 3 => error.hint(format!("Perhaps you meant {near}.")),
            _ => error,
        });
    }
    if let Some(error) = arguments(text, source) {
        return Some(error);
    }
    if text.contains("Failed to coerce arguments") || text.contains("No function matches") {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or(text);
        return Some(SqlError::new("42883", clean(first)));
    }
    if text.contains("Cannot coerce")
        || text.contains("Cannot infer common")
        || text.contains("There isn't result type")
    {
        return Some(SqlError::new("42883", clean(text)).hint("You might need to add explicit type casts."));
    }
    for (clause, sqlstate) in [("LIMIT", "2201W"), ("OFFSET", "2201X")] {
        if text.contains(clause) && text.contains(" must be >=") {
            return Some(SqlError::new(sqlstate, format!("{clause} must not be negative")));
        }
    }
    if text.contains("Aggregate functions are not allowed in the WHERE clause") {
        return Some(SqlError::new("42803", "aggregate functions are not allowed in WHERE"));
    }
    if let Some(column) = between(text, "column \"", "\" must appear in the GROUP BY") {
        // A table is told without its schema.
        let column =
            if column.split('.').count() == 3 { column.split_once('.').map_or(column, |it| it.1) } else { column };
        let message =
            format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function");
        return Some(SqlError::new("42803", message).at(source.find_word(column.rsplit('.').next().unwrap_or(column))));
    }
    if text.contains("must be in the GROUP BY") || text.contains("must appear in the GROUP BY") {
        return Some(SqlError::new("42803", clean(text)));
    }
    by_text(text)
}

/// Errors of what is no truth, no number and no array where one is needed.
fn operands(text: &str) -> Option<SqlError> {
    if let Some((_, found)) = text.split_once("Unary operator 'NOT' requires a boolean expression, got ") {
        let found = sql_name(found.trim());
        return Some(SqlError::mismatch(format!("argument of NOT must be type boolean, not type {found}")));
    }
    if let Some((_, found)) = text.split_once("Cannot create filter with non-boolean predicate ")
        && let Some((predicate, found)) = found.split_once("' returning ")
    {
        let literal = predicate.split_once("Int64(").and_then(|(_, number)| number.trim_end_matches(')').parse().ok());
        let is_integer = literal.is_some_and(|number: i64| i32::try_from(number).is_ok());
        let found = if is_integer { "integer".to_owned() } else { sql_name(found.trim()) };
        return Some(SqlError::mismatch(format!("argument of WHERE must be type boolean, not type {found}")));
    }
    if text.contains("Unary operator '-' only supports") {
        let error =
            SqlError::new("42883", "operator does not exist: - of a value that is neither a number nor an interval");
        return Some(error.hint("You might need to add an explicit type cast."));
    }
    if text.contains("in SetComparison") {
        let (left, right) = (between(text, "expr type ", " can't cast to ")?, between(text, " can't cast to ", " in "));
        let item = right.and_then(|right| between(right, "List(", ")"));
        let right = item.map_or_else(|| sql_name(right.unwrap_or_default()), |item| format!("{}[]", sql_name(item)));
        let message = format!("operator does not exist between {} and {right}", sql_name(left));
        let hint = "An array stands in ANY or ALL by itself, and not as the column of a subquery.";
        return Some(SqlError::new("42883", message).hint(hint));
    }
    None
}

/// Whether a function is one of windows alone.
fn is_window_function(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "cume_dist",
        "dense_rank",
        "first_value",
        "lag",
        "last_value",
        "lead",
        "nth_value",
        "ntile",
        "percent_rank",
        "rank",
        "row_number",
    ];
    NAMES.contains(&name)
}

/// Errors of a function's arguments.
fn arguments(text: &str, source: &Source) -> Option<SqlError> {
    const HINT: &str =
        "No function matches the given name and argument types. You might need to add explicit type casts.";
    if let Some((name, types)) =
        between(text, "the given name and argument types '", ")'").and_then(|call| call.split_once('('))
    {
        let name = name.to_ascii_lowercase();
        let types: Vec<String> = listed(types).into_iter().map(sql_name).collect();
        let message = format!("function {name}({}) does not exist", types.join(", "));
        return Some(SqlError::new("42883", message).at(source.find_word(&name)).hint(HINT));
    }
    let name = between(text, "Function '", "' failed to match any signature")
        .or_else(|| between(text, "Function '", "' user-defined coercion failed"))
        .or_else(|| between(text, "Failed to coerce arguments to satisfy a call to '", "' function"))?;
    let name = name.to_ascii_lowercase();
    let message = format!("function {name} does not take arguments of these types");
    Some(SqlError::new("42883", message).at(source.find_word(&name)).hint("You might need to add explicit type casts."))
}

/// The items of a list, of which each may have commas in parentheses.
fn listed(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let between = |at: char| {
        depth += i32::from(at == '(') - i32::from(at == ')');
        at == ',' && depth == 0
    };
    list.split(between).map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn unknown_table(name: &str, source: &Source) -> SqlError {
    let parts: Vec<&str> = name.split('.').collect();
    match parts[..] {
        [_, schema, table] if schema != crate::names::tables::SCHEMA => {
            let message = format!("relation \"{schema}.{table}\" does not exist");
            let is_spelled = !crate::names::schemas::is_temporary(schema);
            let message = if is_spelled { message } else { format!("relation \"{table}\" does not exist") };
            SqlError::new("42P01", message).at(source.find_word(schema).or_else(|| source.find_word(table)))
        }
        _ => {
            // The catalog's and the schema's name were put in front by the planner.
            let table = name.strip_prefix("lstore.public.").unwrap_or(name);
            SqlError::new("42P01", format!("relation \"{table}\" does not exist")).at(source.find_word(table))
        }
    }
}

/// Errors of values, from any source.
fn by_text(text: &str) -> Option<SqlError> {
    let lower = text.to_ascii_lowercase();
    if lower.contains("divide by zero") || lower.contains("division by zero") {
        return Some(SqlError::new("22012", "division by zero"));
    }
    if let Some(value) = between(text, "Cannot cast string '", "' to value of ") {
        let arrow = text.split("' to value of ").nth(1).and_then(|rest| rest.split_whitespace().next())?;
        return Some(bad_text(&sql_name(arrow), value));
    }
    if let Some(rest) = text.split("Error parsing timestamp from '").nth(1) {
        return Some(bad_text("timestamp", rest.split('\'').next().unwrap_or(rest)));
    }
    if let Some((_, why)) = text.split_once("regex parse error:") {
        let why = why.rsplit_once("error: ").map_or(why, |(_, why)| why);
        return Some(SqlError::new("2201B", format!("invalid regular expression: {}", why.trim())));
    }
    if lower.contains("overflow") || lower.contains("can't cast value") || lower.contains("out of range") {
        return Some(out_of_range(text));
    }
    if lower.contains("ntile requires a positive integer") && !lower.contains("null") {
        return Some(SqlError::new("22014", "argument of ntile must be greater than zero"));
    }
    if lower.contains("negative count not allowed") {
        return Some(SqlError::new("22011", "negative substring length not allowed"));
    }
    if lower.contains("field position must not be zero") {
        return Some(SqlError::new("22023", "field position must not be zero"));
    }
    if let Some((_, text)) = text.split_once("nvalid input syntax for type interval: ") {
        return Some(SqlError::new("22007", format!("invalid input syntax for type interval: {}", clean(text))));
    }
    if lower.contains("is too large to store") || lower.contains("is too small to store") {
        return Some(SqlError::new("22003", "numeric field overflow").detail(clean(text)));
    }
    if lower.contains("scalar subquery") && lower.contains("more than one row")
        || lower.contains("returned more than one row")
    {
        return Some(SqlError::new("21000", "more than one row returned by a subquery used as an expression"));
    }
    None
}

fn bad_text(data_type: &str, value: &str) -> SqlError {
    let code = crate::values::syntax_code(data_type);
    SqlError::new(code, format!("invalid input syntax for type {data_type}: \"{value}\""))
}

fn sql_name(arrow: &str) -> String {
    if let Some(of) = arrow.strip_prefix("Timestamp(s, \"").and_then(|zone| EnumType::of_zone(zone.split('"').next()?))
    {
        return pg_types::shown_name(DataType::Enum(of));
    }
    let name = match arrow {
        "Boolean" => "boolean",
        "Int8" | "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        "Float32" => "real",
        "Float64" => "double precision",
        "Date32" | "Date64" => "date",
        "Utf8View" => "text",
        "LargeUtf8" => "json",
        "LargeBinary" => "jsonb",
        "Utf8" | "Null" => "unknown",
        "BinaryView" => "bytea",
        "Binary" => "numeric",
        name if let Some(width) = name.strip_prefix("FixedSizeBinary(") => {
            let width = width.trim_end_matches(')').parse().unwrap_or(0);
            return type_name(&arrow_schema::DataType::FixedSizeBinary(width));
        }
        name if name.starts_with("Decimal") => "numeric",
        name if name.starts_with("Timestamp") && name.contains('"') => "timestamp with time zone",
        name if name.starts_with("Timestamp") => "timestamp",
        name if name.starts_with("Interval") => "interval",
        name if name.starts_with("Time") => "time",
        other => other,
    };
    name.to_owned()
}

/// The first paragraph of a message without the prefixes that wrapping put in front and without a stack trace.
fn clean(text: &str) -> String {
    const PREFIXES: [&str; 15] = [
        "External error: ",
        "Arrow error: ",
        "Execution error: ",
        "Error during planning: ",
        "Internal error: ",
        "Schema error: ",
        "Optimizer rule ",
        "This feature is not implemented: ",
        "Cast error: ",
        "Compute error: ",
        "Parser error: ",
        "Invalid argument error: ",
        "Arithmetic overflow: ",
        "Not yet implemented: ",
        "type_coercion\ncaused by\n",
    ];
    let mut text = text.split("\n\nbacktrace:").next().unwrap_or(text);
    if let Some(end) = text.find(".\nThis issue was likely caused by a bug") {
        text = &text[..end];
    }
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    text.trim().to_owned()
}
