//! Documents that tell facts of the world: articles, questions with answers, comparisons, timelines, glossaries.
//! One sentence in four reaches its fact through another one, so that knowing both beats having read either.

use super::prose;
use crate::paper::data::corpus::pen::{Pen, article as indefinite};
use crate::paper::data::corpus::relations::Kind;
use crate::paper::data::corpus::words::TOPICS;
use crate::paper::data::corpus::world::{Thing, World};
use crate::paper::data::random::Random;

/// The kinds an article can be about, the common ones first.
const SUBJECTS: &[Kind] = &[
    Kind::Person,
    Kind::Town,
    Kind::Animal,
    Kind::Substance,
    Kind::Event,
    Kind::Book,
    Kind::Plant,
    Kind::Land,
    Kind::River,
    Kind::Guild,
    Kind::Hill,
    Kind::Good,
];

fn subject(world: &World, random: &mut Random) -> Thing {
    let kind = SUBJECTS[random.zipf(SUBJECTS.len())];
    world.some(random, kind)
}

/// A thing as the subject of a sentence: animals are told of as `the so-and-so`.
fn told(world: &World, thing: Thing) -> String {
    if thing.kind == Kind::Animal { format!("the {}", world.name(thing)) } else { world.name(thing).to_owned() }
}

/// The short form used once a person has been introduced.
fn short(world: &World, thing: Thing) -> String {
    if thing.kind == Kind::Person {
        world.name(thing).split(' ').next_back().unwrap_or_default().to_owned()
    } else {
        told(world, thing)
    }
}

fn predicate(world: &World, pen: &mut Pen, relation: usize, of: Thing) -> String {
    let value = world.fact(relation, of);
    pen.fill(world.relation(relation).predicate, &[("y", world.name(value))])
}

/// Names a thing by way of a fact: `the town where Mira Voss was born`.
fn noun(world: &World, pen: &mut Pen, relation: usize, of: &str) -> String {
    pen.fill(&joined(world.relation(relation).noun, of), &[("x", of)])
}

/// Phrases about animals bring an article of their own, which a subject told by way of a fact already has.
fn joined(phrase: &'static str, subject: &str) -> String {
    if subject.starts_with("the ") { phrase.replace("the {x}", "{x}") } else { phrase.to_owned() }
}

/// A relation of this thing whose value has facts of its own.
fn onward(world: &World, random: &mut Random, thing: Thing) -> Option<usize> {
    let leads_on = |&at: &usize| !matches!(world.relation(at).to, Kind::Word | Kind::Number) && world.fact(at, thing) != thing;
    let links: Vec<usize> = world.relations(thing.kind).iter().copied().filter(leads_on).collect();
    (!links.is_empty()).then(|| links[random.below(links.len())])
}

/// A chain of facts: the thing it starts from, the relations walked, and where it ends.
pub struct Walk {
    start: Thing,
    steps: Vec<usize>,
    /// The thing before the last step, whose fact answers.
    last_but_one: Thing,
    end: Thing,
}

/// Walks `hops` facts from a random start. The last step may end in a plain word or number.
pub fn walk(world: &World, random: &mut Random, start: Thing, hops: usize) -> Walk {
    let mut walk = Walk { start, steps: Vec::with_capacity(hops), last_but_one: start, end: start };
    for hop in 0..hops {
        let next = if hop + 1 < hops { onward(world, random, walk.end) } else { None };
        let next = next.unwrap_or_else(|| world.some_relation(random, walk.end));
        walk.last_but_one = walk.end;
        walk.end = world.fact(next, walk.end);
        walk.steps.push(next);
        if world.relations(walk.end.kind).is_empty() {
            break;
        }
    }
    walk
}

impl Walk {
    /// The subject of the last step, told by way of all the others.
    fn path(&self, world: &World, pen: &mut Pen) -> String {
        let mut subject = world.name(self.start).to_owned();
        for (at, &step) in self.steps[..self.steps.len() - 1].iter().enumerate() {
            if at == 0 && self.start.kind != Kind::Animal {
                subject = told(world, self.start);
            }
            subject = noun(world, pen, step, &subject);
        }
        subject
    }

    fn last(&self) -> usize {
        *self.steps.last().expect("a walk has at least one step")
    }

    fn statement(&self, world: &World, pen: &mut Pen) -> String {
        let subject = if self.steps.len() == 1 { told(world, self.start) } else { self.path(world, pen) };
        let predicate = predicate(world, pen, self.last(), self.last_but_one);
        format!("{subject} {predicate}")
    }

