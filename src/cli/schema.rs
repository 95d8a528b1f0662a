//! `repro schema`: JSON Schema for editors, with the parameters of every stage kind.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{CliError, Exit, print};
use crate::engine::config::raw::{RawPipeline, RawStage};
use crate::stage::REGISTRY;

/// Print the JSON Schema of pipeline.yaml or of a stage file, for editors.
///
/// With the YAML language server, put `# yaml-language-server: $schema=pipeline.schema.json` at the top of the file.
#[derive(clap::Args)]
pub struct Args {
    /// Which file
    #[arg(value_enum, default_value = "pipeline")]
    of: Of,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Of {
    /// pipeline.yaml
    Pipeline,
    /// stages/*.yaml
    Stage,
}

pub fn run(args: &Args) -> Result<Exit, CliError> {
    let generator = || SchemaSettings::draft2020_12().into_generator();
    let mut schema: Value = match args.of {
        Of::Pipeline => generator().into_root_schema_for::<RawPipeline>().into(),
        Of::Stage => generator().into_root_schema_for::<RawStage>().into(),
    };
    let stage = match args.of {
        Of::Pipeline => schema.pointer_mut("/$defs/RawStage"),
        Of::Stage => Some(&mut schema),
    };
    // `with` has the parameters of the kind that stands beside it.
    if let Some(Value::Object(stage)) = stage {
        let kinds: Vec<Value> =
            REGISTRY.0.iter().map(|kind| json!({"const": kind.name(), "description": kind.about()})).collect();
        let branches: Vec<Value> = REGISTRY
            .0
            .iter()
            .map(|kind| {
                let mut with: Value = kind.schema().into();
                if let Some(with) = with.as_object_mut() {
                    with.remove("$schema");
                }
                json!({"if": {"properties": {"kind": {"const": kind.name()}}, "required": ["kind"]},
                       "then": {"properties": {"with": with}}})
            })
            .collect();
        stage.insert("allOf".into(), branches.into());
        if let Some(properties) = stage.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("kind".into(), json!({"description": "The stage kind.", "anyOf": kinds}));
        }
    }
    print(&format!("{}\n", serde_json::to_string_pretty(&schema).expect("plain data")));
    Ok(Exit::Ok)
}
