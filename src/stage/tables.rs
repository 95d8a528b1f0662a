//! `tables`: the paper's four tables, computed from the code that trains, beside this profile's values; and tables of what was measured.
//! Each as LaTeX, Markdown and CSV.

use std::error::Error;
use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::own_outputs;
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::paper::config::{RawInit, RawModel, RawOptimiser, RawScaling, RuleName, Sharing};
use crate::paper::scaling::{Init, Role, Scaling};
use crate::render::table::verdicts::{Verdicts, verdicts};
use crate::render::table::{Column, Entry, Sheet, costs, diagnostics, fixed, optima, post_training, significant};
use crate::render::tidy;

/// The sizes of a profile. Tidy tables among the inputs give the tables of results, and an input `verdicts` (verdicts.json) that of
/// the verdicts; what is not given is left out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// What the profile is called in the tables.
    #[serde(default = "this_profile")]
    name: String,
    width: usize,
    heads: usize,
    mlp: usize,
    vocabulary: usize,
    /// The reference depth.
    depth: usize,
    /// The others.
    depths: Vec<usize>,
    loops: Vec<usize>,
    /// The learning rates of the sweep, and the base among them.
    rates: Vec<f64>,
    base_lr: f64,
    #[serde(default = "init_std")]
    std: f64,
    hidden_std: f64,
    steps: u64,
    warmup_steps: u64,
    decay_steps: u64,
    /// Sequences per step, and their length.
    sequences: u64,
    seq_len: u64,
    seeds: Vec<u64>,
    diverged_above: f64,
    #[serde(default = "own_corpus")]
    data: String,
}

fn this_profile() -> String {
    "this profile".into()
}

fn init_std() -> f64 {
    0.02
}

fn own_corpus() -> String {
    "built-in corpus, held out by document".into()
}

/// The paper's own values.
fn paper() -> Params {
    Params {
        name: "paper".into(),
        width: 768,
        heads: 12,
        mlp: 2048,
        vocabulary: 128_256,
        depth: 12,
        depths: vec![24, 48],
        loops: vec![1, 2, 4, 8],
        rates: vec![5e-4, 7.5e-4, 1e-3, 1.25e-3, 1.5e-3, 2e-3, 3e-3, 4e-3],
        base_lr: 1.25e-3,
        std: 0.02,
        hidden_std: 0.02,
        steps: 20_000,
        warmup_steps: 500,
        decay_steps: 1_000,
        sequences: 256,
        seq_len: 2048,
        seeds: vec![0],
        diverged_above: 4.0,
        data: "FineWeb-Edu held-out".into(),
    }
}

impl Params {
    fn model(&self, depth: usize) -> RawModel {
        let (width, heads, mlp, vocabulary) = (self.width, self.heads, self.mlp, self.vocabulary);
        let (rope_theta, norm_eps) = (10_000.0, 1e-5);
        RawModel { width, depth, loops: 1, sharing: Sharing::Looped, heads, mlp, vocabulary, rope_theta, norm_eps }
    }

    fn parameters(&self, depth: usize) -> Result<usize, String> {
        self.model(depth).check().map(|model| model.parameters()).map_err(|error| error.to_string())
    }

    fn all_depths(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.depth).chain(self.depths.iter().copied().filter(|depth| *depth != self.depth))
    }

    /// The factorised rule at one loop: what stands for N^-1 times the rest.
    fn scaling(&self, depth: usize) -> Result<Scaling, String> {
        let rule = RawScaling { rule: RuleName::Factorised, alpha: None, lambda: None, reference_depth: Some(self.depth) };
        let init = RawInit { std: self.std, hidden_std: Some(self.hidden_std), ..RawInit::default() };
        let optimiser: RawOptimiser =
            serde_json::from_value(serde_json::json!({ "lr": self.base_lr })).map_err(|error| error.to_string())?;
        let model = self.model(depth).check().map_err(|error| error.to_string())?;
        rule.check(&model, &init, &optimiser).map_err(|error| error.to_string())
    }

    fn check(&self) -> Result<(), ParamError> {
        let lists = [("loops", self.loops.is_empty()), ("rates", self.rates.is_empty())];
        if let Some((field, _)) = lists.iter().find(|(_, empty)| *empty) {
            return Err(ParamError::at(&[field], format!("`{field}` is empty; give at least one value")));
        }
        for depth in self.all_depths() {
            self.scaling(depth).map_err(|message| ParamError::at(&[], message))?;
        }
        Ok(())
    }
}

pub struct Tables;

