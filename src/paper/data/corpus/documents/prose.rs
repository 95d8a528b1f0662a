//! Documents of plain prose: essays on a trade, causes and effects, lessons in dialogue, a merchant's ledger.

use super::facts;
use crate::paper::data::corpus::names::{Tongue, capital};
use crate::paper::data::corpus::pen::{Pen, plural};
use crate::paper::data::corpus::relations::Kind;
use crate::paper::data::corpus::words::{ADVERBS, CAUSES, FIRST_CAUSES, PLACES, REASONS, TIMES, TOPICS, Topic};
use crate::paper::data::corpus::world::World;
use crate::paper::data::random::Random;

/// A name for someone met only here. Most come from a stock that all documents share, the common ones often; the rest are new.
fn passing_name(random: &mut Random) -> String {
    const STOCK: usize = 4000;
    let mut from = if random.chance(0.75) { Random::new(&[0x006e_616d_6573, random.zipf(STOCK) as u64]) } else { random.clone() };
    random.bits();
    let tongue = Tongue::new(&mut from);
    capital(&tongue.word(&mut from, 2))
}

fn by_rank<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    words[random.zipf(words.len())]
}

const REMARKS: &[&str] = &[
    "[most |many |]{who} {verb} [the|their] {adj} {nouns} {when}",
    "{a:noun} [should be|must be|is usually] {adj}[ and {adj2}|]",
    "the {noun} was {adj}, [so|and so|and therefore] the {who} {past} it {where}",
    "if the {noun} is {adj}, [one should not|do not|it is unwise to] {verb} it {when}",
    "{who} {how} {verb} {nouns} {where}[, {why}|]",
    "[there is nothing so|few things are as] {adj} as {a:noun2} {where}",
    "when the {noun} [becomes|grows|seems] {adj}, the {who} {verb} the {noun2} {when}",
    "[without|with] {a:adj} {noun}, [even a good|no] {one} can {verb} {a:noun2}",
    "{nouns} and {nouns2} are not the same: the [former are|first are] {adj}, the [latter|second] {adj2}",
    "[in {place}|at {place}|near {place}] the {who} {past} {nouns} {when}, {why}",
    "\"a {adj} {noun},\" [says the proverb|they say|said the old {one}], \"is worth two {adj2} {nouns2}\"",
    "{one} {name} once {past} {a:noun} {where}, and the {noun} is still {adj}",
];

/// One sentence in the words of a topic.
pub fn remark(pen: &mut Pen, topic: &Topic) {
    let template = pen.choose(REMARKS);
    remark_on(pen, topic, template);
}

fn remark_on(pen: &mut Pen, topic: &Topic, template: &str) {
    let noun = by_rank(&mut pen.random, topic.nouns);
    let noun2 = by_rank(&mut pen.random, topic.nouns);
    let adj = by_rank(&mut pen.random, topic.adjectives);
    let adj2 = by_rank(&mut pen.random, topic.adjectives);
    // What is done goes with what it is done to: neighbours in rank go together.
    let at = topic.nouns.iter().position(|&word| word == noun).unwrap_or(0);
    let verb = (at + pen.random.zipf(4)) % topic.verbs.len();
    let (name, place) = if template.contains("{name}") || template.contains("{place}") {
        (passing_name(&mut pen.random), passing_name(&mut pen.random))
    } else {
        Default::default()
    };
    let who = if pen.random.chance(0.5) {
        plural(topic.profession)
    } else {
        by_rank(&mut pen.random, &["people", "villagers", "masters", "apprentices", "neighbours", "travellers"]).to_owned()
    };
    let slots = [
        ("noun", noun),
        ("nouns", &plural(noun)),
        ("noun2", noun2),
        ("nouns2", &plural(noun2)),
        ("adj", adj),
        ("adj2", adj2),
        ("verb", topic.verbs[verb]),
        ("past", topic.past[verb]),
        ("who", &who),
        ("one", topic.profession),
        ("how", by_rank(&mut pen.random, ADVERBS)),
        ("where", by_rank(&mut pen.random, PLACES)),
        ("when", by_rank(&mut pen.random, TIMES)),
        ("why", by_rank(&mut pen.random, REASONS)),
        ("name", &name),
        ("place", &place),
    ];
    pen.say(template, &slots);
}

