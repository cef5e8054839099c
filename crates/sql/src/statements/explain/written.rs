//! A plan as text, JSON, YAML or XML, in PostgreSQL's forms.
//!
//! The text names what an operator works on behind its kind, with costs and times in parentheses; the other forms have the same as
//! named properties, which programs read:
//!
//! ```text
//! Seq Scan on t  (cost=0.00..8.75 rows=500 width=8) (actual time=0.000..0.120 rows=3 loops=1)
//!   Filter: (b > 3)
//!   Rows Removed by Filter: 497
//! ```
use super::nodes::Node;
use super::operators::Detail;
use super::options::{Format, Options};

/// What is told of a statement beside its plan: milliseconds, as far as they are asked for.
#[derive(Default)]
pub(super) struct Summary {
    pub(super) planning_ms: Option<f64>,
    pub(super) execution_ms: Option<f64>,
}

/// A value of a property.
enum Property {
    Text(String),
    Number(String),
    Flag(bool),
    Group(Vec<(&'static str, Property)>),
    /// of texts or groups, each of which has this name where a form asks for one
    List(&'static str, Vec<Property>),
}

/// The lines of a plan; but for the text they are one value.
pub(super) fn written(plan: &Node, options: &Options, summary: &Summary) -> Vec<String> {
    if options.format == Format::Text {
        let mut lines = Vec::new();
        text(plan, options, 0, &mut lines);
        for (name, ms) in [("Planning Time", summary.planning_ms), ("Execution Time", summary.execution_ms)] {
            lines.extend(ms.map(|ms| format!("{name}: {ms:.3} ms")));
        }
        return lines;
    }
    let ms = |ms: f64| Property::Number(format!("{ms:.3}"));
    let mut whole = vec![("Plan", Property::Group(properties(plan, options, None)))];
    whole.extend(summary.planning_ms.map(|time| ("Planning Time", ms(time))));
    if let Some(time) = summary.execution_ms {
        whole.push(("Triggers", Property::List("Trigger", Vec::new())));
        whole.push(("Execution Time", ms(time)));
    }
    let mut out = String::new();
    match options.format {
        Format::Xml => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n");
            xml(&whole, 4, &mut out);
            out.push_str("  </Query>\n</explain>");
        }
        Format::Yaml => {
            yaml(&whole, 2, &mut out);
            out.replace_range(..2, "- ");
            out.truncate(out.trim_end().len());
        }
        _ => {
            out.push_str("[\n  ");
            json(&Property::Group(whole), 2, &mut out);
            out.push_str("\n]");
        }
    }
    vec![out]
}

#[recursive::recursive]
fn text(node: &Node, options: &Options, depth: usize, lines: &mut Vec<String>) {
    let mut line = match depth {
        0 => node.told.title.clone(),
        _ => format!("{:indent$}->  {}", "", node.told.title, indent = 6 * depth - 4),
    };
    let cost = &node.cost;
    if options.costs {
        line += &format!(
            "  (cost={:.2}..{:.2} rows={:.0} width={:.0})",
            cost.startup, cost.total, cost.given.rows, cost.given.width
        );
    }
    if let Some(run) = &node.measured {
        let gap = if options.costs { " " } else { "  " };
        line += &match options.timing {
            true => format!("{gap}(actual time={:.3}..{:.3} rows={} loops=1)", run.startup_ms, run.total_ms, run.rows),
            false => format!("{gap}(actual rows={} loops=1)", run.rows),
        };
    }
    lines.push(line);
    for (name, detail) in details(node) {
        let detail = match detail {
            Detail::Text(text) => text,
            Detail::Keys(keys) => keys.join(", "),
        };
        lines.push(format!("{:indent$}{name}: {detail}", "", indent = 6 * depth + 2));
    }
    node.inputs.iter().for_each(|input| text(input, options, depth + 1, lines));
}

/// What all forms tell of a node by name.
fn details(node: &Node) -> Vec<(&'static str, Detail)> {
    let mut details = node.told.details.clone();
    details.extend(node.filter().map(|filter| ("Filter", Detail::Text(filter))));
    details.extend(node.removed.map(|rows| ("Rows Removed by Filter", Detail::Text(rows.to_string()))));
    let spilled = node.measured.map_or(0, |run| run.spilled_bytes);
    if spilled > 0 {
        details.push(("Spilled", Detail::Text(format!("{}kB", spilled.div_ceil(1024)))));
    }
    details
}

#[recursive::recursive]
fn properties(node: &Node, options: &Options, place: Option<&str>) -> Vec<(&'static str, Property)> {
    let number = |number: String| Property::Number(number);
    let mut found = vec![("Node Type", Property::Text(node.told.kind.clone()))];
    found.extend(place.map(|place| ("Parent Relationship", Property::Text(place.to_owned()))));
    found.push(("Parallel Aware", Property::Flag(false)));
    found.push(("Async Capable", Property::Flag(false)));
    found.extend(node.told.facts.iter().map(|(name, fact)| (*name, Property::Text(fact.clone()))));
    if options.costs {
        found.push(("Startup Cost", number(format!("{:.2}", node.cost.startup))));
        found.push(("Total Cost", number(format!("{:.2}", node.cost.total))));
        found.push(("Plan Rows", number(format!("{:.0}", node.cost.given.rows))));
        found.push(("Plan Width", number(format!("{:.0}", node.cost.given.width))));
    }
    if let Some(run) = &node.measured {
        if options.timing {
            found.push(("Actual Startup Time", number(format!("{:.3}", run.startup_ms))));
            found.push(("Actual Total Time", number(format!("{:.3}", run.total_ms))));
        }
        found.push(("Actual Rows", number(run.rows.to_string())));
        found.push(("Actual Loops", number("1".to_owned())));
    }
    let told = details(node).into_iter().map(|(name, detail)| match detail {
        Detail::Text(text) if text.parse::<u64>().is_ok() => (name, Property::Number(text)),
        Detail::Text(text) => (name, Property::Text(text)),
        Detail::Keys(keys) => (name, Property::List("Item", keys.into_iter().map(Property::Text).collect())),
    });
    found.extend(told);
    if !node.inputs.is_empty() {
        let places = ["Outer", "Inner"].into_iter().chain(std::iter::repeat("Member"));
        let inputs = node.inputs.iter().zip(places);
        let inputs = inputs.map(|(input, place)| Property::Group(properties(input, options, Some(place))));
        found.push(("Plans", Property::List("Plan", inputs.collect())));
    }
    found
}

#[recursive::recursive]
fn json(property: &Property, indent: usize, out: &mut String) {
    match property {
        Property::Group(properties) => {
            out.push('{');
            for (at, (name, property)) in properties.iter().enumerate() {
                out.push_str(if at == 0 { "\n" } else { ",\n" });
                *out += &format!("{:width$}\"{name}\": ", "", width = indent + 2);
                json(property, indent + 2, out);
            }
            *out += &format!("\n{:indent$}}}", "");
        }
        Property::List(_, items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "\n" } else { ",\n" });
                *out += &format!("{:width$}", "", width = indent + 2);
                json(item, indent + 2, out);
            }
            *out += &format!("\n{:indent$}]", "");
        }
        other => single(other, out),
    }
}