impl Kind for Tables {
    fn name(&self) -> &'static str {
        "tables"
    }

    fn about(&self) -> &'static str {
        "writes the paper's tables and those of the results (inputs: tidy tables, `verdicts`) as LaTeX, Markdown and CSV; output `tables`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let params: Params = typed(draft.params)?;
        params.check()?;
        let outputs = own_outputs(draft, &[("tables", ".")])?;
        Ok(Checked { params: serde_json::to_value(&params).expect("parameters are plain data"), outputs, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let params: Params = typed(&task.params)?;
        let both = [paper(), params];
        let mut sheets = vec![recipe(&both)?, models(&both)?, parameterization(&both)?, hyperparameters(&both)];
        let is_table = |path: &Path| path.extension().is_some_and(|ending| ending == "parquet");
        let found = tidy::Tables::read(task.inputs.values().map(|path| path.as_path()).filter(|path| is_table(path)))?;
        let [_, here] = &both;
        let has = |name: &str| found.0.contains_key(name);
        if has("lr-transfer") || has("depth-transfer") {
            sheets.extend([
                optima::optima(&found, Some(here.base_lr)),
                optima::lowest(&found),
                optima::sweep(&found),
                costs::costs(&found),
            ]);
        }
        if has("init-diagnostics") {
            sheets.push(diagnostics::slopes(&found));
        }
        if has("post-training") {
            sheets.push(post_training::trained(&found));
        }
        if let Some(path) = task.inputs.get("verdicts") {
            let text = fs::read_to_string(path)?;
            let judged: Verdicts =
                serde_json::from_str(&text).map_err(|error| format!("input `verdicts` is not verdicts.json: {error}"))?;
            sheets.push(verdicts(&judged));
        }
        let folder = &task.outputs["tables"];
        fs::create_dir_all(folder)?;
        for sheet in &sheets {
            fs::write(folder.join(format!("{}.tex", sheet.name)), sheet.latex())?;
            fs::write(folder.join(format!("{}.md", sheet.name)), sheet.markdown())?;
            fs::write(folder.join(format!("{}.csv", sheet.name)), sheet.csv())?;
        }
        println!("{} tables", sheets.len());
        Ok(())
    }
}

/// The depths of both settings as columns: `paper L=12`, `this profile L=2`.
fn depth_columns(both: &[Params]) -> Vec<Column> {
    let of = |one: &Params| {
        one.all_depths()
            .map(|depth| Column::right(format!("{} L={depth}", if one.name == "paper" { "paper" } else { "here" })))
            .collect::<Vec<_>>()
    };
    both.iter().flat_map(of).collect()
}

/// A value of the parameterisation at every depth of both settings.
fn at_depths(both: &[Params], value: impl Fn(&Scaling) -> String) -> Result<Vec<Entry>, String> {
    let mut cells = Vec::new();
    for one in both {
        for depth in one.all_depths() {
            cells.push(Entry::new(value(&one.scaling(depth)?)));
        }
    }
    Ok(cells)
}

fn branch(scaling: &Scaling) -> String {
    match significant(scaling.branch_scale(), 4).as_str() {
        "1" => "1/N".to_string(),
        factor => format!("{factor}/N"),
    }
}

fn lr(role: Role) -> impl Fn(&Scaling) -> String {
    move |scaling| significant(scaling.group(role).lr, 4)
}

fn std_of(role: Role) -> impl Fn(&Scaling) -> String {
    move |scaling| match scaling.group(role).init {
        Init::TruncatedNormal { std, .. } => format!("{}²", significant(std, 3)),
        Init::Ones => "gain 1".to_string(),
    }
}

fn recipe(both: &[Params]) -> Result<Sheet, String> {
    let mut columns = vec![Column::left("Component"), Column::left("Scaling rule")];
    columns.extend(depth_columns(both));
    let mut sheet = Sheet::new(
        "recipe",
        "Executive scaling recipe for a looped Transformer with L unique layers repeated N times, and what this code computes from it at \
         λ = 1 and the base learning rate. m_L is L over the reference depth.",
        columns,
    );
    sheet.wide = true;
    let mut row = |name: &str, rule: Entry, cells: Vec<Entry>| {
        let mut row = vec![Entry::new(name), rule];
        row.extend(cells);
        sheet.push(row);
    };
    row("Residual branch", Entry::formula("\\times\\,\\lambda N^{-1} m_L^{-1/2}", "× λ N^-1 m_L^-1/2"), at_depths(both, branch)?);
    row("Looped stack LR", Entry::formula("\\eta_0 m_L^{-1/2}", "η₀ m_L^-1/2"), at_depths(both, lr(Role::Hidden))?);
    row("Embed / Unembed LR", Entry::formula("\\eta_0", "η₀"), at_depths(both, lr(Role::Embedding))?);
    Ok(sheet)
}

