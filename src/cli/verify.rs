//! `repro verify`: the verdict on every claim, from the results as they are. Runs nothing.

use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::context::Context;
use super::{CliError, Exit, Global, Which, human, print};
use crate::engine::graph::{Input, Origin};
use crate::engine::plan::{Planner, Standing};
use crate::engine::store::Access;
use crate::engine::store::journal::Stored;
use crate::engine::target::closure;
use crate::paper::claims::text::{heading, interval_text, summary};
use crate::paper::claims::{Group, Judgement, Part, Verdict, known};
use crate::paper::tidy::{Table, read_rows};
use crate::stage::verify::{FILES, Params, Verdicts, VerifyError, plan_table};

/// Judge the claims by the results there are.
#[derive(clap::Args)]
pub struct Args {
    /// Claims to show in full, such as E6 [default: all, in short]
    ids: Vec<String>,
    /// End with exit code 1 if any claim FAILs
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    which: Which,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let found = gather(&context)?;
    let mut verdicts =
        Verdicts::of(&found.claims_name, &found.claims, &found.tables, &found.digests).map_err(|error| match error {
            VerifyError::Read { .. } | VerifyError::Claims(_) => CliError::wrong_input(error),
        })?;
    let all: Vec<String> = verdicts.verdicts.iter().map(|judgement| judgement.id.clone()).collect();
    if let Some(wrong) = args.ids.iter().find(|id| !all.contains(id)) {
        return Err(CliError::Wrong(format!("there is no claim `{wrong}` in {}{}", found.claims_name, known(&all, wrong))));
    }
    if !args.ids.is_empty() {
        verdicts.verdicts.retain(|judgement| args.ids.contains(&judgement.id));
    }
    if global.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&verdicts.verdicts).expect("verdicts are plain data")));
    } else {
        let page = Page::new();
        let text = if args.ids.is_empty() { page.all(&verdicts.verdicts) } else { page.details(&verdicts.verdicts) };
        print(&text);
    }
    for note in &found.notes {
        eprintln!("{note}");
    }
    let failed = verdicts.verdicts.iter().any(|judgement| judgement.verdict == Verdict::Fail);
    Ok(if args.strict && failed { Exit::Failed } else { Exit::Ok })
}

/// What a verdict is made from.
struct Found {
    claims_name: String,
    claims: PathBuf,
    tables: Vec<Table>,
    digests: BTreeMap<String, String>,
    /// What is not up to date, and what to run.
    notes: Vec<String>,
}