/// A property that is one value, as JSON and YAML write it.
fn single(property: &Property, out: &mut String) {
    match property {
        Property::Text(text) => out.push_str(&quoted(text)),
        Property::Number(number) => out.push_str(number),
        Property::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Property::Group(_) | Property::List(..) => {}
    }
}

#[recursive::recursive]
fn yaml(properties: &[(&'static str, Property)], indent: usize, out: &mut String) {
    for (name, property) in properties {
        *out += &format!("{:indent$}{name}: ", "");
        match property {
            Property::Group(inner) => {
                out.push('\n');
                yaml(inner, indent + 2, out);
                continue;
            }
            Property::List(_, items) => {
                for item in items {
                    out.push('\n');
                    let Property::Group(inner) = item else {
                        *out += &format!("{:width$}- ", "", width = indent + 2);
                        single(item, out);
                        continue;
                    };
                    let begins = out.len() + indent + 2;
                    yaml(inner, indent + 4, out);
                    out.replace_range(begins..begins + 2, "- ");
                    out.truncate(out.trim_end_matches('\n').len());
                }
            }
            other => single(other, out),
        }
        out.push('\n');
    }
}

fn xml(properties: &[(&'static str, Property)], indent: usize, out: &mut String) {
    properties.iter().for_each(|(name, property)| element(&name.replace(' ', "-"), property, indent, out));
}

#[recursive::recursive]
fn element(tag: &str, property: &Property, indent: usize, out: &mut String) {
    let shown = match property {
        Property::Text(text) => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
        Property::Number(number) => number.clone(),
        Property::Flag(flag) => flag.to_string(),
        Property::Group(_) | Property::List(..) => {
            *out += &format!("{:indent$}<{tag}>\n", "");
            match property {
                Property::Group(inner) => xml(inner, indent + 2, out),
                Property::List(of, items) => items.iter().for_each(|item| element(of, item, indent + 2, out)),
                _ => {}
            }
            *out += &format!("{:indent$}</{tag}>\n", "");
            return;
        }
    };
    *out += &format!("{:indent$}<{tag}>{shown}</{tag}>\n", "");
}

/// A text in JSON's quotes, which YAML reads as well.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            sign if sign < ' ' => out += &format!("\\u{:04x}", u32::from(sign)),
            sign => out.push(sign),
        }
    }
    out.push('"');
    out
}
