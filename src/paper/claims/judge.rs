//! From claims and tables to verdicts with their reasons.

use super::expression::{Compare, Condition, Test, Value};
use super::file::{Check, CheckKind, Claim, ClaimsFile, Measure};
use super::measure::{Evidence, Measured, Problem, Remedy};
use super::select::{Rows, groups};
use super::text::{flops, interval_text, number};
use super::{ClaimsError, Group, PLAN, Verdict};
use crate::paper::stats::{Interval, LEVEL, Spread};
use crate::paper::tidy::{Dim, Row, Table};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The verdict on a claim, with all it rests on.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    pub id: String,
    pub group: Group,
    pub claim: String,
    pub verdict: Verdict,
    /// Of the check that decided.
    pub measured: Option<f64>,
    pub measured_text: String,
    pub interval: Option<Interval>,
    pub unit: String,
    pub paper: String,
    pub scale: String,
    pub why: String,
    /// What it would take to resolve it.
    pub resolve: Option<String>,
    pub parts: Vec<Part>,
    pub tables: Vec<String>,
    pub artefacts: Vec<Artefact>,
    pub figures: Vec<String>,
    pub note: Option<String>,
}

/// One check.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub name: String,
    pub measure: String,
    pub rule: String,
    pub measured: Option<f64>,
    pub interval: Option<Interval>,
    pub verdict: Verdict,
    pub why: String,
    /// Whether it counts for the verdict.
    pub decides: bool,
    pub method: String,
    pub seeds: usize,
    pub rows: usize,
    /// Where it was judged at several points, all of them.
    pub points: Vec<Point>,
    #[serde(skip)]
    resolve: Option<String>,
}

/// A check at one of several points.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub at: String,
    pub measured: Option<f64>,
    pub interval: Option<Interval>,
    pub verdict: Verdict,
    pub why: String,
}

/// A table that was read, how much of it counted, and its content.
#[derive(Clone, Debug, Serialize)]
pub struct Artefact {
    pub table: String,
    pub rows: usize,
    pub digest: String,
}

/// Judges every claim. `digests` names the content of each table.
pub fn judge(file: &ClaimsFile, tables: &[Table], digests: &BTreeMap<String, String>) -> Result<Vec<Judgement>, ClaimsError> {
    let rows = Rows::of(tables);
    let judge = Judge { file: &file.name, rows: &rows, digests };
    file.claims.iter().map(|claim| judge.claim(claim)).collect()
}

struct Judge<'a, 't> {
    file: &'a str,
    rows: &'a Rows<'t>,
    digests: &'a BTreeMap<String, String>,
}

/// A check that was computed and not yet judged.
struct Computed<'c, 't> {
    check: &'c Check,
    kind: ComputedKind<'c, 't>,
}

enum ComputedKind<'c, 't> {
    Measure {
        measure: &'c Measure,
        points: Vec<(String, Result<Measured, Problem>)>,
        rows: Vec<(&'t str, &'t Row)>,
        seeds: usize,
    },
    AnyOf(Vec<Computed<'c, 't>>),
}

impl<'t> Computed<'_, 't> {
    /// Comparisons that this check makes.
    fn comparisons(&self) -> usize {
        match &self.kind {
            ComputedKind::Measure { points, .. } => points.len(),
            ComputedKind::AnyOf(checks) => checks.iter().map(Computed::comparisons).sum(),
        }
    }

    fn rows(&self) -> Vec<(&'t str, &'t Row)> {
        match &self.kind {
            ComputedKind::Measure { rows, .. } => rows.clone(),
            ComputedKind::AnyOf(checks) => checks.iter().flat_map(Computed::rows).collect(),
        }
    }
}

