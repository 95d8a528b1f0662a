//! Documents whose answers must be worked out from what stands just above them: chains to follow, sums, short proofs.
//! The work lies within a few sentences, so that even a short context holds it; what grows is the number of steps.

use crate::paper::data::corpus::names::{Tongue, capital};
use crate::paper::data::corpus::pen::{Pen, plural};
use crate::paper::data::corpus::relations::Kind;
use crate::paper::data::corpus::words::TOPICS;
use crate::paper::data::corpus::world::World;

/// Distinct names, from the world's common given names or coined for this document only.
fn cast(world: &World, pen: &mut Pen, count: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(count);
    let tongue = Tongue::new(&mut pen.random);
    while names.len() < count {
        let name = if pen.random.chance(0.7) {
            let person = world.some(&mut pen.random, Kind::Person);
            world.name(person).split(' ').next().unwrap_or_default().to_owned()
        } else {
            capital(&tongue.word(&mut pen.random, 2))
        };
        if name.len() > 2 && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Following something through several hands, places or ranks; the links may be told out of order.
pub fn chains(world: &World, pen: &mut Pen, length: usize) {
    let title = pen.fill("[follow the chain|step by step|who, where and what|puzzles to solve]", &[]);
    pen.title(&title);
    let mut parts = 0;
    while parts == 0 || pen.len() < length {
        match pen.random.below(4) {
            0 => passed_on(world, pen),
            1 => ranking(world, pen),
            2 => kinds(world, pen),
            _ => boxes(world, pen),
        }
        pen.paragraph();
        parts += 1;
    }
}

/// A thing goes from hand to hand.
fn passed_on(world: &World, pen: &mut Pen) {
    let steps = 2 + pen.random.below(4);
    let names = cast(world, pen, steps + 1);
    let topic = pen.random.pick(TOPICS);
    let thing = topic.nouns[pen.random.zipf(topic.nouns.len())];
    let mut links: Vec<(usize, String)> =
        names.windows(2).enumerate().map(|(at, pair)| (at, format!("{} gave it to {}", pair[0], pair[1]))).collect();
    pen.say("{a} had {a:t}", &[("a", &names[0]), ("t", thing)]);
    // Told out of order, the links have to be joined rather than read along.
    if pen.random.chance(0.5) {
        pen.random.shuffle(&mut links);
    }
    for (_, link) in &links {
        pen.put(link);
    }
    let (first, last) = (&names[0], &names[steps]);
    if pen.random.chance(0.6) {
        pen.say("[who has the {t} now|where is the {t} in the end]? {z}", &[("t", thing), ("z", last)]);
    } else {
        let asked = pen.random.below(steps);
        pen.say(
            "who got it from {b}? {c}. And at the start it was {a} who had the {t}",
            &[("b", &names[asked]), ("c", &names[asked + 1]), ("a", first), ("t", thing)],
        );
    }
}

/// An order told in pairs.
fn ranking(world: &World, pen: &mut Pen) {
    let count = 3 + pen.random.below(3);
    let names = cast(world, pen, count);
    let (more, most, least) = *pen.random.pick(&[
        ("taller", "tallest", "shortest"),
        ("older", "oldest", "youngest"),
        ("richer", "richest", "poorest"),
        ("faster", "fastest", "slowest"),
    ]);
    let mut links: Vec<(&String, &String)> = names.windows(2).map(|pair| (&pair[0], &pair[1])).collect();
    pen.random.shuffle(&mut links);
    for (high, low) in links {
        pen.say("{a} is {m} than {b}", &[("a", high), ("b", low), ("m", more)]);
    }
    let (high, low) = {
        let low = 1 + pen.random.below(count - 1);
        (pen.random.below(low), low)
    };
    pen.say(
        "[so who is the {most}|who, then, is the {most}]? {a}. [and|who is] the {least}? {z}",
        &[("most", most), ("least", least), ("a", &names[0]), ("z", &names[count - 1])],
    );
    // Asked both ways round, so that the order of the names gives nothing away.
    let (first, second, answer) = if pen.random.chance(0.5) { (high, low, "yes") } else { (low, high, "no") };
    pen.say("is {a} {m} than {b}? {y}", &[("a", &names[first]), ("b", &names[second]), ("m", more), ("y", &capital(answer))]);
}

/// Every this is a that: a syllogism with coined words.
fn kinds(world: &World, pen: &mut Pen) {
    let steps = 2 + pen.random.below(3);
    let tongue = Tongue::new(&mut pen.random);
    let mut terms: Vec<String> = Vec::new();
    while terms.len() <= steps {
        let term = tongue.word(&mut pen.random, 2);
        if term.len() > 2 && !terms.contains(&term) {
            terms.push(term);
        }
    }
    let mut premises: Vec<usize> = (0..steps).collect();
    if pen.random.chance(0.6) {
        pen.random.shuffle(&mut premises);
    }
    for at in premises {
        pen.say(
            "[every {a} is {a:b}|all {as} are {bs}]",
            &[("a", &terms[at]), ("b", &terms[at + 1]), ("as", &plural(&terms[at])), ("bs", &plural(&terms[at + 1]))],
        );
    }
    let name = cast(world, pen, 1).remove(0);
    pen.say("{n} is {a:a}", &[("n", &name), ("a", &terms[0])]);
    pen.say("[therefore|so|it follows that] {n} is {a:z}", &[("n", &name), ("z", &terms[steps])]);
    let colour = ["white", "heavy", "rare", "useful", "old"][pen.random.below(5)];
    let at = pen.random.below(steps + 1);
    pen.say("if no {t} is {c}, [can {n} be {c}|is {n} {c}]? No", &[("t", &terms[at]), ("c", colour), ("n", &name)]);
}

/// Where things lie: the key is in the box, the box is in the barn.
fn boxes(world: &World, pen: &mut Pen) {
    const HOLDERS: &[&str] = &["box", "basket", "chest", "cupboard", "cellar", "barn", "house", "garden", "street", "village"];
    const HELD: &[&str] = &["key", "coin", "ring", "letter", "map", "seed", "knife", "bell"];
    let steps = 2 + pen.random.below(3);
    let start = pen.random.below(HOLDERS.len() - steps);
    let thing = *pen.random.pick(HELD);
    let owner = cast(world, pen, 1).remove(0);
    let holders = &HOLDERS[start..=start + steps];
    let mut facts: Vec<String> = vec![format!("the {thing} of {owner} is in the {}", holders[0])];
    for pair in holders.windows(2) {
        facts.push(format!("the {} is in the {}", pair[0], pair[1]));
    }
    pen.random.shuffle(&mut facts);
    for fact in &facts {
        pen.put(fact);
    }
    let moved = pen.random.chance(0.4);
    if moved {
        let target = ["tower", "mill", "harbour"][pen.random.below(3)];
        let at = pen.random.below(steps);
        pen.say(
            "then the {h} was [carried|moved] to the {t}, [with all that was in it|contents and all]",
            &[("h", holders[at]), ("t", target)],
        );
        pen.say("where is the {x} of {o} now? In the {t}", &[("x", thing), ("o", &owner), ("t", target)]);
    } else {
        pen.say(
            "so the {x} of {o} is in the {z}[, and what holds the {m}? The {n}|]",
            &[("x", thing), ("o", &owner), ("z", holders[steps]), ("m", holders[0]), ("n", holders[1])],
        );
    }
}

/// Word problems: quantities that hang on one another, asked at the end of the chain.
pub fn problems(world: &World, pen: &mut Pen, length: usize) {
    let title = pen.fill("[problems|exercises|sums in words|problems with solutions]", &[]);
    pen.title(&title);
    let mut parts = 0;
    while parts == 0 || pen.len() < length {
        if pen.random.chance(0.35) {
            letters(pen)
        } else {
            quantities(world, pen)
        }
        pen.line();
        parts += 1;
    }
}

fn quantities(world: &World, pen: &mut Pen) {
    let steps = 1 + pen.random.below(4);
    let names = cast(world, pen, steps + 1);
    let topic = pen.random.pick(TOPICS);
    let things = plural(topic.nouns[pen.random.zipf(topic.nouns.len())]);
    let mut counts = vec![pen.random.within(2, 12)];
    let first = counts[0].to_string();
    pen.say("{a} has {n} {t}", &[("a", &names[0]), ("n", &first), ("t", &things)]);
    let mut reasons = Vec::new();
    for at in 1..=steps {
        let base = pen.random.below(at);
        let (x, n) = (counts[base], pen.random.within(2, 9));
        let (count, how, sum) = match pen.random.below(4) {
            0 => (x + n, format!("{n} more than"), format!("{x} + {n}")),
            1 if x > n => (x - n, format!("{n} fewer than"), format!("{x} - {n}")),
            2 if x < 40 => (2 * x, "twice as many as".to_owned(), format!("2 x {x}")),
            3 if x < 30 => (3 * x, "three times as many as".to_owned(), format!("3 x {x}")),
            _ => (x + n, format!("{n} more than"), format!("{x} + {n}")),
        };
        counts.push(count);
        pen.say("{b} has {h} {a}", &[("a", &names[base]), ("b", &names[at]), ("h", &how)]);
        reasons.push(format!("{} has {sum} = {count}", names[at]));
    }
    let asked = if pen.random.chance(0.7) { steps } else { pen.random.below(steps + 1) };
    let answer = counts[asked].to_string();
    pen.say("how many {t} does {b} have?", &[("t", &things), ("b", &names[asked])]);
    if pen.random.chance(0.4) {
        pen.say("{r}. [So|Hence] the answer is {n}", &[("r", &reasons.join(", and ")), ("n", &answer)]);
    } else {
        pen.say("[answer: |]{n}", &[("n", &answer)]);
    }
    if steps > 1 && pen.random.chance(0.3) {
        let total: i64 = counts.iter().sum();
        pen.say("together they have {n}", &[("n", &total.to_string())]);
    }
}

/// Let a be 3; let b be a + 4.
fn letters(pen: &mut Pen) {
    const LETTERS: &[&str] = &["a", "b", "c", "d", "k", "m", "n", "p", "r", "s", "x", "y"];
    let steps = 1 + pen.random.below(4);
    let mut order: Vec<&str> = LETTERS.to_vec();
    pen.random.shuffle(&mut order);
    let mut values = vec![pen.random.within(1, 9)];
    let first = values[0].to_string();
    pen.say("let {v} = {n}", &[("v", order[0]), ("n", &first)]);
    for at in 1..=steps {
        let base = if pen.random.chance(0.7) { at - 1 } else { pen.random.below(at) };
        let (value, form) = match pen.random.below(4) {
            0 if values[base] < 30 => (values[base] * 2, format!("2 x {}", order[base])),
            1 if at > 1 => {
                let other = pen.random.below(at);
                (values[base] + values[other], format!("{} + {}", order[base], order[other]))
            }
            2 if values[base] > 4 => (values[base] - 3, format!("{} - 3", order[base])),
            _ => {
                let n = pen.random.within(1, 9);
                (values[base] + n, format!("{} + {n}", order[base]))
            }
        };
        values.push(value);
        pen.say("let {v} = {f}", &[("v", order[at]), ("f", &form)]);
    }
    pen.say("[then|so|it follows that] {v} = {n}", &[("v", order[steps]), ("n", &values[steps].to_string())]);
}

/// Sums with their carries, products, sequences and remainders.
pub fn arithmetic(pen: &mut Pen, length: usize) {
    let title = pen.fill("[lessons in arithmetic|reckoning|how to add and multiply|numbers]", &[]);
    pen.title(&title);
    let mut parts = 0;
    while parts == 0 || pen.len() < length {
        match pen.random.below(5) {
            0 => carried_sum(pen),
            1 => {
                let (a, b) = (pen.random.within(2, 12), pen.random.within(2, 12));
                pen.say(
                    "{a} x {b} = {c}, [and so|hence] {c} / {b} = {a}",
                    &[("a", &a.to_string()), ("b", &b.to_string()), ("c", &(a * b).to_string())],
                );
            }
            2 => {
                let (start, step) = (pen.random.within(1, 40), pen.random.within(2, 12));
                let shown: Vec<String> = (0..4 + pen.random.below(3) as i64).map(|at| (start + at * step).to_string()).collect();
                let next = start + shown.len() as i64 * step;
                pen.say("[continue the row|which number comes next]: {r}[, and then|; then] {n}, because each is {s} more than the one before", &[
                    ("r", &shown.join(", ")),
                    ("n", &next.to_string()),
                    ("s", &step.to_string()),
                ]);
            }
            3 => {
                let (a, b) = (pen.random.within(10, 150), pen.random.within(3, 12));
                pen.say(
                    "{a} divided by {b} [gives|is] {q}, remainder {r}, [since|because] {b} x {q} = {p} and {a} - {p} = {r}",
                    &[
                        ("a", &a.to_string()),
                        ("b", &b.to_string()),
                        ("q", &(a / b).to_string()),
                        ("r", &(a % b).to_string()),
                        ("p", &(a / b * b).to_string()),
                    ],
                );
            }
            _ => {
                let (a, b) = (pen.random.within(10, 999), pen.random.within(10, 999));
                pen.say(
                    "{a} + {b} = {c}[, and {c} - {a} = {b}|]",
                    &[("a", &a.to_string()), ("b", &b.to_string()), ("c", &(a + b).to_string())],
                );
            }
        }
        if pen.random.chance(0.5) {
            pen.line();
        }
        parts += 1;
    }
}

fn carried_sum(pen: &mut Pen) {
    let (a, b) = (pen.random.within(12, 999), pen.random.within(12, 999));
    pen.say("to add {a} and {b}, [begin with|start from] the ones", &[("a", &a.to_string()), ("b", &b.to_string())]);
    let (mut carry, mut power) = (0, 1);
    for place in ["ones", "tens", "hundreds"] {
        if a / power == 0 && b / power == 0 {
            break;
        }
        let (x, y) = (a / power % 10, b / power % 10);
        let sum = x + y + carry;
        let carried = if carry > 0 { " + 1" } else { "" };
        let note = if sum > 9 { format!(", write {} and carry 1", sum % 10) } else { String::new() };
        pen.say(
            "{p}: {x} + {y}{c} = {s}{n}",
            &[("p", place), ("x", &x.to_string()), ("y", &y.to_string()), ("c", carried), ("s", &sum.to_string()), ("n", &note)],
        );
        carry = sum / 10;
        power *= 10;
    }
    pen.say(
        "[the sum is|the answer is|so {a} + {b} =] {s}",
        &[("a", &a.to_string()), ("b", &b.to_string()), ("s", &(a + b).to_string())],
    );
}

/// Short proofs about numbers, with the numbers filled in.
pub fn proofs(world: &World, pen: &mut Pen, length: usize) {
    let mut parts = 0;
    while parts == 0 || pen.len() < length {
        let title = pen.fill("[theorem|claim|proposition] {n}", &[("n", &(parts + 1).to_string())]);
        pen.title(&title);
        match pen.random.below(5) {
            0 => {
                let (a, b) = (2 * pen.random.within(1, 40), 2 * pen.random.within(1, 40));
                pen.say("the sum of {a} and {b} is even. [Proof:|Proof.] {a} = 2 x {ha} and {b} = 2 x {hb}, so {a} + {b} = 2 x ({ha} + {hb}) = 2 x {h} = {s}, which is even", &[
                    ("a", &a.to_string()),
                    ("b", &b.to_string()),
                    ("ha", &(a / 2).to_string()),
                    ("hb", &(b / 2).to_string()),
                    ("h", &((a + b) / 2).to_string()),
                    ("s", &(a + b).to_string()),
                ]);
            }
            1 => {
                let n = pen.random.within(4, 200);
                let factor = (2..n).find(|d| n % d == 0);
                match factor {
                    Some(d) => pen.say("{n} is not prime. [Proof:|Proof.] {n} = {d} x {e}", &[
                        ("n", &n.to_string()),
                        ("d", &d.to_string()),
                        ("e", &(n / d).to_string()),
                    ]),
                    None => pen.say("{n} is prime. [Proof:|Proof.] no number from 2 to {m} divides it, [for|and] {m} x {m} is [already |]as far as we need to look", &[
                        ("n", &n.to_string()),
                        ("m", &n.isqrt().to_string()),
                    ]),
                }
            }
            2 => {
                let names = cast(world, pen, 3);
                let (x, d, e) = (pen.random.within(3, 60), pen.random.within(1, 20), pen.random.within(1, 20));
                pen.say("if {a} is {x} years old, {b} is {d} years older than {a}, and {c} is {e} years older than {b}, then {c} is {z}. [Proof:|Proof.] {b} is {x} + {d} = {y}, and {y} + {e} = {z}", &[
                    ("a", &names[0]),
                    ("b", &names[1]),
                    ("c", &names[2]),
                    ("x", &x.to_string()),
                    ("d", &d.to_string()),
                    ("e", &e.to_string()),
                    ("y", &(x + d).to_string()),
                    ("z", &(x + d + e).to_string()),
                ]);
            }
            3 => {
                let n = pen.random.within(2, 30);
                pen.say("the sum of the first {n} numbers is {s}. [Proof:|Proof.] pair the first with the last: each pair makes {m}, and {n} x {m} / 2 = {s}", &[
                    ("n", &n.to_string()),
                    ("m", &(n + 1).to_string()),
                    ("s", &(n * (n + 1) / 2).to_string()),
                ]);
            }
            _ => kinds(world, pen),
        }
        pen.say("[this was to be shown|and the claim is proved|which proves it|]", &[]);
        parts += 1;
    }
}