fn models(both: &[Params]) -> Result<Sheet, String> {
    let mut sheet = Sheet::new(
        "model-config",
        "Model configurations of the depth-loop transfer experiments: the paper's, and this profile's. Parameters are counted from the \
         configuration, embedding and head tied.",
        vec![
            Column::left(""),
            Column::right("Unique layers L"),
            Column::centre("Loop counts N"),
            Column::right("Width d"),
            Column::centre("Attn/KV heads"),
            Column::right("Head dim"),
            Column::right("MLP dim"),
            Column::right("Vocab size"),
            Column::right("Params (tied)"),
        ],
    );
    sheet.wide = true;
    for one in both {
        sheet.line();
        for depth in one.all_depths() {
            let loops: Vec<String> = one.loops.iter().map(|n| n.to_string()).collect();
            let head = one.width.checked_div(one.heads).unwrap_or(0);
            sheet.push(vec![
                one.name.clone().into(),
                depth.to_string().into(),
                format!("{{{}}}", loops.join(",")).into(),
                one.width.to_string().into(),
                format!("{0}/{0}", one.heads).into(),
                head.to_string().into(),
                one.mlp.to_string().into(),
                one.vocabulary.to_string().into(),
                count(one.parameters(depth)?).into(),
            ]);
        }
    }
    Ok(sheet)
}

/// 183.5M, as the paper writes it.
fn count(parameters: usize) -> String {
    match parameters {
        1_000_000.. => format!("{}M", fixed(parameters as f64 / 1e6, 1)),
        1_000.. => format!("{}k", fixed(parameters as f64 / 1e3, 1)),
        few => few.to_string(),
    }
}

fn parameterization(both: &[Params]) -> Result<Sheet, String> {
    let mut columns = vec![Column::left("Quantity"), Column::left("Scaling rule")];
    columns.extend(depth_columns(both));
    let mut sheet = Sheet::new(
        "parameterization",
        "Depth-loop parameterization for an L-layer block looped N times, and the values this code trains with at the base learning rate. \
         The loop correction is the factor 1/N in each branch, the depth correction m_L^-1/2. Gains of norms start at 1, where the paper \
         prints an init. variance; blocks narrower than the paper's are initialised wider by √(768/d).",
        columns,
    );
    sheet.wide = true;
    let eta = || Entry::formula("\\eta_0", "η₀");
    let eta_depth = || Entry::formula("\\eta_0 m_L^{-1/2}", "η₀ m_L^-1/2");
    let sigma = || Entry::formula("\\sigma_0^2", "σ₀²");
    let decay = |scaling: &Scaling| significant(scaling.group(Role::Hidden).weight_decay, 3);
    let eps = |role: Role| move |scaling: &Scaling| significant(scaling.group(role).eps, 3);
    let words = |text: &'static str| move |_: &Scaling| text.to_string();
    let mut add = |breaks: bool, name: &str, rule: Entry, cells: Result<Vec<Entry>, String>| -> Result<(), String> {
        if breaks {
            sheet.line();
        }
        let mut row = vec![Entry::new(name), rule];
        row.extend(cells?);
        sheet.push(row);
        Ok(())
    };
    add(false, "Token embedding init. variance", sigma(), at_depths(both, std_of(Role::Embedding)))?;
    add(false, "Token embedding LR", eta(), at_depths(both, lr(Role::Embedding)))?;
    add(true, "Pre-LN init. variance", sigma(), at_depths(both, std_of(Role::BlockNorm)))?;
    add(false, "Pre-LN LR", eta_depth(), at_depths(both, lr(Role::BlockNorm)))?;
    add(true, "Transformer hidden init. variance", sigma(), at_depths(both, std_of(Role::Hidden)))?;
    add(false, "Transformer hidden LR", eta_depth(), at_depths(both, lr(Role::Hidden)))?;
    add(false, "Transformer hidden bias LR", eta_depth(), at_depths(both, words("no biases")))?;
    add(false, "Transformer hidden AdamW weight decay", Entry::formula("\\omega_0", "ω₀"), at_depths(both, decay))?;
    let attention =
        Entry::formula("x+\\lambda N^{-1}m_L^{-1/2}\\,\\mathrm{Attn}(\\mathrm{LN}(x))", "x + λ N^-1 m_L^-1/2 Attn(LN(x))");
    let mlp = Entry::formula("z+\\lambda N^{-1}m_L^{-1/2}\\,\\mathrm{MLP}(\\mathrm{LN}(z))", "z + λ N^-1 m_L^-1/2 MLP(LN(z))");
    add(true, "Attention residual branch", attention, at_depths(both, branch))?;
    add(false, "MLP residual branch", mlp, at_depths(both, branch))?;
    add(true, "Final-LN init. variance", sigma(), at_depths(both, std_of(Role::FinalNorm)))?;
    add(false, "Final-LN LR", eta(), at_depths(both, lr(Role::FinalNorm)))?;
    add(true, "Unembedding init. variance", sigma(), at_depths(both, std_of(Role::Embedding)))?;
    add(false, "Unembedding LR", eta(), at_depths(both, lr(Role::Embedding)))?;
    let forward = Entry::formula("h_{\\mathrm{out}}W_{\\mathrm{unemb}}^\\top", "h_out W_unemb^T");
    add(false, "Unembedding forward map", forward, at_depths(both, words("tied, × 1")))?;
    add(
        true,
        "AdamW ϵ for residual blocks",
        Entry::formula("\\epsilon_0 m_L^{-1/2}", "ϵ₀ m_L^-1/2"),
        at_depths(both, eps(Role::Hidden)),
    )?;
    add(
        false,
        "AdamW ϵ for embedding and unembedding",
        Entry::formula("\\epsilon_0", "ϵ₀"),
        at_depths(both, eps(Role::Embedding)),
    )?;
    Ok(sheet)
}

