//! Facts: numbers computed from the code that trains, not measured. The configuration of the paper is checked with them.

use super::expression::{Form, Function};
use crate::paper::config::{ModelConfig, RawInit, RawModel, RawOptimiser, RawScaling, RuleName, Sharing};
use crate::paper::model;
use crate::paper::scaling::{Init, Role, Scaling};

const fn fact(name: &'static str, about: &'static str) -> Function {
    Function { name, form: Form::Fact, about }
}

pub const FUNCTIONS: &[Function] = &[
    fact("parameters", "parameters of a model, embedding and head tied"),
    fact("kv_heads", "key and value heads, from the rows of the joint projection"),
    fact("branch_scale", "factor of every residual branch under the paper's rule, lambda / (N sqrt(L / 12))"),
    fact("branch_scale_sqrt", "factor of every residual branch under 1 / sqrt(N)"),
    fact("branch_scale_linear", "factor of every residual branch under 1 / N"),
    fact("embedding_lr", "peak learning rate of embedding and head"),
    fact("final_norm_lr", "peak learning rate of the norm before the head"),
    fact("hidden_lr", "peak learning rate of the matrices of the blocks"),
    fact("block_norm_lr", "peak learning rate of the norms of the blocks"),
    fact("embedding_eps", "Adam epsilon of embedding and head"),
    fact("hidden_eps", "Adam epsilon of the matrices of the blocks"),
    fact("hidden_decay", "weight decay of the matrices of the blocks"),
    fact("init_std", "standard deviation of the first values of the matrices, before truncation"),
    fact("init_loss", "expected loss of the untrained model, ln V + d std^2 / 2"),
];

/// The arguments of a fact, with the paper's values as defaults; one without a default must be given.
pub fn arguments(name: &str) -> &'static [(&'static str, Option<f64>)] {
    const SIZES: &[(&str, Option<f64>)] = &[
        ("L", None),
        ("N", Some(1.0)),
        ("d", Some(768.0)),
        ("heads", Some(12.0)),
        ("mlp", Some(2048.0)),
        ("vocabulary", Some(128_256.0)),
    ];
    const SCALED: &[(&str, Option<f64>)] = &[("L", None), ("N", Some(1.0)), ("lr", Some(1.25e-3)), ("lambda", Some(1.0))];
    match name {
        "parameters" | "kv_heads" => SIZES,
        "branch_scale" => &[("L", None), ("N", None), ("lambda", Some(1.0))],
        "branch_scale_sqrt" | "branch_scale_linear" => &[("N", None), ("L", Some(12.0))],
        "init_loss" => &[("d", Some(768.0)), ("vocabulary", Some(128_256.0)), ("std", Some(0.02))],
        _ => SCALED,
    }
}

/// The first argument that has to be given and is not.
pub fn missing(name: &str, given: &[(String, f64)]) -> Option<&'static str> {
    let absent =
        |argument: &&(&'static str, Option<f64>)| argument.1.is_none() && !given.iter().any(|(have, _)| have == argument.0);
    arguments(name).iter().find(absent).map(|argument| argument.0)
}