const OPENINGS: &[&str] = &["first", "to begin with", "in the beginning", "at first"];
const LINKS: &[&str] =
    &["however", "moreover", "for this reason", "by contrast", "in addition", "of course", "as a result", "still"];

/// A few paragraphs on one trade. A made-up person is met again and again in it, under a name no other document has.
pub fn essay(pen: &mut Pen, length: usize) {
    let topic = &TOPICS[pen.random.zipf(TOPICS.len())];
    let noun = by_rank(&mut pen.random, topic.nouns);
    let title = pen.fill(
        "[on {t}|the art of {t}|{n} and {t}|notes on {t}|how to care for {a:one}]",
        &[("t", topic.name), ("n", &plural(noun)), ("one", noun)],
    );
    pen.title(&title);
    let (hero, village) = (passing_name(&mut pen.random), passing_name(&mut pen.random));
    pen.say(
        "{hero} was {a:p} [from|of] {v}[, a village known for its {n}|]",
        &[("hero", &hero), ("p", topic.profession), ("v", &village), ("n", &plural(noun))],
    );
    let mut sentences = 0;
    while pen.len() < length || sentences < 3 {
        let opening = if sentences == 0 { OPENINGS } else { LINKS };
        let roll = pen.random.unit();
        if roll < 0.22 {
            let opening = by_rank(&mut pen.random, opening);
            let template = pen.fill(
                "{o}, {hero} [{past} the {noun}|made sure the {noun} was {adj}|went back to {v}] {when}[, {why}|]",
                &[
                    ("o", opening),
                    ("hero", &hero),
                    ("v", &village),
                    ("past", "{past}"),
                    ("noun", "{noun}"),
                    ("adj", "{adj}"),
                    ("when", "{when}"),
                    ("why", "{why}"),
                ],
            );
            remark_on(pen, topic, &template);
        } else if roll < 0.30 {
            let other = &TOPICS[pen.random.zipf(TOPICS.len())];
            remark(pen, other);
        } else {
            remark(pen, topic);
        }
        sentences += 1;
        if sentences % 5 == 0 && pen.random.chance(0.6) {
            pen.paragraph();
        }
    }
}

/// What led to what in some town: a walk along the table of causes, told forwards or traced back.
pub fn causes(world: &World, pen: &mut Pen, length: usize) {
    let mut part = 0;
    while part == 0 || pen.len() < length {
        let town = world.some(&mut pen.random, Kind::Town);
        let town = world.name(town).to_owned();
        let title = pen.fill("[what happened in {t}|why {t} changed|causes and effects in {t}]", &[("t", &town)]);
        pen.title(&title);
        let mut chain = vec![*pen.random.pick(FIRST_CAUSES)];
        let steps = 3 + pen.random.below(6);
        while chain.len() < steps {
            let here = chain[chain.len() - 1];
            let next: Vec<&str> = CAUSES.iter().filter(|(cause, _)| *cause == here).map(|(_, effect)| *effect).collect();
            if next.is_empty() {
                break;
            }
            let next = *pen.random.pick(&next);
            if chain.contains(&next) {
                break;
            }
            chain.push(next);
        }
        let year = pen.random.within(200, 880);
        pen.say(
            "[in the year {y}|in {y}|around {y}], [near|in|around] {t}, {c}",
            &[("y", &year.to_string()), ("t", &town), ("c", chain[0])],
        );
        for pair in chain.windows(2) {
            let template = pen.choose(&[
                "[because|since|as] {a}, {b}",
                "{a}, [so|and so|and as a result|and therefore] {b}",
                "[as a result|consequently|before long|the next year], {b}",
                "{b}, [because|since|for] {a}",
            ]);
            pen.say(template, &[("a", pair[0]), ("b", pair[1])]);
        }
        let (first, last) = (chain[0], chain[chain.len() - 1]);
        if chain.len() > 2 {
            let template = pen.choose(&[
                "so in the end {b}, [and all|and only] because {a}",
                "why was it that {b}? [In the last resort|At bottom], because {a}",
                "had it not been that {a}, [nobody in {t} could have said that|it would never have been true that] {b}",
            ]);
            pen.say(template, &[("a", first), ("b", last), ("t", &town)]);
            // A question about the middle of the chain has to be traced, not recalled.
            let middle = 1 + pen.random.below(chain.len() - 2);
            pen.say(
                "[what came right before this: {m}|and what was the cause when {m}]? {a}",
                &[("m", chain[middle]), ("a", &capital(chain[middle - 1]))],
            );
        }
        pen.paragraph();
        part += 1;
    }
}