    fn question(&self, world: &World, pen: &mut Pen) -> String {
        let subject = self.path(world, pen);
        let question = joined(world.relation(self.last()).question, &subject);
        pen.fill(&question, &[("x", &subject)])
    }

    /// The facts of the walk one by one: the reasoning behind the answer.
    fn steps_told(&self, world: &World, pen: &mut Pen) -> Vec<String> {
        let mut at = self.start;
        let mut told_steps = Vec::new();
        for &step in &self.steps {
            let predicate = predicate(world, pen, step, at);
            told_steps.push(format!("{} {predicate}", told(world, at)));
            at = world.fact(step, at);
        }
        told_steps
    }
}

/// One sentence about `thing`, or about something reached from it.
fn tell(world: &World, pen: &mut Pen, thing: Thing, relation: usize, subject: &str) {
    let clause = predicate(world, pen, relation, thing);
    let value = world.fact(relation, thing);
    let roll = pen.random.unit();
    if roll < 0.30 && !world.relations(value.kind).is_empty() {
        // Continue from the value: a second hop in the same sentence.
        let second = world.some_relation(&mut pen.random, value);
        let further = predicate(world, pen, second, value);
        let link = if value.kind == Kind::Person { "who" } else { "which" };
        pen.say("{x} {p}, {link} {q}", &[("x", subject), ("p", &clause), ("link", link), ("q", &further)]);
    } else if roll < 0.48 {
        // Two facts in one breath; which two go together is left to chance, so such sentences seldom repeat.
        let second = world.some_relation(&mut pen.random, thing);
        let further = predicate(world, pen, second, thing);
        let template = pen.choose(&[
            "{x} {p} and {q}",
            "{x} {p}, and [also|besides] {q}",
            "{x} {p}; [it is also said that|we also read that] {x} {q}",
        ]);
        let template = if second == relation { "{x} {p}" } else { template };
        pen.say(template, &[("x", subject), ("p", &clause), ("q", &further)]);
    } else if roll < 0.62 {
        let template = pen.choose(&[
            "[as is well known,|according to the chronicle,|it is said that|as every pupil learns,|in the old books we read that] {x} {p}",
            "{x} {p}[, as far as anyone knows|, so the records say| to this day|]",
            "[we know that|it is certain that|nobody doubts that|most scholars agree that] {x} {p}",
        ]);
        pen.say(template, &[("x", subject), ("p", &clause)]);
    } else {
        pen.say("{x} {p}", &[("x", subject), ("p", &clause)]);
    }
}

/// A sentence that reaches its fact over two or three hops from `thing`.
fn tell_far(world: &World, pen: &mut Pen, thing: Thing) {
    let hops = if pen.random.chance(0.75) { 2 } else { 3 };
    let walk = walk(world, &mut pen.random, thing, hops);
    let statement = walk.statement(world, pen);
    let template =
        pen.choose(&["{s}", "[indeed,|moreover,|in fact,|it follows that|note that] {s}", "[therefore|so|thus|hence][,|] {s}"]);
    pen.say(template, &[("s", &statement)]);
}

fn person_topic(world: &World, thing: Thing) -> Option<usize> {
    let relation = world.relations(Kind::Person).iter().copied().find(|&at| world.relation(at).key == "profession")?;
    let profession = world.name(world.fact(relation, thing));
    TOPICS.iter().position(|topic| topic.profession == profession)
}

pub fn article(world: &World, pen: &mut Pen, length: usize) {
    let mut thing = subject(world, &mut pen.random);
    let title = told(world, thing);
    let title = pen.fill("[{x}|{x}|about {x}|{x}: a short account|what we know of {x}]", &[("x", &title)]);
    pen.title(&title);
    loop {
        section(world, pen, thing);
        if pen.len() >= length {
            return;
        }
        // A long article moves on to something its subject is tied to.
        thing = match onward(world, &mut pen.random, thing) {
            Some(link) => world.fact(link, thing),
            None => subject(world, &mut pen.random),
        };
        pen.paragraph();
    }
}

/// A paragraph of facts about one thing.
fn section(world: &World, pen: &mut Pen, thing: Thing) {
    let mut relations = world.relations(thing.kind).to_vec();
    relations.retain(|&at| world.fact(at, thing) != thing);
    pen.random.shuffle(&mut relations);
    let keep = 2 + pen.random.below(relations.len() - 1);
    relations.truncate(keep);
    let (full, brief, pronoun) = (told(world, thing), short(world, thing), world.pronoun(thing));
    let topic = match thing.kind {
        Kind::Person => person_topic(world, thing),
        _ => None,
    };
    for (at, &relation) in relations.iter().enumerate() {
        // `they` would need other verbs, so goods are always named.
        let subject = match pen.random.below(3) {
            _ if at == 0 => &full,
            0 if thing.kind != Kind::Good => pronoun,
            1 => &brief,
            _ if thing.kind != Kind::Good => pronoun,
            _ => &full,
        };
        tell(world, pen, thing, relation, subject);
        let roll = pen.random.unit();
        if roll < 0.22 {
            tell_far(world, pen, thing);
        } else if roll < 0.34 {
            let topic = topic.unwrap_or_else(|| pen.random.below(TOPICS.len()));
            prose::remark(pen, &TOPICS[topic]);
        }
    }
}