fn hyperparameters(both: &[Params]) -> Sheet {
    let mut columns = vec![Column::left("Quantity"), Column::centre("Symbol")];
    columns.extend(both.iter().map(|one| Column::left(one.name.clone())));
    let mut sheet = Sheet::new(
        "hyperparameters",
        "Numerical values of the language-modelling experiments, the paper's and this profile's. Initialisation is a truncated normal.",
        columns,
    );
    sheet.wide = true;
    let row = |name: &str, symbol: Entry, value: &dyn Fn(&Params) -> String| {
        let mut cells = vec![Entry::new(name), symbol];
        cells.extend(both.iter().map(|one| Entry::new(value(one))));
        cells
    };
    let base = |one: &Params| one.scaling(one.depth).map(|scaling| scaling.base);
    let from_base = |one: &Params, value: fn(&crate::paper::scaling::Base) -> f64| {
        base(one).map_or("—".to_string(), |base| significant(value(&base), 3))
    };
    let none = || Entry::new("—");
    let tokens = |one: &Params| one.sequences * one.seq_len;
    let rows = [
        row("Residual branch constant", Entry::formula("\\lambda", "λ"), &|_| "1".into()),
        row("Base learning rate at the reference depth", Entry::formula("\\eta_0", "η₀"), &|one| {
            format!("{} at L = {}", significant(one.base_lr, 4), one.depth)
        }),
        row("Initialization standard deviation", Entry::formula("\\sigma_0", "σ₀"), &|one| match one.std == one.hidden_std {
            true => significant(one.std, 3),
            false => format!("{}, blocks {}", significant(one.std, 3), significant(one.hidden_std, 3)),
        }),
        row("AdamW weight decay", Entry::formula("\\omega_0", "ω₀"), &|one| from_base(one, |base| base.weight_decay)),
        row("AdamW numerical epsilon", Entry::formula("\\epsilon_0", "ϵ₀"), &|one| from_base(one, |base| base.eps)),
        row("LR sweep grid (base)", none(), &|one| {
            let rates: Vec<String> = one.rates.iter().map(|rate| significant(rate * 1e4, 4)).collect();
            format!("{{{}}} × 10{}", rates.join(", "), "^-4")
        }),
        row("Divergence criterion", none(), &|one| format!("final validation loss > {}", significant(one.diverged_above, 3))),
        row("Random seeds", none(), &|one| {
            let seeds: Vec<String> = one.seeds.iter().map(|seed| seed.to_string()).collect();
            format!("{}{}", seeds.join(", "), if one.seeds.len() == 1 { " (single run)" } else { "" })
        }),
        row("Validation split", none(), &|one| one.data.clone()),
        row("Optimizer steps", none(), &|one| format!("{} ({} warm-up, {} decay)", one.steps, one.warmup_steps, one.decay_steps)),
        row("Tokens per step", none(), &|one| format!("{} ({} × {})", tokens(one), one.sequences, one.seq_len)),
        row("Tokens in all", none(), &|one| significant((tokens(one) * one.steps) as f64, 4)),
    ];
    for (at, row) in rows.into_iter().enumerate() {
        if at == 5 || at == 9 {
            sheet.line();
        }
        sheet.push(row);
    }
    sheet
}
