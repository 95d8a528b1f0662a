//! The claims file: what is claimed, and how each part of it is checked. Names are checked here, all of them, before anything is computed.

use super::expect::{self, Rule};
use super::expression::{self, Condition, Expr, Test};
use super::measure::Per;
use super::vocabulary::{Vocabulary, check_column, known};
use super::yaml::{self, Node, Place, Yaml};
use super::{ClaimsError, Group};

pub struct ClaimsFile {
    /// As it is called in messages.
    pub name: String,
    pub claims: Vec<Claim>,
}

pub struct Claim {
    pub id: String,
    pub group: Group,
    pub claim: String,
    /// What the paper says, in its own numbers.
    pub paper: String,
    pub unit: String,
    pub figures: Vec<String>,
    /// A choice that was made, or what a reader should know about the verdict.
    pub note: Option<String>,
    /// What it takes to resolve the claim, where it is more than the numbers can say.
    pub resolve: Option<String>,
    pub checks: Vec<Check>,
}

pub struct Check {
    pub name: String,
    /// One that does not decide is told and changes no verdict.
    pub decides: bool,
    pub kind: CheckKind,
}

pub enum CheckKind {
    Measure(Box<Measure>),
    /// Holds if one of these does.
    AnyOf(Vec<Check>),
}

pub struct Measure {
    pub tables: Vec<String>,
    pub conditions: Vec<Condition>,
    pub each: Vec<String>,
    pub expr: Expr,
    /// As written, with its place.
    pub source: Yaml,
    pub per: Per,
    /// Judge by the number alone; the interval does not matter here.
    pub point: bool,
    /// Fewer seeds than this cannot resolve it.
    pub seeds: usize,
    pub rules: Vec<Rule>,
    /// The rules as written.
    pub expect: String,
}

impl Measure {
    pub fn text(&self) -> &str {
        match &self.source.node {
            Node::Scalar(text, _) => text.trim(),
            _ => "",
        }
    }
}

const CLAIM: &[&str] = &[
    "id",
    "claim",
    "paper",
    "unit",
    "figures",
    "group",
    "note",
    "resolve",
    "table",
    "where",
    "each",
    "per",
    "seeds",
    "uncertainty",
    "checks",
];
const CHECK: &[&str] =
    &["name", "measure", "fact", "expect", "table", "where", "each", "per", "seeds", "uncertainty", "decides", "any_of"];

/// Reads and checks a claims file. `words` are the names that tables at hand and the pipeline know.
pub fn parse(name: &str, text: &str, mut words: Vocabulary) -> Result<ClaimsFile, ClaimsError> {
    let root = yaml::parse(name, text)?;
    let mut reader = Reader { file: name };
    let top = reader.map(&root, "the file", &["tables", "claims"])?;
    if let Some(tables) = get(top, "tables") {
        for (key, metrics) in reader.entries(tables, "`tables`")? {
            let metrics = reader.words(metrics, "the metrics of a table")?;
            words.add(&key.name, metrics.into_iter());
        }
    }
    let list = get(top, "claims").ok_or_else(|| reader.wrong(root.place, "there is no `claims:` in this file"))?;
    let mut claims: Vec<Claim> = Vec::new();
    for item in reader.list(list, "`claims`")? {
        let claim = reader.claim(item, &words)?;
        if claims.iter().any(|have| have.id == claim.id) {
            return Err(reader.wrong(item.place, format!("two claims are called `{}`", claim.id)));
        }
        claims.push(claim);
    }
    Ok(ClaimsFile { name: name.to_string(), claims })
}

type Entries = [(yaml::Key, Yaml)];

fn get<'y>(entries: &'y Entries, name: &str) -> Option<&'y Yaml> {
    entries.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
}

struct Reader<'f> {
    file: &'f str,
}

/// What a check takes from its claim unless it says otherwise.
#[derive(Clone, Default)]
struct Defaults {
    tables: Vec<String>,
    conditions: Vec<Condition>,
    each: Vec<String>,
    per: Option<Per>,
    seeds: Option<usize>,
    point: Option<bool>,
}

