//! The YAML files as types: what may be written, and nothing of what it means. Unknown fields and duplicate keys are refused here.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// `pipeline.yaml`: profiles, variables and stages.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawPipeline {
    /// What this pipeline is about, for people.
    pub description: Option<String>,
    /// The profile used when `--profile` is not given. `quick` unless said otherwise.
    pub default_profile: Option<String>,
    /// Variables and their defaults, used as `${{ name }}` in stages. Profiles and `--set` override them.
    pub vars: Entries<Tree>,
    /// Named sets of overrides: how large a run is meant to be.
    pub profiles: Entries<RawProfile>,
    /// The stages. One without a `kind` is read from `stages/<name>.yaml`.
    pub stages: Entries<Option<RawStage>>,
}

/// What a profile changes.
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawProfile {
    pub description: Option<String>,
    /// Another profile to start from.
    pub extends: Option<String>,
    pub vars: Entries<Tree>,
    pub stages: Entries<RawOverride>,
}

/// What a profile changes in one stage.
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawOverride {
    /// Another stage file to use in this profile, such as `stages/paper/tokenize.yaml`.
    pub file: Option<String>,
    /// Axes to replace; `exclude` and `include` too. An axis set to `[]` is removed.
    pub grid: Entries<Tree>,
    /// Parameters to replace, merged into the stage's own.
    pub with: Option<Tree>,
    pub resources: Option<RawResources>,
    pub timeout: Option<String>,
    pub retries: Option<u32>,
    /// Leave the stage out in this profile.
    pub skip: bool,
}

/// A stage: in `stages/<name>.yaml`, or in place under `stages:` in pipeline.yaml.
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawStage {
    /// The stage kind: `command`, or one of the kinds that `repro schema` lists.
    pub kind: Option<String>,
    pub description: Option<String>,
    /// The file that defines this stage, if it is not `stages/<name>.yaml`. Only in pipeline.yaml.
    pub file: Option<String>,
    /// Stages that must be finished before this one starts, though nothing of theirs is read.
    pub needs: Vec<String>,
    /// Axes of a matrix: every combination is a node of its own. `exclude` and `include` work as in CI matrices.
    pub grid: Entries<Tree>,
    /// How a node of the grid is named, such as `L${{ L }}-N${{ N }}`. Made of all axes unless given.
    pub id: Option<String>,
    /// What the stage reads, by name: a path in the project, or another stage's output.
    pub inputs: Entries<RawInput>,
    /// What the stage writes, by name: paths relative to its working directory. A trailing `/` means a directory.
    pub outputs: Entries<String>,
    /// The parameters of the stage's kind.
    pub with: Option<Tree>,
    /// Seeds everything random in the stage. May be a grid axis: `${{ seed }}`.
    pub seed: Option<Tree>,
    pub resources: Option<RawResources>,
    /// The longest a node may run, such as `90s`, `10m` or `2h`.
    pub timeout: Option<String>,
    /// How often a node that failed is tried again.
    pub retries: Option<u32>,
}

/// What a node occupies while it runs. The scheduler never hands out more than the machine has.
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawResources {
    /// CPU threads; absent or `auto`: what serves the kind best, 1 for most.
    pub threads: Option<Tree>,
    /// Memory, such as `512MiB` or `4GiB`.
    pub memory: Option<Tree>,
    pub gpus: Option<Tree>,
}

/// An input: `path/in/project`, or `{from: stage, output: name, where: {axis: value}}`.
#[derive(Clone, Debug)]
pub enum RawInput {
    Path(String),
    From(RawFrom),
}

/// Another stage's output. With `where`, only the nodes whose axes have these values.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawFrom {
    /// The stage.
    pub from: String,
    /// The name of its output, which may hold `${{ axis }}`; may be left out if it has only one.
    pub output: Option<String>,
    /// Axis values to select by, such as `{N: "${{ N }}"}`. A list selects any of its values.
    #[serde(default, rename = "where")]
    pub filter: Entries<Tree>,
}

impl<'de> Deserialize<'de> for RawInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawInput, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawInput;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a path in the project or `{from: stage, output: name}`")
            }
            fn visit_str<E: de::Error>(self, path: &str) -> Result<RawInput, E> {
                Ok(RawInput::Path(path.to_string()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawInput, A::Error> {
                RawFrom::deserialize(de::value::MapAccessDeserializer::new(map)).map(RawInput::From)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for RawInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RawInput".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let from = generator.subschema_for::<RawFrom>();
        json_schema!({"description": "A path in the project, or another stage's output.", "anyOf": [{"type": "string"}, from]})
    }
}

/// A mapping in the order it was written. A key that stands twice is an error.
#[derive(Clone, Debug)]
pub struct Entries<T>(pub Vec<(String, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Entries(Vec::new())
    }
}

impl<T> Entries<T> {
    pub fn get(&self, key: &str) -> Option<&T> {
        self.0.iter().find(|(have, _)| have == key).map(|(_, value)| value)
    }
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Clone> Entries<T> {
    /// Replaces the entry of that name, or adds it at the end.
    pub fn set(&mut self, key: &str, value: T) {
        match self.0.iter_mut().find(|(have, _)| have == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key.to_string(), value)),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ordered<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Ordered<T> {
            type Value = Entries<T>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a mapping")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Entries<T>, E> {
                Ok(Entries::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
                let mut entries: Vec<(String, T)> = Vec::with_capacity(map.size_hint().unwrap_or(0));
                let mut seen = std::collections::HashSet::new();
                while let Some(key) = map.next_key::<String>()? {
                    if !seen.insert(key.clone()) {
                        return Err(de::Error::custom(format!("duplicate key `{key}`")));
                    }
                    entries.push((key, map.next_value()?));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_any(Ordered(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Entries_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({"type": ["object", "null"], "additionalProperties": value})
    }
}

/// Any YAML value that JSON can hold. Keys that are not text, `.nan` and `.inf`, tags and duplicate keys are refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree(pub Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Tree;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a plain value, list or mapping")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
                Ok(Tree(Value::Null))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tree, E> {
                Ok(Tree(value.into()))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Tree, E> {
                Ok(Tree(value.into()))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Tree, E> {
                Ok(Tree(value.into()))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tree, E> {
                let number = serde_json::Number::from_f64(value);
                number.map(|number| Tree(number.into())).ok_or_else(|| E::custom(format!("`{value}` is not a finite number")))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Tree, E> {
                Ok(Tree(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
                let mut list = Vec::new();
                while let Some(Tree(value)) = seq.next_element()? {
                    list.push(value);
                }
                Ok(Tree(list.into()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut object = serde_json::Map::new();
                while let Some(key) = map.next_key::<String>()? {
                    let Tree(value) = map.next_value()?;
                    if object.insert(key.clone(), value).is_some() {
                        return Err(de::Error::custom(format!("duplicate key `{key}`")));
                    }
                }
                Ok(Tree(object.into()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl JsonSchema for Tree {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Tree".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}