/// Questions and answers, most of them over two hops; some answers show their steps.
pub fn quiz(world: &World, pen: &mut Pen, length: usize) {
    let title = pen.fill("[questions for review|questions and answers|a short test|what have you learned]", &[]);
    pen.title(&title);
    let mut number = 1;
    loop {
        let hops = [1, 2, 2, 2, 3][pen.random.below(5)];
        let start = subject(world, &mut pen.random);
        let walk = walk(world, &mut pen.random, start, hops);
        let question = walk.question(world, pen);
        let answer = told(world, walk.end);
        pen.say("{n}. {q}?", &[("n", &number.to_string()), ("q", &capitalised(&question))]);
        if walk.steps.len() > 1 && pen.random.chance(0.4) {
            let steps = walk.steps_told(world, pen).join(", and ");
            pen.say("[answer: |]{s}, so the answer is {a}", &[("s", &steps), ("a", &answer)]);
        } else {
            pen.say("[answer: |]{a}", &[("a", &answer)]);
        }
        if pen.len() >= length {
            return;
        }
        pen.line();
        number += 1;
    }
}

fn capitalised(text: &str) -> String {
    crate::paper::data::corpus::names::capital(text)
}

/// Two things set side by side: who is older, which is longer, and by how much.
pub fn comparison(world: &World, pen: &mut Pen, length: usize) {
    loop {
        let kind =
            *pen.random.pick(&[Kind::Person, Kind::Town, Kind::River, Kind::Hill, Kind::Substance, Kind::Animal, Kind::Book]);
        let (one, other) = (world.some(&mut pen.random, kind), world.some(&mut pen.random, kind));
        let numeric = |at: &&usize| world.relation(**at).to == Kind::Number;
        let measures: Vec<usize> = world.relations(kind).iter().filter(numeric).copied().collect();
        let measure = *pen.random.pick(&measures);
        let (a, b) = (world.number(world.fact(measure, one)), world.number(world.fact(measure, other)));
        let (x, y) = (told(world, one), told(world, other));
        if one == other || a == b {
            continue;
        }
        let (more, less) = match world.relation(measure).key {
            "born" | "founded" | "year" => ("later", "earlier"),
            "died" => ("later", "earlier"),
            "people" => ("more", "fewer"),
            "length" | "lifespan" => ("longer", "shorter"),
            _ => ("higher", "lower"),
        };
        let title = pen.fill("[{x} and {y}|comparing {x} with {y}|{x} or {y}]", &[("x", &x), ("y", &y)]);
        pen.title(&title);
        let (pa, pb) = (predicate(world, pen, measure, one), predicate(world, pen, measure, other));
        let gap = (a - b).abs().to_string();
        let word = if a > b { more } else { less };
        // Half the time the verdict comes first, and has to be known rather than read off.
        let show_first = pen.random.chance(0.5);
        let name = noun(world, pen, measure, world.name(one));
        if show_first {
            pen.say("{x} {p}, [while|whereas|but] {y} {q}", &[("x", &x), ("p", &pa), ("y", &y), ("q", &pb)]);
        }
        pen.say(
            "{n} is {w} than [that of|for] {y}, [by|the difference being] {g}",
            &[("n", &name), ("w", word), ("y", &y), ("g", &gap)],
        );
        if !show_first {
            pen.say("[for|indeed,] {x} {p} and {y} {q}", &[("x", &x), ("p", &pa), ("y", &y), ("q", &pb)]);
        }
        pen.say(
            "[check:|to check:] {big} - {small} = {g}",
            &[("big", &a.max(b).to_string()), ("small", &a.min(b).to_string()), ("g", &gap)],
        );
        let mut relations = world.relations(kind).to_vec();
        pen.random.shuffle(&mut relations);
        for &relation in relations.iter().take(3) {
            let (v, w) = (world.fact(relation, one), world.fact(relation, other));
            let (pa, pb) = (predicate(world, pen, relation, one), predicate(world, pen, relation, other));
            let template = if v == w {
                "both are alike in this: {x} {p}, and {y} {q} [too|as well]"
            } else {
                "{x} {p}, [while|whereas|but] {y} {q}"
            };
            pen.say(template, &[("x", &x), ("p", &pa), ("y", &y), ("q", &pb)]);
        }
        if pen.random.chance(0.5) {
            tell_far(world, pen, one);
        }
        if pen.len() >= length {
            return;
        }
    }
}

