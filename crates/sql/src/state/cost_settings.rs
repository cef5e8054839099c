//! The settings of the cost model: which model counts, its coefficients, and the memory that it takes one operator to have.
//!
//! Where PostgreSQL has a coefficient its name is PostgreSQL's (`random_page_cost`); the others begin with `lstore.`. A database
//! remembers them by `ALTER DATABASE`, as any other setting of sessions, which is where `lstore calibrate` stores what it finds.
use costs::{Coefficient, CostModel, Model, PAGE_BYTES};

use crate::error::{Result, SqlError};
use crate::state::memory_limit;
use crate::state::setting_values::invalid;

/// Which of the two models counts.
const MODEL: &str = "lstore.cost_model";
/// The memory that an operator is taken to have, beyond which it writes to disk.
const MEMORY: &str = "lstore.operator_memory";
/// What PostgreSQL lets a cost be, in its words: any number that is not below zero, and none that is not finite.
const RANGE: &str = "(0 .. 1.79769e+308)";

/// A setting of the model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostSetting {
    Model,
    Memory,
    Coefficient(Coefficient),
}

impl CostSetting {
    fn all() -> impl Iterator<Item = CostSetting> {
        let coefficients = Coefficient::ALL.into_iter().map(CostSetting::Coefficient);
        [CostSetting::Model, CostSetting::Memory].into_iter().chain(coefficients)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CostSetting::Model => MODEL,
            CostSetting::Memory => MEMORY,
            CostSetting::Coefficient(of) => of.setting(),
        }
    }

    /// That of a name.
    pub(crate) fn named(name: &str) -> Option<CostSetting> {
        CostSetting::all().find(|setting| setting.name() == name)
    }

    /// Its value in a model, as it can be set again.
    pub(crate) fn show(self, model: &CostModel) -> String {
        match self {
            CostSetting::Model => model.model.name().to_owned(),
            CostSetting::Memory => memory_limit::show(model.operator_pages.map(|pages| (pages * PAGE_BYTES) as u64)),
            CostSetting::Coefficient(of) => model.coefficients.get(of).to_string(),
        }
    }

    /// The model with the value that another one has for it.
    pub(crate) fn taken(self, model: CostModel, from: &CostModel) -> CostModel {
        match self {
            CostSetting::Model => CostModel { model: from.model, ..model },
            CostSetting::Memory => CostModel { operator_pages: from.operator_pages, ..model },
            CostSetting::Coefficient(of) => {
                CostModel { coefficients: model.coefficients.with(of, from.coefficients.get(of)), ..model }
            }
        }
    }

    /// The model with another value for it.
    pub(crate) fn read(self, model: CostModel, value: &str) -> Result<CostModel> {
        let wrong = || invalid(self.name(), value);
        Ok(match self {
            CostSetting::Model => {
                let named =
                    Model::named(value).ok_or_else(|| wrong().hint("Available values: asymmetric, original."))?;
                CostModel { model: named, ..model }
            }
            CostSetting::Memory => {
                let bytes = memory_limit::parse(value).map_err(|hint| wrong().hint(hint))?;
                CostModel { operator_pages: bytes.map(|bytes| bytes as f64 / PAGE_BYTES), ..model }
            }
            CostSetting::Coefficient(of) => {
                let cost = number(value).ok_or_else(wrong)?;
                if cost < 0.0 || cost.is_infinite() {
                    let (name, cost) = (self.name(), cost.to_string().replace("inf", "Infinity"));
                    let message = format!("{cost} is outside the valid range for parameter \"{name}\" {RANGE}");
                    return Err(SqlError::new("22023", message));
                }
                CostModel { coefficients: model.coefficients.with(of, cost), ..model }
            }
        })
    }
}

/// A number as PostgreSQL reads that of a setting: one that is too large or too near zero for the type is none.
fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    let is_out_of_range =
        number.is_subnormal() || (number.is_infinite() && text.contains(|sign: char| sign.is_ascii_digit()));
    (!number.is_nan() && !is_out_of_range).then_some(number)
}

/// The names of all of them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CostSetting::all().map(CostSetting::name)
}

/// The model that the settings of a statement say, by their names; the default where they say nothing.
pub(crate) fn model_of<'s>(value: impl Fn(&str) -> Option<&'s String>) -> CostModel {
    CostSetting::all().fold(CostModel::default(), |model, setting| match value(setting.name()) {
        Some(text) => setting.read(model, text).unwrap_or(model),
        None => model,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_shown_can_be_set_again_and_gives_the_same_model() {
        let mut model = CostModel::default();
        for (name, value) in [
            ("lstore.cost_model", "Original"),
            ("lstore.operator_memory", "64MB"),
            ("random_page_cost", "1.1"),
            ("lstore.random_write_cost", "49.91840"),
            ("cpu_tuple_cost", "1e-5"),
        ] {
            model = CostSetting::named(name).unwrap().read(model, value).unwrap();
        }
        let shown: BTreeMap<String, String> =
            CostSetting::all().map(|setting| (setting.name().to_owned(), setting.show(&model))).collect();
        assert_eq!((&*shown["lstore.operator_memory"], &*shown["lstore.cost_model"]), ("64MB", "original"));
        assert_eq!(model_of(|name| shown.get(name)), model);
        assert_eq!(model_of(|_| None), CostModel::default());
    }

    #[test]
    fn values_that_are_no_costs_are_refused() {
        for (name, value) in [
            ("random_page_cost", "-1"),
            ("random_page_cost", "much"),
            ("random_page_cost", "nan"),
            ("random_page_cost", "1e-320"),
            ("random_page_cost", "1e400"),
            ("cpu_operator_cost", "inf"),
            ("lstore.cost_model", "symmetric"),
            ("lstore.operator_memory", "2"),
        ] {
            let error = CostSetting::named(name).unwrap().read(CostModel::default(), value).unwrap_err();
            assert_eq!(error.sqlstate, "22023", "{name} = {value}");
        }
    }
}