impl Reader<'_> {
    fn wrong(&self, place: Place, message: impl Into<String>) -> ClaimsError {
        ClaimsError::at(self.file, place, message)
    }

    fn entries<'y>(&self, yaml: &'y Yaml, what: &str) -> Result<&'y Entries, ClaimsError> {
        match &yaml.node {
            Node::Map(entries) => Ok(entries),
            _ => Err(self.wrong(yaml.place, format!("{what} must be a mapping, found {}", yaml.is()))),
        }
    }

    fn map<'y>(&mut self, yaml: &'y Yaml, what: &str, fields: &[&str]) -> Result<&'y Entries, ClaimsError> {
        let entries = self.entries(yaml, what)?;
        for (key, _) in entries {
            if !fields.contains(&key.name.as_str()) {
                let names: Vec<String> = fields.iter().map(|field| field.to_string()).collect();
                return Err(self.wrong(key.place, format!("unknown field `{}`{}", key.name, known(&names, &key.name))));
            }
        }
        Ok(entries)
    }

    fn list<'y>(&self, yaml: &'y Yaml, what: &str) -> Result<&'y [Yaml], ClaimsError> {
        match &yaml.node {
            Node::List(items) => Ok(items),
            _ => Err(self.wrong(yaml.place, format!("{what} must be a list, found {}", yaml.is()))),
        }
    }

    fn text<'y>(&self, yaml: &'y Yaml, what: &str) -> Result<&'y str, ClaimsError> {
        match &yaml.node {
            Node::Scalar(text, _) if !text.trim().is_empty() => Ok(text.trim()),
            _ => Err(self.wrong(yaml.place, format!("{what} must be text, found {}", yaml.is()))),
        }
    }

    /// A word, or a list of them.
    fn words(&self, yaml: &Yaml, what: &str) -> Result<Vec<String>, ClaimsError> {
        match &yaml.node {
            Node::List(items) => items.iter().map(|item| self.text(item, what).map(str::to_string)).collect(),
            _ => self.text(yaml, what).map(|text| vec![text.to_string()]),
        }
    }

    fn claim(&mut self, yaml: &Yaml, words: &Vocabulary) -> Result<Claim, ClaimsError> {
        let fields = self.map(yaml, "a claim", CLAIM)?;
        let needed = |name: &str| get(fields, name).ok_or_else(|| self.wrong(yaml.place, format!("a claim needs `{name}`")));
        let id = self.text(needed("id")?, "`id`")?.to_string();
        if !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
            return Err(
                self.wrong(needed("id")?.place, format!("`{id}` cannot name a claim; use letters, digits, `-`, `_` and `.`"))
            );
        }
        let claim = self.text(needed("claim")?, "`claim`")?.to_string();
        let optional =
            |name: &str| get(fields, name).map(|yaml| self.text(yaml, &format!("`{name}`")).map(str::to_string)).transpose();
        let group = match get(fields, "group") {
            None => Group::of(&id),
            Some(yaml) => {
                let text = self.text(yaml, "`group`")?;
                let names: Vec<String> = Group::ALL.iter().map(|group| group.name().to_string()).collect();
                let found = Group::ALL.into_iter().find(|group| group.name() == text);
                found.ok_or_else(|| self.wrong(yaml.place, format!("unknown group `{text}`{}", known(&names, text))))?
            }
        };
        let checks_at = needed("checks")?;
        let (paper, unit) = (optional("paper")?.unwrap_or_default(), optional("unit")?.unwrap_or_else(|| "1".into()));
        let (note, resolve) = (optional("note")?, optional("resolve")?);
        let figures = get(fields, "figures").map(|yaml| self.words(yaml, "`figures`")).transpose()?.unwrap_or_default();
        let defaults = self.defaults(fields, &Defaults::default(), words)?;
        let checks = self.checks(checks_at, &defaults, words)?;
        if checks.iter().all(|check| !check.decides) {
            return Err(self.wrong(checks_at.place, format!("no check of `{id}` decides; a claim needs one that does")));
        }
        Ok(Claim { id, group, claim, paper, unit, figures, note, resolve, checks })
    }

    fn checks(&mut self, yaml: &Yaml, defaults: &Defaults, words: &Vocabulary) -> Result<Vec<Check>, ClaimsError> {
        let items = self.list(yaml, "`checks`")?;
        if items.is_empty() {
            return Err(self.wrong(yaml.place, "there are no checks; write at least one"));
        }
        items.iter().map(|item| self.check(item, defaults, words)).collect()
    }

    /// `table`, `where`, `each`, `per`, `seeds` and `uncertainty`, which a claim may give for all its checks.
    fn defaults(&mut self, fields: &Entries, outer: &Defaults, words: &Vocabulary) -> Result<Defaults, ClaimsError> {
        let mut own = outer.clone();
        if let Some(yaml) = get(fields, "table") {
            own.tables = self.words(yaml, "`table`")?;
            for (at, table) in own.tables.iter().enumerate() {
                let place = match &yaml.node {
                    Node::List(items) => items[at].place,
                    _ => yaml.place,
                };
                words.check_table(table).map_err(|message| self.wrong(place, message))?;
            }
        }
        if let Some(yaml) = get(fields, "where") {
            let mut new = Vec::new();
            for (key, value) in self.entries(yaml, "`where`")? {
                check_column(&key.name).map_err(|message| self.wrong(key.place, message))?;
                let test = |yaml: &Yaml| -> Result<Test, ClaimsError> {
                    let text = self.text(yaml, &format!("`{}`", key.name))?;
                    expression::parse_test(&key.name, text)
                        .map_err(|mistake| self.wrong(yaml.place_of(mistake.at), mistake.message))
                };
                let test = match &value.node {
                    Node::List(items) => {
                        let values = items.iter().map(|item| match test(item)? {
                            Test::Is(expression::Compare::Equal, value) => Ok(value),
                            _ => Err(self.wrong(item.place, "a list holds values, not comparisons")),
                        });
                        Test::Among(values.collect::<Result<_, _>>()?)
                    }
                    _ => test(value)?,
                };
                new.push(Condition { column: key.name.clone(), test });
            }
            own.conditions.retain(|have| !new.iter().any(|new: &Condition| new.column == have.column));
            own.conditions.extend(new);
        }
        if let Some(yaml) = get(fields, "each") {
            own.each = match &yaml.node {
                Node::List(items) if items.is_empty() => Vec::new(),
                _ => self.words(yaml, "`each`")?,
            };
            for (at, column) in own.each.iter().enumerate() {
                let place = match &yaml.node {
                    Node::List(items) => items[at].place,
                    _ => yaml.place,
                };
                check_column(column).map_err(|message| self.wrong(place, message))?;
            }
        }
        if let Some(yaml) = get(fields, "per") {
            own.per = Some(match self.text(yaml, "`per`")? {
                "seed" => Per::Seed,
                "all" => Per::All,
                other => return Err(self.wrong(yaml.place, format!("`per` is `seed` or `all`, not `{other}`"))),
            });
        }
        if let Some(yaml) = get(fields, "uncertainty") {
            own.point = Some(match self.text(yaml, "`uncertainty`")? {
                "seeds" => false,
                "none" => true,
                other => return Err(self.wrong(yaml.place, format!("`uncertainty` is `seeds` or `none`, not `{other}`"))),
            });
        }
        if let Some(yaml) = get(fields, "seeds") {
            let text = self.text(yaml, "`seeds`")?;
            let count = text.parse().ok().filter(|count| (1..=1000).contains(count));
            let message = || format!("`seeds` is the number of seeds that are needed, from 1 to 1000, not `{text}`");
            own.seeds = Some(count.ok_or_else(|| self.wrong(yaml.place, message()))?);
        }
        Ok(own)
    }

    fn check(&mut self, yaml: &Yaml, outer: &Defaults, words: &Vocabulary) -> Result<Check, ClaimsError> {
        let fields = self.map(yaml, "a check", CHECK)?;
        let defaults = self.defaults(fields, outer, words)?;
        let name = get(fields, "name").map(|yaml| self.text(yaml, "`name`").map(str::to_string)).transpose()?;
        let decides = match get(fields, "decides") {
            None => true,
            Some(yaml) => match self.text(yaml, "`decides`")? {
                "true" => true,
                "false" => false,
                other => return Err(self.wrong(yaml.place, format!("`decides` is `true` or `false`, not `{other}`"))),
            },
        };
        let (measure, fact, any_of) = (get(fields, "measure"), get(fields, "fact"), get(fields, "any_of"));
        if let (None, None, Some(any_of)) = (measure, fact, any_of) {
            let checks = self.checks(any_of, &defaults, words)?;
            let name = name.unwrap_or_else(|| checks.iter().map(|check| check.name.as_str()).collect::<Vec<_>>().join(", or "));
            return Ok(Check { name, decides, kind: CheckKind::AnyOf(checks) });
        }
        let source = match (measure, fact, any_of) {
            (Some(source), None, None) | (None, Some(source), None) => source.clone(),
            (None, None, None) => return Err(self.wrong(yaml.place, "a check needs `measure`, `fact` or `any_of`")),
            _ => return Err(self.wrong(yaml.place, "a check has `measure`, `fact` or `any_of`, one of them")),
        };
        let Node::Scalar(text, _) = &source.node else {
            return Err(self.wrong(source.place, format!("an expression must be text, found {}", source.is())));
        };
        let expr = expression::parse(text).map_err(|mistake| self.wrong(source.place_of(mistake.at), mistake.message))?;
        let selections = expr.selections();
        match (fact.is_some(), selections.first()) {
            (true, Some(selection)) => {
                let message = format!("a fact is computed from the code; `{}` is measured, so write `measure`", selection.metric);
                return Err(self.wrong(source.place_of(selection.at), message));
            }
            (false, None) => return Err(self.wrong(source.place, "this measures nothing; write `fact` for what is computed")),
            (false, Some(_)) if defaults.tables.is_empty() => {
                return Err(self.wrong(source.place, "a measure needs a `table`"));
            }
            _ => {}
        }
        for selection in selections {
            let found = words.check_metric(&defaults.tables, &selection.metric);
            found.map_err(|message| self.wrong(source.place_of(selection.at), message))?;
            if let Some((metric, at)) = &selection.over {
                let found = words.check_metric(&defaults.tables, metric);
                found.map_err(|message| self.wrong(source.place_of(*at), message))?;
            }
        }
        let expect = get(fields, "expect").ok_or_else(|| self.wrong(yaml.place, "a check needs `expect`"))?;
        let mut rules = Vec::new();
        let items = match &expect.node {
            Node::List(items) => items.as_slice(),
            _ => std::slice::from_ref(expect),
        };
        for item in items {
            rules.push(expect::parse(self.text(item, "`expect`")?).map_err(|message| self.wrong(item.place, message))?);
        }
        if rules.is_empty() {
            return Err(self.wrong(expect.place, "`expect` is empty; write at least one rule"));
        }
        let measure = Measure {
            tables: defaults.tables,
            conditions: defaults.conditions,
            each: defaults.each,
            expr,
            per: defaults.per.unwrap_or(Per::All),
            point: defaults.point.unwrap_or(false),
            seeds: defaults.seeds.unwrap_or(0),
            rules,
            expect: self.words(expect, "`expect`")?.join(", "),
            source,
        };
        let name = name.unwrap_or_else(|| measure.text().to_string());
        Ok(Check { name, decides, kind: CheckKind::Measure(Box::new(measure)) })
    }
}