/// Years in order, each with what happened: births, deaths, foundings, books, disasters.
pub fn timeline(world: &World, pen: &mut Pen, length: usize) {
    let place = world.some(&mut pen.random, Kind::Land);
    let title = pen.fill("[a timeline|dates to remember|years and deeds|the chronicle of {x}]", &[("x", world.name(place))]);
    pen.title(&title);
    let mut entries: Vec<(i64, String)> = Vec::new();
    for _ in 0..(length / 55).clamp(4, 120) {
        let kind = *pen.random.pick(&[Kind::Person, Kind::Town, Kind::Book, Kind::Event, Kind::Person]);
        let thing = world.some(&mut pen.random, kind);
        let dates: Vec<usize> = world
            .relations(kind)
            .iter()
            .copied()
            .filter(|&at| matches!(world.relation(at).key, "born" | "died" | "founded" | "year"))
            .collect();
        let date = *pen.random.pick(&dates);
        let year = world.number(world.fact(date, thing));
        let name = world.name(thing);
        let entry = match world.relation(date).key {
            "born" => {
                let home = world.fact(world.relations(Kind::Person)[0], thing);
                pen.fill("{x} [is|was] born[ in {y}|]", &[("x", name), ("y", world.name(home))])
            }
            "died" => pen.fill("[death of {x}|{x} [dies|died]]", &[("x", name)]),
            "founded" => pen.fill("[founding of {x}|{x} [is|was] founded]", &[("x", name)]),
            _ if kind == Kind::Book => pen.fill("{x} appears", &[("x", name)]),
            _ => name.to_owned(),
        };
        entries.push((year, entry));
    }
    entries.sort();
    entries.dedup();
    let style = pen.choose(&["{y}: {e}", "in {y}, {e}", "{y} - {e}"]);
    let mut before: Option<i64> = None;
    for (year, entry) in &entries {
        pen.line();
        pen.say(style, &[("y", &year.to_string()), ("e", entry)]);
        if let Some(before) = before
            && year - before > 1
            && pen.random.chance(0.25)
        {
            pen.say("that was {n} years [later|after {b}]", &[("n", &(year - before).to_string()), ("b", &before.to_string())]);
        }
        before = Some(*year);
    }
}

/// Definitions in a row, alphabetical as in a word list.
pub fn glossary(world: &World, pen: &mut Pen, length: usize) {
    let kind = *pen.random.pick(&[Kind::Animal, Kind::Plant, Kind::Substance]);
    let title = match kind {
        Kind::Animal => "[animals of the world|a list of animals|beasts and birds]",
        Kind::Plant => "[useful plants|a herbal|plants by name]",
        _ => "[stones, salts and metals|materials by name|a list of materials]",
    };
    let title = pen.fill(title, &[]);
    pen.title(&title);
    let mut things: Vec<Thing> = (0..(length / 110).clamp(3, 80)).map(|_| world.some(&mut pen.random, kind)).collect();
    things.sort_by_key(|&thing| world.name(thing));
    things.dedup();
    let [class, colour, third] = [world.relations(kind)[0], world.relations(kind)[1], world.relations(kind)[2]];
    for thing in things {
        pen.line();
        let class = world.name(world.fact(class, thing));
        let colour = world.name(world.fact(colour, thing));
        let rest = predicate(world, pen, third, thing);
        let which = pen.fill("[that|which] {r}", &[("r", &rest)]);
        let template = pen.choose(&[
            "{n}: {a} {colour} {class} {which}",
            "{n}. {a} {class}, {colour}, {which}",
            "{n} ({class}): {colour}; {rest}",
        ]);
        let a = if template.contains("{colour} {class}") { indefinite(colour) } else { indefinite(class) };
        pen.say(
            template,
            &[("n", world.name(thing)), ("a", a), ("colour", colour), ("class", class), ("which", &which), ("rest", &rest)],
        );
    }
}

/// A question over `hops` facts and its answer, for other documents to use.
pub fn question(world: &World, pen: &mut Pen, hops: usize) -> (String, String, Vec<String>) {
    let start = subject(world, &mut pen.random);
    let walk = walk(world, &mut pen.random, start, hops);
    let question = walk.question(world, pen);
    let steps = walk.steps_told(world, pen);
    (question, told(world, walk.end), steps)
}
