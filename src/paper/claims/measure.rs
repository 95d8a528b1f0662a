//! The value of an expression and its uncertainty. Everything an expression reads is gathered once; then it is computed with one weight
//! per seed, again and again: leaving out seeds, resampling them, or one at a time.

use super::expression::{Args, Call, Compare, Condition, Expr, Form, Formula, Selection};
use super::facts;
use super::select::{Cell, Rows, cells};
use crate::paper::stats::{self, Curve, Estimate, Flaw, Spread, bootstrap, fit, jackknife};
use crate::paper::tidy::{DIMENSIONS, Row};
use std::collections::{BTreeMap, BTreeSet};

/// Why there is no number.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// What it needs was not measured.
    Missing(String),
    /// The data do not show it.
    Unresolved { why: String, remedy: Remedy },
    /// The claim asks for something that makes no sense; where in the expression, in bytes.
    Mistake { at: usize, message: String },
    /// The claim does not say which of several points it means. That shows only in the data, so the other claims are judged all the same.
    Ambiguous { at: usize, message: String },
}

/// What would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    Seeds,
    WiderGrid,
    SeedsOrSteps,
    Nothing,
}

/// How seeds enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Average over seeds, then compute; the interval by resampling seeds.
    All,
    /// Compute for every seed, then average.
    Seed,
}

/// What came of an expression at one point.
#[derive(Clone, Debug)]
pub struct Measured {
    pub estimate: Estimate,
    /// How the interval was made, in a few words.
    pub method: &'static str,
}

/// All that an expression reads.
pub struct Evidence<'t> {
    by_selection: BTreeMap<usize, Vec<Point>>,
    /// Columns a selection was told about, and may therefore vary in.
    told: BTreeMap<usize, BTreeSet<String>>,
    pub seeds: usize,
    pub rows: Vec<(&'t str, &'t Row)>,
}

/// A cell with its values in the order of the seeds.
struct Point {
    cell: Cell,
    values: Vec<f64>,
}

impl Point {
    /// The weighted mean over seeds.
    fn mean(&self, weights: &[f64]) -> f64 {
        if self.values.len() == 1 {
            return self.values[0];
        }
        // A seed that is left out must not spoil the mean, even if it is not a number.
        let chosen = self.values.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        let (sum, total) = chosen.fold((0.0, 0.0), |(sum, total), (value, weight)| (sum + value * weight, total + weight));
        sum / total
    }

    fn diverged(&self) -> bool {
        self.values.iter().any(|value| !value.is_finite())
    }
}