fn gather(context: &Context) -> Result<Found, CliError> {
    let graph = &context.graph;
    let stage = graph.stages.iter().find(|stage| stage.kind.name() == "verify").ok_or_else(|| {
        let profile = &graph.profile;
        CliError::Wrong(format!("profile `{profile}` has no stage of kind `verify`; add one, as docs/claims.md shows"))
    })?;
    let node = &graph.nodes[stage.nodes.start];
    let params: Params = serde_json::from_value(node.params.clone()).expect("the graph holds checked parameters");
    let path = |name: &str| {
        node.inputs.iter().find(|input| input.name == name).and_then(|input| match &input.origin {
            Origin::Path(path) => Some(path.clone()),
            Origin::Nodes(_) => None,
        })
    };
    let claims_name = match (path("claims"), path("stages"), &params.claims) {
        (Some(file), ..) => file,
        (None, Some(folder), Some(name)) => format!("{folder}/{name}"),
        _ => {
            return Err(CliError::Wrong(format!("the claims file of stage `{}` is made by a stage; run that stage", stage.name)));
        }
    };
    let inputs: Vec<&Input> = node.inputs.iter().filter(|input| !FILES.contains(&input.name.as_str())).collect();
    let sources: Vec<usize> = node.reads().map(|from| from.node).collect();
    let nodes = closure(graph, &sources);
    let planner = Planner::new(&context.root, graph, &context.store);
    let plan = planner.plan(&nodes)?;
    let mut made: HashMap<usize, Arc<Vec<Stored>>> = HashMap::new();
    let mut remains: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, judged) in &plan {
        match (&judged.standing, &judged.outputs) {
            (Standing::Cached | Standing::Restore(_), Some(outputs)) => {
                made.insert(*at, outputs.clone());
            }
            _ => *remains.entry(graph.nodes[*at].stage).or_default() += 1,
        }
    }
    let object = |stored: &Stored| stored.files.first().map(|item| context.store.objects.path(item));
    let (mut tables, mut digests, mut partial) = (Vec::new(), BTreeMap::new(), false);
    for input in inputs {
        let Origin::Nodes(list) = &input.origin else { continue };
        let Some(from) = list.first() else { continue };
        let rows = match made.get(&from.node) {
            Some(outputs) => {
                let stored = &outputs[from.output];
                let Some(path) = object(stored) else { continue };
                digests.insert(input.name.clone(), stored.digest.hex());
                Table::read(&path).map_err(CliError::failed)?.rows
            }
            // The table itself is not there: what the nodes behind it have measured so far.
            None => {
                partial = true;
                let mut rows = Vec::new();
                let behind = &graph.nodes[from.node].inputs;
                for source in behind.iter().filter(|source| source.name.split('.').next() == Some(input.name.as_str())) {
                    let Origin::Nodes(list) = &source.origin else { continue };
                    for upstream in list {
                        let Some(path) = made.get(&upstream.node).and_then(|outputs| object(&outputs[upstream.output])) else {
                            continue;
                        };
                        let id = graph.nodes[upstream.node].point_id();
                        rows.extend(read_rows(&path).map_err(CliError::failed)?.into_iter().map(|row| row.at("node", id)));
                    }
                }
                if rows.is_empty() {
                    continue;
                }
                digests.insert(input.name.clone(), "of the rows there are".into());
                rows
            }
        };
        tables.push(Table { name: input.name.clone(), rows });
    }
    tables.extend(plan_table(&context.project, &params.paper_profile));
    let mut notes = Vec::new();
    if partial {
        let listed: Vec<String> = remains
            .iter()
            .map(|(stage, count)| {
                let stage = &graph.stages[*stage];
                let all = stage.nodes.len();
                if all == 1 { stage.name.clone() } else { format!("{} ({count} of {all} nodes)", stage.name) }
            })
            .collect();
        notes.push(format!(
            "judged what there is: not up to date in profile {} are {}; `repro run {}` makes the rest",
            graph.profile,
            listed.join(", "),
            stage.name
        ));
    }
    Ok(Found { claims: context.root.join(&claims_name), claims_name, tables, digests, notes })
}

/// How wide lines are, and whether they are coloured.
struct Page {
    width: usize,
    colour: bool,
}

