//! Where a measurement of the theory stands among the dimensions of the tidy tables.

use super::Check;
use crate::paper::scaling::Rule;
use crate::paper::tidy::{Dim, Row};
use std::collections::BTreeMap;

/// The dimensions that several measurements share.
#[derive(Clone, Debug)]
pub struct Place(BTreeMap<String, Dim>);

impl Place {
    pub fn of(check: Check, d: usize) -> Place {
        Place(BTreeMap::new()).at("check", format!("{check:?}")).at("d", d)
    }

    /// This place with one more coordinate.
    pub fn at(&self, name: &str, dim: impl Into<Dim>) -> Place {
        let mut dims = self.0.clone();
        dims.insert(name.to_string(), dim.into());
        Place(dims)
    }

    /// A number measured here. All of them are ratios, so their unit is 1.
    pub fn measured(&self, metric: &str, value: f64) -> Row {
        Row { dims: self.0.clone(), ..Row::new(metric, "1", value) }
    }
}

/// The rules that a single shared layer is measured with, and their names in the tables.
pub const LOOP_RULES: [(Rule, &str); 3] = [(Rule::None, "none"), (Rule::Sqrt, "sqrt"), (Rule::Linear, "linear")];
/// The name of the rule lambda / (N sqrt L).
pub const FACTORISED: &str = "factorised";
