//! Made-up experiments with a known truth.

use repro::paper::claims::{self, ClaimsError, Judgement, Verdict, Vocabulary};
use repro::paper::random::Philox;
use repro::paper::tidy::{Row, Table};
use std::collections::BTreeMap;

/// Normal numbers from a fixed seed.
pub struct Noise {
    random: Philox,
    at: u64,
}

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise { random: Philox::new(seed, "synthetic"), at: 0 }
    }

    pub fn normal(&mut self) -> f64 {
        let [u, v] = self.random.uniforms(self.at);
        self.at += 1;
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

pub fn table(name: &str, rows: Vec<Row>) -> Table {
    Table { name: name.into(), rows }
}

/// Judges claims, given as the lines below `claims:`.
pub fn judge(claims: &str, tables: &[Table]) -> Result<Vec<Judgement>, ClaimsError> {
    let text = format!("claims:\n{claims}");
    let file = claims::parse("claims.yaml", &text, Vocabulary::of(tables))?;
    claims::judge(&file, tables, &BTreeMap::new())
}

/// Judges a single claim of one check.
#[track_caller]
pub fn one(table: &Table, fields: &str) -> Judgement {
    let claims = format!("- id: X\n  claim: something\n  table: {}\n  checks:\n    - {{{fields}}}\n", table.name);
    judge(&claims, std::slice::from_ref(table)).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

#[track_caller]
pub fn verdict(table: &Table, fields: &str) -> Verdict {
    one(table, fields).verdict
}

/// A sweep of learning rates: loss = floor + curvature (log2 lr - optimum(N))^2 + noise.
pub struct Sweep {
    pub loops: Vec<i64>,
    /// log2 of the optimum at N=1, and octaves per doubling of N.
    pub optimum: f64,
    pub slope: f64,
    /// Nats per squared octave.
    pub curvature: f64,
    /// Of a seed, common to all its runs, and of a run.
    pub seed_noise: f64,
    pub run_noise: f64,
    pub seeds: usize,
    pub rates: Vec<f64>,
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep {
            loops: vec![1, 2, 4, 8],
            optimum: -9.2,
            slope: 0.0,
            curvature: 0.05,
            seed_noise: 0.03,
            run_noise: 0.002,
            seeds: 3,
            rates: (0..8).map(|at| 2f64.powi(at - 13)).collect(),
        }
    }
}

impl Sweep {
    /// The rows under one rule; the loss falls by `gain` with every doubling of N.
    pub fn rows(&self, rule: &str, gain: f64, noise: &mut Noise) -> Vec<Row> {
        let mut rows = Vec::new();
        for seed in 0..self.seeds {
            let shift = self.seed_noise * noise.normal();
            for &n in &self.loops {
                let doublings = (n as f64).log2();
                for &lr in &self.rates {
                    let away = lr.log2() - self.optimum - self.slope * doublings;
                    let loss = 2.0 - gain * doublings + self.curvature * away * away + shift + self.run_noise * noise.normal();
                    let here = |row: Row| {
                        row.at("node", format!("N{n}-{rule}-lr{lr}-s{seed}"))
                            .at("rule", rule)
                            .at("d", 64i64)
                            .at("L", 2i64)
                            .at("N", n)
                            .at("lr", lr)
                            .at("seed", seed)
                    };
                    rows.push(here(Row::new("eval_loss", "nats/token", loss)));
                    rows.push(here(Row::new("train_flops", "FLOP", 1e12 * n as f64)));
                }
            }
        }
        rows
    }
}

/// R = N^slope with noise of a seed and of a run, at some steps.
pub fn power_law(slope: f64, seeds: usize, steps: i64, sd: f64, noise: &mut Noise) -> Vec<Row> {
    let mut rows = Vec::new();
    for seed in 0..seeds {
        let common = sd * noise.normal();
        for step in 0..steps {
            for doublings in 0..7 {
                let n = 1i64 << doublings;
                let value = (slope * (n as f64).ln() + common + sd * noise.normal()).exp();
                rows.push(Row::new("R", "1", value).at("N", n).at("step", step).at("seed", seed));
            }
        }
    }
    rows
}