impl<'t> Evidence<'t> {
    pub fn gather(rows: &Rows<'t>, tables: &[String], outer: &[Vec<Condition>], expr: &Expr) -> Result<Evidence<'t>, Problem> {
        let mut gathered: BTreeMap<usize, Vec<Cell>> = BTreeMap::new();
        let mut told = BTreeMap::new();
        let mut all = Vec::new();
        for selection in expr.selections() {
            let chosen = rows.select(tables, outer, selection).map_err(Problem::Missing)?;
            let mut points = cells(&chosen);
            if let Some((metric, _)) = &selection.over {
                let below = Selection { metric: metric.clone(), over: None, ..selection.clone() };
                let chosen = rows.select(tables, outer, &below).map_err(Problem::Missing)?;
                points = quotients(points, &cells(&chosen));
                if points.is_empty() {
                    return Err(Problem::Missing(format!("`{}` and `{metric}` are nowhere at the same point", selection.metric)));
                }
                all.extend(chosen);
            }
            gathered.insert(selection.at, points);
            let columns = outer.iter().flatten().chain(&selection.conditions).map(|condition| condition.column.clone());
            told.insert(selection.at, columns.collect());
            all.extend(chosen);
        }
        let seeded = || gathered.values().flatten().filter(|cell| !cell.values.contains_key(&None));
        let union: BTreeSet<i64> = seeded().flat_map(|cell| cell.values.keys().flatten().copied()).collect();
        let common: Vec<i64> =
            union.iter().copied().filter(|seed| seeded().all(|cell| cell.values.contains_key(&Some(*seed)))).collect();
        if common.is_empty() && !union.is_empty() {
            let why = "no seed is there at every point, so nothing can be paired".to_string();
            return Err(Problem::Unresolved { why, remedy: Remedy::Seeds });
        }
        let place = |cell: Cell| {
            let values = match cell.values.get(&None) {
                Some(value) => vec![*value],
                None => common.iter().map(|seed| cell.values[&Some(*seed)]).collect(),
            };
            Point { cell, values }
        };
        let by_selection = gathered.into_iter().map(|(at, cells)| (at, cells.into_iter().map(place).collect())).collect();
        Ok(Evidence { by_selection, told, seeds: common.len(), rows: all })
    }

    /// The estimate of the whole expression.
    pub fn measure(&self, expr: &Expr, per: Per) -> Result<Measured, Problem> {
        let with = |weights: &[f64]| self.value(expr, weights);
        let seeds = self.seeds;
        let whole = vec![1.0; seeds];
        let is = |form: &dyn Fn(&super::expression::Function) -> bool| expr.any_function(form);
        if expr.selections().is_empty() {
            return Ok(Measured { estimate: Estimate::exact(with(&whole)?), method: "computed" });
        }
        if per == Per::Seed && seeds > 0 {
            let one = |seed: usize| with(&(0..seeds).map(|at| f64::from(u8::from(at == seed))).collect::<Vec<_>>());
            let values = (0..seeds).map(one).collect::<Result<Vec<f64>, Problem>>()?;
            return Ok(Measured { estimate: Estimate::of_seeds(&values), method: "t-interval over seeds" });
        }
        if seeds < 2 {
            let value = with(&whole)?;
            let spread = self.residuals(expr, &whole);
            let method = if spread == Spread::Unknown { "one seed, no interval" } else { "from residuals about the line" };
            return Ok(Measured { estimate: Estimate { value, spread, seeds }, method });
        }
        if is(&|function| matches!(function.name, "noise" | "resolution")) {
            let estimate = Estimate { value: with(&whole)?, spread: Spread::Unknown, seeds };
            return Ok(Measured { estimate, method: "spread of seeds, no interval" });
        }
        let counts = is(&|function| matches!(function.name, "node_shift" | "node_spread"));
        let resampled = is(&|function| matches!(function.form, Form::Curve | Form::Curves | Form::Regret));
        if !counts && !resampled {
            return Ok(Measured { estimate: jackknife(seeds, with)?, method: "jackknife over seeds" });
        }
        let value = with(&whole)?;
        let draws = bootstrap(seeds, "claims", |weights| with(weights).ok());
        let lost = draws.iter().filter(|draw| draw.is_none()).count() as f64 / draws.len() as f64;
        if lost > MOST_LOST {
            let why = format!("in {:.0}% of resampled seeds a curve shows no optimum inside the grid", lost * 100.0);
            return Err(Problem::Unresolved { why, remedy: Remedy::SeedsOrSteps });
        }
        let estimate =
            if counts { Estimate::of_counts(value, &draws, seeds) } else { Estimate::from_draws(value, &draws, seeds) };
        Ok(Measured { estimate, method: "bootstrap over paired seeds" })
    }

    /// A lone slope is judged by its residuals where there are no seeds to judge by.
    fn residuals(&self, expr: &Expr, weights: &[f64]) -> Spread {
        match expr {
            Expr::Call(Call { args: Args::Formula(formula), function, at }) if function.form == Form::Line => {
                self.line(formula, *at, weights).map_or(Spread::Unknown, |line| line.spread())
            }
            _ => Spread::Unknown,
        }
    }

    fn value(&self, expr: &Expr, weights: &[f64]) -> Result<f64, Problem> {
        let value = match expr {
            Expr::Number(number) => *number,
            Expr::Negative(inner) => -self.value(inner, weights)?,
            Expr::Binary(operator, left, right) => {
                let (left, right) = (self.value(left, weights)?, self.value(right, weights)?);
                match operator {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
            Expr::Call(call) => self.call(call, weights)?,
        };
        if value.is_nan() {
            return Err(Problem::Unresolved { why: "the result is not a number".into(), remedy: Remedy::Nothing });
        }
        Ok(value)
    }

    fn points(&self, selection: &Selection) -> &[Point] {
        &self.by_selection[&selection.at]
    }

    fn call(&self, call: &Call, weights: &[f64]) -> Result<f64, Problem> {
        match &call.args {
            Args::Selection(selection) => self.summary(call.function.name, selection, weights),
            Args::Share(selection, compare, bound) => {
                let values = self.finite(selection, weights)?;
                let holds = |value: &&f64| match compare {
                    Compare::Equal | Compare::NotEqual => compare.holds(**value, *bound),
                    Compare::Below => **value < *bound,
                    Compare::AtMost => **value <= *bound,
                    Compare::Above => **value > *bound,
                    Compare::AtLeast => **value >= *bound,
                };
                Ok(values.iter().filter(holds).count() as f64 / values.len() as f64)
            }
            Args::Formula(formula) => match call.function.form {
                Form::Line => self.line(formula, call.at, weights).map(|line| line.slope),
                Form::Curve => self.one_curve(call.function.name, formula, call.at, weights),
                _ => self.curves(call.function.name, formula, call.at, weights),
            },
            Args::Regret(formula, at) => {
                let lr = self.value(at, weights)?;
                let curve = self.curve(formula, call.at, weights)?;
                curve
                    .regret(lr.log2())
                    .ok_or_else(|| Problem::Missing(format!("the learning rate {lr} is not in the grid of every point")))
            }
            Args::Number(inner) => {
                let value = self.value(inner, weights)?;
                Ok(match call.function.name {
                    "abs" => value.abs(),
                    "log" => value.ln(),
                    "log2" => value.log2(),
                    "exp" => value.exp(),
                    _ => value.sqrt(),
                })
            }
            Args::Fact(given) => {
                facts::value(call.function.name, given).map_err(|message| Problem::Mistake { at: call.at, message })
            }
        }
    }

    /// The seed means of a selection; all of them have to be numbers.
    fn finite(&self, selection: &Selection, weights: &[f64]) -> Result<Vec<f64>, Problem> {
        let mean = |point: &Point| {
            let value = point.mean(weights);
            if value.is_finite() {
                return Ok(value);
            }
            let why = format!("`{}` is not finite at {}", selection.metric, point.cell.name());
            Err(Problem::Unresolved { why, remedy: Remedy::Nothing })
        };
        self.points(selection).iter().map(mean).collect()
    }

    fn summary(&self, name: &str, selection: &Selection, weights: &[f64]) -> Result<f64, Problem> {
        if name == "count" {
            return Ok(self.points(selection).len() as f64);
        }
        let values = self.finite(selection, weights)?;
        if name == "spread" && values.len() < 2 {
            return Err(Problem::Missing(format!("`spread` needs at least two points of `{}`, there is one", selection.metric)));
        }
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(match name {
            "mean" => stats::mean(&values),
            "median" => stats::median(&values),
            "min" => smallest,
            "max" => largest,
            "sum" => values.iter().sum(),
            "spread" => largest / smallest,
            _ if smallest == largest => smallest,
            _ => {
                let why = format!("`{}` is not the same everywhere: from {smallest} to {largest}", selection.metric);
                return Err(Problem::Unresolved { why, remedy: Remedy::Nothing });
            }
        })
    }

    /// The points of a formula by x, and by the `by` column. What else varies must have been named in a condition.
    fn by_x(&self, formula: &Formula, at: usize) -> Result<BTreeMap<Number, BTreeMap<Number, Vec<&Point>>>, Problem> {
        let points = self.points(&formula.y);
        let told = &self.told[&formula.y.at];
        let used = |column: &str| column == formula.x || formula.by.as_deref() == Some(column) || told.contains(column);
        for dimension in DIMENSIONS.iter().filter(|dimension| !used(dimension.name)) {
            let mut values = points.iter().map(|point| point.cell.dims.get(dimension.name));
            let first = values.next().flatten();
            if let Some(other) = values.find(|value| *value != first) {
                let show = |dim: Option<&crate::paper::tidy::Dim>| dim.map_or("nothing".to_string(), |dim| dim.to_string());
                let message = format!(
                    "`{}` varies with `{}` too ({} and {}); fix it in `where`, or name it under `each`",
                    formula.y.metric,
                    dimension.name,
                    show(first),
                    show(other)
                );
                return Err(Problem::Ambiguous { at, message });
            }
        }
        let mut all: BTreeMap<Number, BTreeMap<Number, Vec<&Point>>> = BTreeMap::new();
        for point in points {
            let coordinate = |column: &str| {
                let message = || format!("`{column}` is not a number in every row of `{}`", formula.y.metric);
                point.cell.number(column).map(Number).ok_or_else(|| Problem::Mistake { at, message: message() })
            };
            let by = match &formula.by {
                Some(column) => coordinate(column)?,
                None => Number(0.0),
            };
            all.entry(by).or_default().entry(coordinate(&formula.x)?).or_default().push(point);
        }
        Ok(all)
    }

    fn line(&self, formula: &Formula, at: usize, weights: &[f64]) -> Result<stats::Line, Problem> {
        let mut points = Vec::new();
        for (x, there) in self.by_x(formula, at)?.into_values().flatten() {
            let y = stats::mean(&there.iter().map(|point| point.mean(weights)).collect::<Vec<_>>());
            let (x, y) = (if formula.log_x { x.0.ln() } else { x.0 }, if formula.log_y { y.ln() } else { y });
            if !x.is_finite() || !y.is_finite() {
                let log = if formula.log_y { "the logarithm of " } else { "" };
                let why = format!("{log}`{}` is not finite at {}", formula.y.metric, there[0].cell.name());
                return Err(Problem::Unresolved { why, remedy: Remedy::Nothing });
            }
            points.push((x, y));
        }
        let few = || Problem::Missing(format!("a slope needs at least two values of `{}`", formula.x));
        fit(&points).ok_or_else(few)
    }

    /// The curves of a formula over the learning rate, by the `by` column.
    fn all_curves(&self, formula: &Formula, at: usize, weights: &[f64]) -> Result<Vec<(f64, Curve)>, Problem> {
        let curve = |by: Number, points: BTreeMap<Number, Vec<&Point>>| {
            let loss = |there: &Vec<&Point>| {
                if there.iter().any(|point| point.diverged()) {
                    return f64::NAN;
                }
                stats::mean(&there.iter().map(|point| point.mean(weights)).collect::<Vec<_>>())
            };
            let log2_lr = points.keys().map(|x| x.0.log2()).collect();
            (by.0, Curve { log2_lr, loss: points.values().map(loss).collect() })
        };
        Ok(self.by_x(formula, at)?.into_iter().map(|(by, points)| curve(by, points)).collect())
    }

    fn curve(&self, formula: &Formula, at: usize, weights: &[f64]) -> Result<Curve, Problem> {
        let (_, curve) = self.all_curves(formula, at, weights)?.swap_remove(0);
        Ok(curve)
    }

    fn one_curve(&self, name: &str, formula: &Formula, at: usize, weights: &[f64]) -> Result<f64, Problem> {
        if matches!(name, "noise" | "resolution") {
            let one = |seed: usize| {
                self.curve(formula, at, &(0..self.seeds).map(|at| f64::from(u8::from(at == seed))).collect::<Vec<_>>())
            };
            let seeds = (0..self.seeds).map(one).collect::<Result<Vec<Curve>, Problem>>()?;
            let power = stats::resolving_power(&seeds).map_err(|flaw| flawed(flaw, ""))?;
            return Ok(if name == "noise" { power.noise } else { power.octaves });
        }
        let curve = self.curve(formula, at, weights)?;
        match name {
            "best" => curve.best().ok_or_else(|| flawed(Flaw::TooShort, "")),
            "argmin" => curve.argmin().map(|at| curve.log2_lr[at].exp2()).ok_or_else(|| flawed(Flaw::TooShort, "")),
            "curvature" => curve.optimum().map(|optimum| optimum.curvature).map_err(|flaw| flawed(flaw, "")),
            _ => curve.optimum().map(|optimum| optimum.log2_lr).map_err(|flaw| flawed(flaw, "")),
        }
    }

    fn curves(&self, name: &str, formula: &Formula, at: usize, weights: &[f64]) -> Result<f64, Problem> {
        let by = formula.by.as_deref().unwrap_or_default();
        let curves = self.all_curves(formula, at, weights)?;
        let here = |value: f64| format!(" at {by}={value}");
        if curves.len() < 2 {
            return Err(Problem::Missing(format!(
                "curves at two or more values of `{by}` are needed, there is one{}",
                here(curves[0].0)
            )));
        }
        if name == "optimum_slope" {
            let mut points = Vec::new();
            for (value, curve) in &curves {
                let optimum = curve.optimum().map_err(|flaw| flawed(flaw, &here(*value)))?;
                points.push((value.log2(), optimum.log2_lr));
            }
            return fit(&points).map(|line| line.slope).ok_or_else(|| flawed(Flaw::TooShort, ""));
        }
        if name == "largest_rise" {
            let best = curves.iter().map(|(value, curve)| curve.best().ok_or_else(|| flawed(Flaw::TooShort, &here(*value))));
            let best = best.collect::<Result<Vec<f64>, Problem>>()?;
            return Ok(best.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::NEG_INFINITY, f64::max));
        }
        // Places in the grid of all rates, so that curves over different parts of it can be compared.
        let mut grid: Vec<f64> = curves.iter().flat_map(|(_, curve)| curve.log2_lr.clone()).collect();
        grid.sort_by(f64::total_cmp);
        grid.dedup_by(|a, b| (*a - *b).abs() < 1e-3);
        let mut nodes = Vec::new();
        for (value, curve) in &curves {
            let lowest = curve.argmin().ok_or_else(|| flawed(Flaw::TooShort, &here(*value)))?;
            // At the edge the true optimum may lie further out: a shift is then at least what is seen, never at most.
            if name == "node_shift" && (lowest == 0 || lowest + 1 == curve.loss.len()) {
                return Err(flawed(Flaw::AtEdge, &here(*value)));
            }
            nodes.push(stats::node_of(&grid, curve.log2_lr[lowest]).expect("the grid holds the rates of all curves") as f64);
        }
        let range = |nodes: &[f64]| {
            nodes.iter().copied().fold(f64::NEG_INFINITY, f64::max) - nodes.iter().copied().fold(f64::INFINITY, f64::min)
        };
        Ok(match name {
            "node_shift" => nodes.iter().map(|node| (node - nodes[0]).abs()).fold(0.0, f64::max),
            _ => range(&nodes),
        })
    }
}

/// The first over the second at every point that both have. A value without a seed goes with every seed.
fn quotients(above: Vec<Cell>, below: &[Cell]) -> Vec<Cell> {
    let of = |cell: Cell| {
        let other = below.iter().find(|other| other.dims == cell.dims)?;
        let value =
            |(seed, value): (&Option<i64>, &f64)| Some((*seed, value / other.values.get(seed).or(other.values.get(&None))?));
        let values: BTreeMap<Option<i64>, f64> = cell.values.iter().filter_map(value).collect();
        (!values.is_empty()).then_some(Cell { dims: cell.dims, values })
    };
    above.into_iter().filter_map(of).collect()
}

/// More resamples than this without an optimum, and the optimum is not resolved.
const MOST_LOST: f64 = 0.1;

fn flawed(flaw: Flaw, whereabouts: &str) -> Problem {
    let remedy = match flaw {
        Flaw::AtEdge | Flaw::TooShort => Remedy::WiderGrid,
        Flaw::TooFlat => Remedy::SeedsOrSteps,
    };
    Problem::Unresolved { why: format!("{}{whereabouts}", flaw.text()), remedy }
}

/// A coordinate that can be ordered.
#[derive(Clone, Copy, PartialEq)]
struct Number(f64);

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