impl<'t> Judge<'_, 't> {
    fn claim(&self, claim: &Claim) -> Result<Judgement, ClaimsError> {
        let computed = claim.checks.iter().map(|check| self.compute(check)).collect::<Result<Vec<_>, _>>()?;
        let comparisons = computed.iter().filter(|one| one.check.decides).map(Computed::comparisons).sum();
        let parts: Vec<Part> = computed.iter().map(|one| self.part(one, comparisons)).collect();
        let deciding = || parts.iter().filter(|part| part.decides);
        let verdict = deciding().map(|part| part.verdict).max().unwrap_or(Verdict::Inconclusive);
        let headline = deciding().find(|part| part.verdict == verdict);
        let mut seen: BTreeMap<&str, BTreeSet<*const Row>> = BTreeMap::new();
        let mut evidence: Vec<&Row> = Vec::new();
        for (table, row) in computed.iter().flat_map(Computed::rows) {
            if seen.entry(table).or_default().insert(std::ptr::from_ref(row)) {
                evidence.push(row);
            }
        }
        let artefacts = seen
            .iter()
            .map(|(table, rows)| Artefact {
                table: table.to_string(),
                rows: rows.len(),
                digest: self.digests.get(*table).cloned().unwrap_or_default(),
            })
            .collect();
        let mut tables: Vec<String> = Vec::new();
        claim.checks.iter().for_each(|check| tables_of(check, &mut tables));
        let resolve = match verdict {
            Verdict::Inconclusive => {
                let own = deciding().filter(|part| part.verdict == verdict).find_map(|part| part.resolve.clone());
                claim.resolve.clone().or(own)
            }
            _ => None,
        };
        let mut why = reasons(&parts, verdict);
        // A claim that fails is explained where it is told; elsewhere the note stands beside it.
        if let (Verdict::Fail, Some(note)) = (verdict, &claim.note) {
            why = format!("{why}. {note}");
        }
        Ok(Judgement {
            id: claim.id.clone(),
            group: claim.group,
            claim: claim.claim.clone(),
            verdict,
            measured: headline.and_then(|part| part.measured),
            measured_text: measured_text(&parts),
            interval: headline.and_then(|part| part.interval),
            unit: claim.unit.clone(),
            paper: claim.paper.clone(),
            scale: scale(&evidence, self.rows, &tables),
            why,
            resolve,
            parts,
            tables,
            artefacts,
            figures: claim.figures.clone(),
            note: claim.note.clone(),
        })
    }

    fn compute<'c>(&self, check: &'c Check) -> Result<Computed<'c, 't>, ClaimsError> {
        let kind = match &check.kind {
            CheckKind::AnyOf(checks) => {
                ComputedKind::AnyOf(checks.iter().map(|check| self.compute(check)).collect::<Result<_, _>>()?)
            }
            CheckKind::Measure(measure) => self.measure(measure)?,
        };
        Ok(Computed { check, kind })
    }

    fn measure<'c>(&self, measure: &'c Measure) -> Result<ComputedKind<'c, 't>, ClaimsError> {
        let mut rows = Vec::new();
        let mut seeds = 0;
        let mut points = Vec::new();
        for (label, group) in match self.groups(measure) {
            Ok(groups) => groups,
            Err(missing) => {
                points.push((String::new(), Err(Problem::Missing(missing))));
                Vec::new()
            }
        } {
            let outer = [measure.conditions.clone(), group];
            let found = Evidence::gather(self.rows, &measure.tables, &outer, &measure.expr).and_then(|evidence| {
                let measured = evidence.measure(&measure.expr, measure.per);
                seeds = seeds.max(evidence.seeds);
                rows.extend(evidence.rows);
                measured
            });
            if let Err(Problem::Mistake { at, message }) = &found {
                return Err(ClaimsError::at(self.file, measure.source.place_of(*at), message.clone()));
            }
            points.push((label, found));
        }
        Ok(ComputedKind::Measure { measure, points, rows, seeds })
    }

    /// The points at which a measure is taken: one for each value of the `each` columns, with the conditions that lead there.
    fn groups(&self, measure: &Measure) -> Result<Vec<(String, Vec<Condition>)>, String> {
        let selections = measure.expr.selections();
        let (Some(first), false) = (selections.first(), measure.each.is_empty()) else {
            return Ok(vec![(String::new(), Vec::new())]);
        };
        let mut whole = (*first).clone();
        whole.conditions.retain(|condition| !measure.each.contains(&condition.column) || !condition.replaces());
        let rows = self.rows.select(&measure.tables, std::slice::from_ref(&measure.conditions), &whole)?;
        let found = groups(&rows, &measure.each);
        if found.is_empty() {
            return Err(format!("no row of `{}` has {}", first.metric, measure.each.join(" and ")));
        }
        let point = |dims: Vec<(String, Dim)>| {
            let label = dims.iter().map(|(column, dim)| format!("{column}={dim}")).collect::<Vec<_>>().join(", ");
            let condition = |(column, dim): (String, Dim)| {
                let value = match dim {
                    Dim::Text(text) => Value::Text(text),
                    Dim::Int(value) => Value::Number(value as f64),
                    Dim::Real(value) => Value::Number(value),
                };
                Condition { column, test: Test::Is(Compare::Equal, value) }
            };
            (label, dims.into_iter().map(condition).collect())
        };
        Ok(found.into_iter().map(point).collect())
    }

    fn part(&self, computed: &Computed<'_, 't>, comparisons: usize) -> Part {
        let (name, decides) = (computed.check.name.clone(), computed.check.decides);
        match &computed.kind {
            ComputedKind::AnyOf(checks) => {
                let parts: Vec<Part> = checks.iter().map(|check| self.part(check, comparisons)).collect();
                // One that holds is enough; all have to be refuted.
                let best = parts.iter().min_by_key(|part| part.verdict).expect("the file refuses a list of no checks");
                let whys: Vec<String> = parts.iter().map(|part| format!("{}: {}", part.name, part.why)).collect();
                Part {
                    name,
                    measure: parts.iter().map(|part| part.measure.as_str()).collect::<Vec<_>>().join("; or "),
                    rule: parts.iter().map(|part| part.rule.as_str()).collect::<Vec<_>>().join("; or "),
                    measured: best.measured,
                    interval: best.interval,
                    verdict: best.verdict,
                    why: match best.verdict {
                        Verdict::Pass => best.why.clone(),
                        _ if parts.iter().all(|part| part.why == best.why) => best.why.clone(),
                        _ => whys.join("; "),
                    },
                    decides,
                    method: best.method.clone(),
                    seeds: best.seeds,
                    rows: parts.iter().map(|part| part.rows).sum(),
                    points: parts.iter().flat_map(|part| part.points.clone()).collect(),
                    resolve: best.resolve.clone(),
                }
            }
            ComputedKind::Measure { measure, points, rows, seeds } => {
                let judged: Vec<(Point, f64, Option<String>)> =
                    points.iter().map(|(at, found)| self.point(measure, at, found, comparisons, rows)).collect();
                let worst = judged.iter().map(|(point, ..)| point.verdict).max().unwrap_or(Verdict::Inconclusive);
                let candidates = judged.iter().filter(|(point, ..)| point.verdict == worst);
                let tightest = candidates.min_by(|a, b| a.1.total_cmp(&b.1)).expect("a measure has at least one point");
                let (shown, _, resolve) = tightest;
                let all = judged.len();
                let bad = judged.iter().filter(|(point, ..)| point.verdict == worst).count();
                let why = match (all, worst) {
                    (1, _) => shown.why.clone(),
                    (_, Verdict::Pass) => format!("{} at {}, the tightest of {all}", shown.why, shown.at),
                    (_, _) => format!("{} at {} ({bad} of {all} points)", shown.why, shown.at),
                };
                let distinct: BTreeSet<*const Row> = rows.iter().map(|(_, row)| std::ptr::from_ref(*row)).collect();
                let method = points.iter().find_map(|(_, found)| found.as_ref().ok()).map_or("", |measured| measured.method);
                Part {
                    name,
                    measure: measure.text().to_string(),
                    rule: measure.expect.clone(),
                    measured: shown.measured,
                    interval: shown.interval,
                    verdict: worst,
                    why,
                    decides,
                    method: if measure.point { "by the number alone".into() } else { method.to_string() },
                    seeds: *seeds,
                    rows: distinct.len(),
                    points: if all > 1 { judged.iter().map(|(point, ..)| point.clone()).collect() } else { Vec::new() },
                    resolve: resolve.clone(),
                }
            }
        }
    }

    /// One point's verdict, how comfortable it is, and what would resolve it.
    fn point(
        &self,
        measure: &Measure,
        at: &str,
        found: &Result<Measured, Problem>,
        comparisons: usize,
        rows: &[(&'t str, &'t Row)],
    ) -> (Point, f64, Option<String>) {
        let open = |measured: Option<f64>, interval: Option<Interval>, why: String, resolve: Option<String>| {
            let point = Point { at: at.to_string(), measured, interval, verdict: Verdict::Inconclusive, why };
            (point, f64::NEG_INFINITY, resolve)
        };
        let measured = match found {
            Ok(measured) => measured,
            Err(Problem::Missing(what)) => return open(None, None, what.clone(), self.paper_cost(measure)),
            Err(Problem::Unresolved { why, remedy }) => {
                let resolve = match remedy {
                    Remedy::Seeds => Some("run every point with the same seeds".to_string()),
                    Remedy::WiderGrid => {
                        Some("widen the grid of learning rates until the lowest loss lies inside it".to_string())
                    }
                    Remedy::SeedsOrSteps => {
                        let cost = self
                            .cost_per_seed(measure, rows)
                            .map(|cost| format!(" ({} per seed)", flops(cost)))
                            .unwrap_or_default();
                        Some(format!("more seeds{cost}, or longer runs, whose curves are steeper"))
                    }
                    Remedy::Nothing => None,
                };
                return open(None, None, why.clone(), resolve);
            }
            Err(Problem::Mistake { at, message } | Problem::Ambiguous { at, message }) => {
                let place = ClaimsError::at(self.file, measure.source.place_of(*at), message.clone());
                return open(None, None, place.to_string(), Some("say in the claims file which points are meant".into()));
            }
        };
        let estimate = &measured.estimate;
        let (value, interval) = (Some(estimate.value), estimate.interval(LEVEL).filter(|_| !measure.point));
        let shown = interval_text(estimate.value, interval);
        if !measure.point && estimate.spread != Spread::Exact && estimate.seeds < measure.seeds {
            let need = measure.seeds;
            let resolve = self.more_seeds(measure, rows, estimate.seeds, need);
            let why = format!("{shown} from {}, and {need} are needed", seeds_text(estimate.seeds));
            return open(value, interval, why, Some(resolve));
        }
        let mut verdicts = Vec::new();
        for rule in &measure.rules {
            match rule.judge(estimate, comparisons, measure.point) {
                Some(verdict) => verdicts.push(verdict),
                None => {
                    let resolve = self.more_seeds(measure, rows, estimate.seeds, 3);
                    let why = format!("{shown} from {}, which gives no interval", seeds_text(estimate.seeds));
                    return open(value, None, why, Some(resolve));
                }
            }
        }
        let verdict = verdicts.iter().copied().max().expect("the file refuses an empty list of rules");
        let comfort = measure.rules.iter().map(|rule| rule.comfort(estimate)).fold(f64::INFINITY, f64::min);
        let expect = &measure.expect;
        let why = match verdict {
            Verdict::Pass => format!("{shown}: `{expect}` holds"),
            Verdict::Fail => format!("{shown}: `{expect}` does not hold"),
            Verdict::Inconclusive => format!("{shown}: too uncertain to tell `{expect}`"),
        };
        let resolve = (verdict == Verdict::Inconclusive).then(|| {
            let undecided = measure.rules.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Inconclusive);
            let margin = undecided.map(|(rule, _)| rule.margin(estimate.value)).fold(f64::INFINITY, f64::min);
            match estimate.seeds_for(margin) {
                _ if estimate.seeds < 2 => self.more_seeds(measure, rows, estimate.seeds, 3),
                Some(need) if need > estimate.seeds => self.more_seeds(measure, rows, estimate.seeds, need),
                _ => format!("no number of seeds tells {} from its bound; a larger scale may", number(estimate.value)),
            }
        });
        (Point { at: at.to_string(), measured: value, interval, verdict, why }, comfort, resolve)
    }

    fn more_seeds(&self, measure: &Measure, rows: &[(&'t str, &'t Row)], have: usize, need: usize) -> String {
        let need = need.max(have + 1);
        let more = need - have;
        let cost = self
            .cost_per_seed(measure, rows)
            .map(|cost| format!(", {} of training", flops(cost * more as f64)))
            .unwrap_or_default();
        let instead = if more > MANY_SEEDS { ", or a larger scale" } else { "" };
        format!("about {need} seeds instead of {have} ({more} more{cost}){instead}")
    }

    /// What one more seed of all that was read would cost.
    fn cost_per_seed(&self, measure: &Measure, rows: &[(&'t str, &'t Row)]) -> Option<f64> {
        let nodes: BTreeSet<&str> = rows.iter().filter_map(|(_, row)| row.text("node")).collect();
        let seeds: BTreeSet<i64> = rows.iter().filter_map(|(_, row)| row.int("seed")).collect();
        let all = self.rows.all(&measure.tables, "train_flops");
        let sum: f64 =
            all.iter().filter(|row| row.text("node").is_some_and(|node| nodes.contains(node))).map(|row| row.value).sum();
        (sum > 0.0 && !seeds.is_empty()).then(|| sum / seeds.len() as f64)
    }

    /// What the runs of the paper's own plan that a measure asks for would cost.
    fn paper_cost(&self, measure: &Measure) -> Option<String> {
        let asked: Vec<Condition> = measure
            .conditions
            .iter()
            .filter(|condition| matches!(condition.column.as_str(), "L" | "N" | "lr"))
            .cloned()
            .collect();
        let all = self.rows.all(&[PLAN.to_string()], "train_flops");
        let trains = |table: &String| matches!(table.as_str(), "lr-transfer" | "depth-transfer" | "post-training");
        if asked.is_empty() || all.is_empty() || !measure.tables.iter().any(trains) {
            return None;
        }
        let chosen: Vec<&Row> =
            all.into_iter().filter(|row| asked.iter().all(|condition| super::select::matches(condition, row))).collect();
        let runs = chosen.len();
        let cost: f64 = chosen.iter().map(|row| row.value).sum();
        (runs > 0).then(|| format!("{} in {runs} runs of the `paper` profile", flops(cost)))
    }
}