/// A teacher and a pupil. Questions about the world and small sums, and wrong answers put right.
pub fn dialogue(world: &World, pen: &mut Pen, length: usize) {
    let (teacher, pupil) = (passing_name(&mut pen.random), passing_name(&mut pen.random));
    pen.say("[a lesson|a conversation] between {t} and {p}", &[("t", &teacher), ("p", &pupil)]);
    let mut turns = 0;
    while turns < 2 || pen.len() < length {
        pen.line();
        if pen.random.chance(0.3) {
            let (a, b) = (pen.random.within(2, 60), pen.random.within(2, 60));
            let slots = [
                ("t", teacher.as_str()),
                ("p", &pupil),
                ("a", &a.to_string()),
                ("b", &b.to_string()),
                ("c", &(a + b).to_string()),
                ("w", &(a + b + 10).to_string()),
            ];
            pen.say("{t}: What is {a} [plus|and|added to] {b}?", &slots);
            pen.line();
            if pen.random.chance(0.3) {
                pen.say("{p}: It is {w}", &slots);
                pen.line();
                pen.say("{t}: [Count again|Not quite|Think]. {a} + {b} = {c}", &slots);
            } else {
                pen.say("{p}: [It is |That makes |]{c}", &slots);
            }
        } else {
            let hops = 1 + pen.random.below(3);
            let (question, answer, steps) = facts::question(world, pen, hops);
            pen.say("{t}: [Tell me, |Now, |]{q}?", &[("t", &teacher), ("q", &question)]);
            pen.line();
            if steps.len() > 1 && pen.random.chance(0.5) {
                let because = steps.join(", and ");
                pen.say("{p}: {s}. So it is {a}", &[("p", &pupil), ("s", &capital(&because)), ("a", &answer)]);
            } else {
                pen.say("{p}: {a}", &[("p", &pupil), ("a", &capital(&answer))]);
            }
        }
        if pen.random.chance(0.25) {
            pen.line();
            pen.say("{t}: [Good|Well done|Quite right|Correct]", &[("t", &teacher)]);
        }
        turns += 1;
    }
}

/// Goods, prices and totals. Prices are those of the world, so each line can be foretold and the total reckoned.
pub fn ledger(world: &World, pen: &mut Pen, length: usize) {
    let price = world.relations(Kind::Good).iter().copied().find(|&at| world.relation(at).key == "price");
    let price = price.expect("goods have prices");
    let mut part = 0;
    while part == 0 || pen.len() < length {
        let town = world.some(&mut pen.random, Kind::Town);
        let day = pen.random.within(1, 360);
        let title =
            pen.fill("[sold|accounts for goods sold] in {t}, day {d}", &[("t", world.name(town)), ("d", &day.to_string())]);
        pen.title(&title);
        let mut total = 0;
        for _ in 0..2 + pen.random.below(5) {
            let good = world.some(&mut pen.random, Kind::Good);
            let count = pen.random.within(2, 12);
            let each = world.number(world.fact(price, good));
            total += count * each;
            pen.line();
            pen.say(
                "{n} lots of {g} at {e} pennies each: {s} pennies[, making {total} so far|]",
                &[
                    ("n", &count.to_string()),
                    ("g", world.name(good)),
                    ("e", &each.to_string()),
                    ("s", &(count * each).to_string()),
                    ("total", &total.to_string()),
                ],
            );
        }
        pen.line();
        pen.say("[total|all together|sum]: {t} pennies", &[("t", &total.to_string())]);
        pen.paragraph();
        part += 1;
    }
}