/// The value of a fact; an error text where the arguments are no sizes of a model.
pub fn value(name: &str, given: &[(String, f64)]) -> Result<f64, String> {
    let arg = |wanted: &str| {
        let default = || arguments(name).iter().find(|(have, _)| *have == wanted).and_then(|(_, default)| *default);
        given.iter().find(|(have, _)| have == wanted).map(|(_, value)| *value).or_else(default).unwrap_or(1.0)
    };
    let model = || -> Result<ModelConfig, String> {
        let size = |wanted: &str, default: f64| {
            let value = if arguments(name).iter().any(|(have, _)| *have == wanted) { arg(wanted) } else { default };
            value as usize
        };
        let raw = RawModel {
            width: size("d", 768.0),
            depth: size("L", 12.0),
            loops: size("N", 1.0),
            sharing: Sharing::Looped,
            heads: size("heads", 12.0),
            mlp: size("mlp", 2048.0),
            vocabulary: size("vocabulary", 128_256.0),
            rope_theta: 1e4,
            norm_eps: 1e-5,
        };
        raw.check().map_err(|error| format!("`{name}`: {error}"))
    };
    let scaling = |rule: RuleName| -> Result<Scaling, String> {
        let lambda = (rule == RuleName::Factorised).then(|| arg("lambda"));
        let raw = RawScaling { rule, alpha: None, lambda, reference_depth: None };
        let lr = if arguments(name).iter().any(|(have, _)| *have == "lr") { arg("lr") } else { 1.25e-3 };
        let optimiser: RawOptimiser =
            serde_json::from_value(serde_json::json!({ "lr": lr })).expect("all but `lr` have defaults");
        raw.check(&model()?, &RawInit::default(), &optimiser).map_err(|error| format!("`{name}`: {error}"))
    };
    let group = |role: Role| scaling(RuleName::Factorised).map(|scaling| scaling.group(role));
    let init = |role: Role| group(role).map(|group| std_of(group.init));
    match name {
        "parameters" => model().map(|model| model.parameters() as f64),
        "kv_heads" => {
            let model = model()?;
            let all = model::parameters(&model);
            let (_, _, (rows, _)) = all.iter().find(|(name, ..)| name.ends_with("qkv")).expect("every block has a `qkv`");
            let head = model.width / model.heads;
            Ok(((rows - model.width) / 2 / head) as f64)
        }
        "branch_scale" => scaling(RuleName::Factorised).map(|scaling| scaling.branch_scale()),
        "branch_scale_sqrt" => scaling(RuleName::Sqrt).map(|scaling| scaling.branch_scale()),
        "branch_scale_linear" => scaling(RuleName::Linear).map(|scaling| scaling.branch_scale()),
        "embedding_lr" => group(Role::Embedding).map(|group| group.lr),
        "final_norm_lr" => group(Role::FinalNorm).map(|group| group.lr),
        "hidden_lr" => group(Role::Hidden).map(|group| group.lr),
        "block_norm_lr" => group(Role::BlockNorm).map(|group| group.lr),
        "embedding_eps" => group(Role::Embedding).map(|group| group.eps),
        "hidden_eps" => group(Role::Hidden).map(|group| group.eps),
        "hidden_decay" => group(Role::Hidden).map(|group| group.weight_decay),
        "init_std" => init(Role::Hidden),
        "init_loss" => {
            // Logits of a normed stream are sums of d products with embeddings cut at three sigma: variance d std^2 * 0.9733.
            let cut = 0.986_58_f64.powi(2);
            Ok(arg("vocabulary").ln() + arg("d") * arg("std").powi(2) * cut / 2.0)
        }
        _ => Err(format!("`{name}` is not a fact")),
    }
}

fn std_of(init: Init) -> f64 {
    match init {
        Init::TruncatedNormal { std, .. } => std,
        Init::Ones => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, given: &[(&str, f64)]) -> f64 {
        let given: Vec<(String, f64)> = given.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        value(name, &given).unwrap()
    }

    #[test]
    fn facts_are_the_papers() {
        assert_eq!(of("parameters", &[("L", 48.0)]), 438_313_728.0);
        assert_eq!(of("kv_heads", &[("L", 12.0)]), 12.0);
        assert!((of("branch_scale", &[("L", 24.0), ("N", 4.0)]) - 0.5_f64.sqrt() / 4.0).abs() < 1e-12);
        assert!((of("hidden_lr", &[("L", 24.0)]) - 8.839e-4).abs() < 1e-7);
        assert!((of("init_loss", &[]) - 11.911).abs() < 1e-3);
    }

    #[test]
    fn every_fact_has_a_value_at_the_papers_size() {
        for function in FUNCTIONS {
            let needed: Vec<(String, f64)> = arguments(function.name)
                .iter()
                .filter(|(_, default)| default.is_none())
                .map(|(name, _)| (name.to_string(), 12.0))
                .collect();
            assert!(value(function.name, &needed).unwrap().is_finite(), "{}", function.name);
        }
    }

    #[test]
    fn a_size_that_is_none_is_told() {
        assert_eq!(
            value("parameters", &[("L".into(), 0.0)]),
            Err("`parameters`: `model.depth` is 0; it must be at least 1".into())
        );
    }
}