/// Beyond so many more seeds another scale may be cheaper.
const MANY_SEEDS: usize = 30;

fn seeds_text(seeds: usize) -> String {
    match seeds {
        0 => "no seeds".into(),
        1 => "one seed".into(),
        more => format!("{more} seeds"),
    }
}

fn tables_of(check: &Check, found: &mut Vec<String>) {
    match &check.kind {
        CheckKind::AnyOf(checks) => checks.iter().for_each(|check| tables_of(check, found)),
        CheckKind::Measure(measure) if measure.expr.selections().is_empty() => {}
        CheckKind::Measure(measure) => {
            for table in &measure.tables {
                if !found.contains(table) {
                    found.push(table.clone());
                }
            }
        }
    }
}

/// The values of all checks that decide, in a line.
fn measured_text(parts: &[Part]) -> String {
    const MOST: usize = 4;
    let deciding: Vec<&Part> = parts.iter().filter(|part| part.decides).collect();
    let one = |part: &&Part| match part.measured {
        Some(value) if deciding.len() == 1 => interval_text(value, part.interval),
        Some(value) => number(value),
        None => "-".to_string(),
    };
    let mut texts: Vec<String> = deciding.iter().take(MOST).map(one).collect();
    if deciding.len() > MOST {
        texts.push(format!("{} more", deciding.len() - MOST));
    }
    texts.join(", ")
}