impl Page {
    fn new() -> Page {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
        Page { width: columns.unwrap_or(80).clamp(60, 110), colour }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    fn verdict(&self, verdict: Verdict, width: usize) -> String {
        let code = match verdict {
            Verdict::Pass => "32",
            Verdict::Fail => "1;31",
            Verdict::Inconclusive => "33",
        };
        self.paint(code, &format!("{verdict:<width$}"))
    }

    /// Text wrapped to the page, its first line after `lead`, the others below it. `lead` takes `indent` columns.
    fn wrapped(&self, lead: &str, indent: usize, text: &str, code: Option<&str>) -> String {
        let mut out = String::new();
        for (at, line) in wrap(text, self.width - indent).iter().enumerate() {
            let line = code.map_or_else(|| line.clone(), |code| self.paint(code, line));
            if at == 0 {
                out.push_str(lead)
            } else {
                out.push_str(&" ".repeat(indent))
            }
            out.push_str(&line);
            out.push('\n');
        }
        out
    }

    fn all(&self, judgements: &[Judgement]) -> String {
        let mut out = String::new();
        let ids = judgements.iter().map(|judgement| judgement.id.len()).max().unwrap_or(0);
        for group in Group::ALL {
            let of_group: Vec<&Judgement> = judgements.iter().filter(|judgement| judgement.group == group).collect();
            if of_group.is_empty() {
                continue;
            }
            out.push_str(&format!("{}\n", self.paint("1", heading(group))));
            for judgement in of_group {
                out.push_str(&self.short(judgement, ids));
            }
            out.push('\n');
        }
        out.push_str(&format!("{}\n", summary(judgements)));
        out
    }

    fn short(&self, judgement: &Judgement, ids: usize) -> String {
        let lead = format!("  {:<ids$}  {}  ", judgement.id, self.verdict(judgement.verdict, 12));
        let indent = ids + 18;
        let blank = " ".repeat(indent);
        let mut out = self.wrapped(&lead, indent, &judgement.claim, None);
        if judgement.measured.is_some() {
            let unit = if judgement.unit == "1" { String::new() } else { format!(" {}", judgement.unit) };
            let paper = if judgement.paper.is_empty() { String::new() } else { format!("; paper: {}", judgement.paper) };
            out += &self.wrapped(&blank, indent, &format!("measured {}{unit}{paper}", judgement.measured_text), Some("2"));
        }
        if judgement.verdict != Verdict::Pass {
            out += &self.wrapped(&blank, indent, &judgement.why, None);
            if let Some(resolve) = &judgement.resolve {
                out += &self.wrapped(&blank, indent, &format!("to resolve it: {resolve}"), None);
            }
        }
        out
    }

    fn details(&self, judgements: &[Judgement]) -> String {
        judgements.iter().map(|judgement| self.detail(judgement)).collect::<Vec<_>>().join("\n")
    }

    fn detail(&self, judgement: &Judgement) -> String {
        let field = |name: &str, text: &str| self.wrapped(&format!("  {name:<10}"), 12, text, None);
        let mut out = format!("{}  {}\n", self.paint("1", &judgement.id), self.verdict(judgement.verdict, 0));
        out += &self.wrapped("  ", 2, &judgement.claim, None);
        if !judgement.paper.is_empty() {
            out += &field("paper", &judgement.paper);
        }
        out += &field("scale", &judgement.scale);
        out += &field("why", &judgement.why);
        if let Some(note) = judgement.note.as_ref().filter(|_| judgement.verdict != Verdict::Fail) {
            out += &field("note", note);
        }
        if let Some(resolve) = &judgement.resolve {
            out += &field("to resolve", resolve);
        }
        if !judgement.figures.is_empty() {
            out += &field("figures", &judgement.figures.join(", "));
        }
        for artefact in &judgement.artefacts {
            let digest = artefact.digest.get(..12).unwrap_or(&artefact.digest);
            let digest = if digest.is_empty() { String::new() } else { format!(", {digest}") };
            out += &field("read", &format!("{}: {}{digest}", artefact.table, human::count(artefact.rows, "row")));
        }
        for part in &judgement.parts {
            out += &self.part(part, &judgement.unit);
        }
        out
    }

    fn part(&self, part: &Part, unit: &str) -> String {
        let name = if part.decides { part.name.clone() } else { format!("{} (told, does not decide)", part.name) };
        let mut out = self.wrapped(&format!("\n  {}  ", self.verdict(part.verdict, 12)), 16, &name, Some("1"));
        let field = |name: &str, text: &str| self.wrapped(&format!("    {name:<10}"), 14, text, None);
        if part.measure != part.name {
            out += &field("measure", &part.measure);
        }
        out += &field("expect", &part.rule);
        if let Some(value) = part.measured {
            let unit = if unit == "1" { String::new() } else { format!(" {unit}") };
            let how = if part.method.is_empty() { String::new() } else { format!("; {}", part.method) };
            let seeds = if part.seeds == 0 { String::new() } else { format!(", {}", human::count(part.seeds, "seed")) };
            let rows = if part.rows == 0 { String::new() } else { format!(", {}", human::count(part.rows, "row")) };
            out += &field("measured", &format!("{}{unit}{how}{seeds}{rows}", interval_text(value, part.interval)));
        }
        if part.verdict != Verdict::Pass || !part.points.is_empty() {
            out += &field("why", &part.why);
        }
        let widest = part.points.iter().map(|point| point.at.len()).max().unwrap_or(0);
        for point in &part.points {
            let value = point.measured.map_or_else(|| point.why.clone(), |value| interval_text(value, point.interval));
            let lead = format!("      {:<widest$}  {}  ", point.at, self.verdict(point.verdict, 12));
            out += &self.wrapped(&lead, widest + 22, &value, None);
        }
        out
    }
}

/// Lines of at most `width` columns, broken at spaces.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcdefghij", "k"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