fn reasons(parts: &[Part], verdict: Verdict) -> String {
    const MOST: usize = 2;
    let deciding: Vec<&Part> = parts.iter().filter(|part| part.decides).collect();
    let those: Vec<&&Part> = deciding.iter().filter(|part| part.verdict == verdict).collect();
    match (verdict, deciding.as_slice()) {
        (_, [only]) => only.why.clone(),
        (Verdict::Pass, all) => format!("all {} checks hold", all.len()),
        (_, all) => {
            let mut texts: Vec<String> = those.iter().take(MOST).map(|part| format!("{}: {}", part.name, part.why)).collect();
            if those.len() > MOST {
                texts.push(format!("{} more of {} checks", those.len() - MOST, all.len()));
            }
            let mut texts: Vec<String> = texts.into_iter().collect();
            // The same reason for several checks, such as a missing table, is told once.
            if those.len() > 1 && those.iter().all(|part| part.why == those[0].why) {
                texts = vec![those[0].why.clone()];
            }
            texts.join("; ")
        }
    }
}

/// The size of the experiment behind some rows, in words.
fn scale(rows: &[&Row], all: &Rows<'_>, tables: &[String]) -> String {
    if rows.is_empty() {
        return if tables.is_empty() { "the paper's own, computed" } else { "nothing measured" }.into();
    }
    let ints = |column: &str| rows.iter().filter_map(|row| row.int(column)).collect::<BTreeSet<i64>>();
    let list = |values: &BTreeSet<i64>| match (values.first(), values.last(), values.len()) {
        (Some(first), Some(last), more) if more > 4 => format!("{first}..{last}"),
        _ => values.iter().map(i64::to_string).collect::<Vec<_>>().join(","),
    };
    let mut parts = Vec::new();
    for column in ["d", "L", "N"] {
        let values = ints(column);
        if !values.is_empty() {
            parts.push(format!("{column}={}", list(&values)));
        }
    }
    let mut rates: Vec<u64> = rows.iter().filter_map(|row| row.number("lr")).map(f64::to_bits).collect();
    rates.sort_unstable();
    rates.dedup();
    if rates.len() > 1 {
        parts.push(format!("{} rates", rates.len()));
    }
    let seeds = ints("seed").len();
    if seeds > 0 {
        parts.push(if seeds == 1 { "1 seed".into() } else { format!("{seeds} seeds") });
    }
    let nodes: BTreeSet<&str> = rows.iter().filter_map(|row| row.text("node")).collect();
    let tokens = all.every("tokens").filter(|row| row.text("node").is_some_and(|node| nodes.contains(node))).map(|row| row.value);
    if let Some(tokens) = tokens.reduce(f64::max) {
        let (size, unit) = match tokens {
            tokens if tokens >= 1e9 => (tokens / 1e9, "G"),
            tokens if tokens >= 1e6 => (tokens / 1e6, "M"),
            tokens => (tokens / 1e3, "k"),
        };
        parts.push(format!("{size:.1}{unit} tokens"));
    } else if let Some(last) = ints("step").last().filter(|last| **last > 0) {
        parts.push(if *last == 1 { "1 step".into() } else { format!("{last} steps") });
    }
    parts.join(", ")
}
