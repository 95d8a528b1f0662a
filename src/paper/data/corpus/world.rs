//! The invented world: its lands, towns, people and things, and every fact about them, fixed by the seed.
//! Documents only ever tell these facts, so a model that learns one from one document can use it in another.

use super::names::{Register, Tongue, capital};
use super::relations::{Kind, RELATIONS, Relation};
use super::words::{ANIMAL_CLASSES, CLIMATES, COLOURS, EVENT_KINDS, GOODS, HABITATS, PLANT_CLASSES, SUBSTANCE_CLASSES, TOPICS};
use crate::paper::data::random::Random;
use std::collections::HashMap;

/// One entity or value: a kind and its rank. Low ranks are famous and turn up in many documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thing {
    pub kind: Kind,
    pub rank: u32,
}

pub struct World {
    names: HashMap<Kind, Vec<String>>,
    /// Per relation of `RELATIONS`, the value for each subject rank.
    facts: Vec<Vec<Thing>>,
    women: Vec<bool>,
    /// Relations by the kind they start from, as indices into `RELATIONS`.
    of_kind: HashMap<Kind, Vec<usize>>,
}

/// Present when the world is told of.
const TODAY: i64 = 900;

struct Builder {
    random: Random,
    /// Years of birth and death of each person: whoever does something must be alive and grown up.
    lives: Vec<(i64, i64)>,
    names: HashMap<Kind, Vec<String>>,
    facts: Vec<Vec<Thing>>,
    values: HashMap<(Kind, String), u32>,
    register: Register,
}

impl Builder {
    fn value(&mut self, kind: Kind, text: String) -> Thing {
        let names = self.names.entry(kind).or_default();
        let rank = *self.values.entry((kind, text)).or_insert_with_key(|(_, text)| {
            names.push(text.clone());
            names.len() as u32 - 1
        });
        Thing { kind, rank }
    }

    fn word(&mut self, text: &str) -> Thing {
        self.value(Kind::Word, text.to_owned())
    }

    fn number(&mut self, number: i64) -> Thing {
        self.value(Kind::Number, number.to_string())
    }

    fn state(&mut self, key: &str, from: Kind, value: Thing) {
        let at = RELATIONS.iter().position(|relation| relation.key == key && relation.from == from);
        let at = at.unwrap_or_else(|| panic!("no relation `{key}` of {from:?}"));
        assert_eq!(RELATIONS[at].to, value.kind, "relation `{key}` of {from:?}");
        self.facts[at].push(value);
    }

    /// Any thing of a kind, the famous ones more often.
    fn some(&mut self, kind: Kind, count: usize) -> Thing {
        Thing { kind, rank: self.random.zipf(count) as u32 }
    }

    /// A year in which a person was grown up and alive.
    fn year_of(&mut self, person: Thing) -> i64 {
        let (born, died) = self.lives[person.rank as usize];
        self.random.within(born + 18, (born + 55).min(died))
    }

    /// Someone who was grown up and alive in a year: a famous one if there is one.
    fn someone_in(&mut self, year: i64, people: usize) -> Thing {
        let fits = |&(born, died): &(i64, i64)| born + 18 <= year && year <= died;
        for _ in 0..40 {
            let rank = self.random.zipf(people);
            if fits(&self.lives[rank]) {
                return Thing { kind: Kind::Person, rank: rank as u32 };
            }
        }
        let nearest = (0..people).min_by_key(|&rank| (self.lives[rank].0 + 30 - year).abs()).unwrap_or(0);
        Thing { kind: Kind::Person, rank: nearest as u32 }
    }

    fn name(&mut self, kind: Kind, name: String) {
        self.names.entry(kind).or_default().push(name);
    }

    fn coin(&mut self, tongue: &Tongue, syllables: usize) -> String {
        let random = &mut self.random;
        self.register.fresh(|longer| tongue.word(random, syllables + longer))
    }
}

impl World {
    /// `people` sets the size of the world; everything else there is stands in proportion to it.
    pub fn new(seed: u64, people: usize) -> Self {
        let lands = (people / 80).clamp(6, 60);
        let towns = (people / 5).max(lands * 2);
        let (rivers, hills) = ((people / 25).max(4), (people / 30).max(4));
        let (books, guilds, events) = (people / 3 + 2, people / 25 + 2, people / 7 + 4);
        let (substances, animals, plants) = (people / 20 + 8, people / 16 + 8, people / 16 + 8);
        let goods = GOODS.len();

        let mut b = Builder {
            random: Random::new(&[seed, 0x0077_6f72_6c64]),
            lives: Vec::with_capacity(people),
            names: HashMap::new(),
            facts: RELATIONS.iter().map(|_| Vec::new()).collect(),
            values: HashMap::new(),
            register: Register::default(),
        };
        let tongues: Vec<Tongue> = (0..lands).map(|_| Tongue::new(&mut b.random)).collect();

        // Names first: facts may then refer to anything.
        for tongue in &tongues {
            let stem = b.coin(tongue, 2);
            let ending = *b.random.pick(&["ia", "land", "or", "ar", "un", "eth"]);
            b.name(Kind::Land, capital(&format!("{stem}{ending}")));
        }
        let town_land: Vec<usize> = (0..towns).map(|at| if at < lands { at } else { b.random.zipf(lands) }).collect();
        for &land in &town_land {
            let stem = b.coin(&tongues[land], 1);
            let ending = *b.random.pick(&tongues[land].town_endings);
            b.name(Kind::Town, capital(&format!("{stem}{ending}")));
        }
        for at in 0..rivers.max(hills) {
            let tongue = &tongues[at % lands];
            if at < rivers {
                let name = capital(&b.coin(tongue, 1));
                b.name(Kind::River, format!("the {name}"));
            }
            if at < hills {
                let name = capital(&b.coin(tongue, 2));
                b.name(Kind::Hill, format!("Mount {name}"));
            }
        }
        let given: Vec<Vec<String>> = tongues
            .iter()
            .map(|tongue| (0..24).map(|_| capital(&tongue.word(&mut b.random, 2))).filter(|name| name.len() > 2).collect())
            .collect();
        let births: Vec<usize> = (0..people).map(|_| b.random.zipf(towns)).collect();
        let mut women = Vec::with_capacity(people);
        for &town in &births {
            let land = town_land[town];
            let woman = b.random.chance(0.5);
            // Half of a land's given names belong to women, half to men.
            let half = given[land].len() / 2;
            let at = b.random.zipf(half) + if woman { half } else { 0 };
            let family = capital(&b.coin(&tongues[land], 2));
            b.name(Kind::Person, format!("{} {family}", given[land][at]));
            women.push(woman);
        }
        for (kind, count) in [(Kind::Substance, substances), (Kind::Animal, animals), (Kind::Plant, plants)] {
            for at in 0..count {
                let name = b.coin(&tongues[at % lands], 2);
                let ending = match kind {
                    Kind::Substance => ["ite", "ium", "ine"][at % 3],
                    Kind::Plant => ["wort", "leaf", "root", "berry"][at % 4],
                    _ => "",
                };
                b.name(kind, format!("{name}{ending}"));
            }
        }
        for good in GOODS {
            b.name(Kind::Good, (*good).to_owned());
        }

        b.people(&births, &town_land, towns);
        b.places(&town_land, (lands, towns, rivers, hills), (people, goods, plants, animals, substances));
        b.works((books, guilds, events), (people, towns));
        b.nature((substances, animals, plants, goods), (lands, people, guilds));

        let mut of_kind: HashMap<Kind, Vec<usize>> = HashMap::new();
        for (at, relation) in RELATIONS.iter().enumerate() {
            of_kind.entry(relation.from).or_default().push(at);
        }
        Self { names: b.names, facts: b.facts, women, of_kind }
    }

    pub fn name(&self, thing: Thing) -> &str {
        &self.names[&thing.kind][thing.rank as usize]
    }

    pub fn count(&self, kind: Kind) -> usize {
        self.names[&kind].len()
    }

    /// A thing of this kind, the famous ones more often.
    pub fn some(&self, random: &mut Random, kind: Kind) -> Thing {
        Thing { kind, rank: random.zipf(self.count(kind)) as u32 }
    }

    pub fn relations(&self, kind: Kind) -> &[usize] {
        self.of_kind.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Some relation of a thing. The first of all events is its own cause and the oldest person has no teacher: such facts are left untold.
    pub fn some_relation(&self, random: &mut Random, of: Thing) -> usize {
        loop {
            let at = *random.pick(self.relations(of.kind));
            if self.fact(at, of) != of {
                return at;
            }
        }
    }

    pub fn relation(&self, at: usize) -> &'static Relation {
        &RELATIONS[at]
    }

    /// The value of a relation: a fact.
    pub fn fact(&self, at: usize, of: Thing) -> Thing {
        debug_assert_eq!(RELATIONS[at].from, of.kind);
        self.facts[at][of.rank as usize]
    }

    pub fn number(&self, thing: Thing) -> i64 {
        debug_assert_eq!(thing.kind, Kind::Number);
        self.name(thing).parse().expect("numbers of the world are written in digits")
    }

    pub fn pronoun(&self, thing: Thing) -> &'static str {
        match thing.kind {
            Kind::Person if self.women[thing.rank as usize] => "she",
            Kind::Person => "he",
            Kind::Good => "they",
            _ => "it",
        }
    }
}

impl Builder {
    fn people(&mut self, births: &[usize], town_land: &[usize], towns: usize) {
        let people = births.len();
        let born: Vec<i64> = (0..people).map(|_| self.random.within(150, TODAY - 60)).collect();
        let mut by_birth: Vec<usize> = (0..people).collect();
        by_birth.sort_by_key(|&at| (born[at], at));
        let mut place = vec![0; people];
        for (order, &at) in by_birth.iter().enumerate() {
            place[at] = order;
        }
        // A pupil mostly takes up the teacher's trade, so trades run in lines through the generations.
        let mut trade = vec![0; people];
        let mut teacher = vec![0; people];
        for (order, &at) in by_birth.iter().enumerate() {
            teacher[at] = by_birth[order.saturating_sub(1 + self.random.below(people / 12 + 1))];
            trade[at] = if self.random.chance(0.75) && order > 0 { trade[teacher[at]] } else { self.random.below(TOPICS.len()) };
        }
        for at in 0..people {
            self.state("birthplace", Kind::Person, Thing { kind: Kind::Town, rank: births[at] as u32 });
            self.state("teacher", Kind::Person, Thing { kind: Kind::Person, rank: teacher[at] as u32 });
            let profession = self.word(TOPICS[trade[at]].profession);
            self.state("profession", Kind::Person, profession);
            let year = self.number(born[at]);
            self.state("born", Kind::Person, year);
            let age = self.random.within(35, 90);
            self.lives.push((born[at], born[at] + age));
            let year = self.number(born[at] + age);
            self.state("died", Kind::Person, year);
            // People stay in their land more often than not.
            let work = if self.random.chance(0.6) {
                let land = town_land[births[at]];
                let start = self.random.below(towns);
                (0..towns).map(|step| (start + step) % towns).find(|&town| town_land[town] == land).unwrap_or(births[at])
            } else {
                self.random.zipf(towns)
            };
            self.state("workplace", Kind::Person, Thing { kind: Kind::Town, rank: work as u32 });
            let order = place[at];
            let friend = by_birth[(order + 1 + self.random.below(people / 20 + 1)) % people];
            self.state("friend", Kind::Person, Thing { kind: Kind::Person, rank: friend as u32 });
        }
    }

    fn places(
        &mut self,
        town_land: &[usize],
        (lands, towns, rivers, hills): (usize, usize, usize, usize),
        (people, goods, plants, animals, substances): (usize, usize, usize, usize, usize),
    ) {
        for (at, &land) in town_land.iter().enumerate() {
            self.state("land", Kind::Town, Thing { kind: Kind::Land, rank: land as u32 });
            // A land has few rivers, so the river of a town says much about its land.
            let river = (land * 3 + self.random.below(3)) % rivers;
            self.state("river", Kind::Town, Thing { kind: Kind::River, rank: river as u32 });
            let founder = self.some(Kind::Person, people);
            self.state("founder", Kind::Town, founder);
            let year = self.year_of(founder);
            let year = self.number(year);
            self.state("founded", Kind::Town, year);
            let trade = self.some(Kind::Good, goods);
            self.state("trade", Kind::Town, trade);
            let size = self.random.within(3, 99) * 10i64.pow(self.random.below(3) as u32 + 1);
            let size = self.number(size);
            self.state("people", Kind::Town, size);
            let road = (at + 1 + self.random.below(7)) % towns;
            self.state("road", Kind::Town, Thing { kind: Kind::Town, rank: road as u32 });
        }
        for land in 0..lands {
            // The first towns are the capitals, one per land.
            self.state("capital", Kind::Land, Thing { kind: Kind::Town, rank: land as u32 });
            let ruler = self.some(Kind::Person, people);
            self.state("ruler", Kind::Land, ruler);
            let stem = self.register.fresh(|longer| {
                let tongue = Tongue::new(&mut self.random);
                tongue.word(&mut self.random, 1 + longer)
            });
            let coin = self.word(&format!("{stem}s"));
            self.state("coin", Kind::Land, coin);
            let climate = *self.random.pick(CLIMATES);
            let climate = self.word(climate);
            self.state("climate", Kind::Land, climate);
            let crop = self.some(Kind::Plant, plants);
            self.state("crop", Kind::Land, crop);
            let arms = self.some(Kind::Animal, animals);
            self.state("arms", Kind::Land, arms);
            self.state("border", Kind::Land, Thing { kind: Kind::Land, rank: ((land + 1) % lands) as u32 });
        }
        for _ in 0..rivers {
            let source = Thing { kind: Kind::Hill, rank: self.random.below(hills) as u32 };
            self.state("source", Kind::River, source);
            let length = self.random.within(12, 480);
            let length = self.number(length);
            self.state("length", Kind::River, length);
            let colour = *self.random.pick(&COLOURS[..8]);
            let colour = self.word(colour);
            self.state("colour", Kind::River, colour);
        }
        for _ in 0..hills {
            let height = self.random.within(4, 120) * 100;
            let height = self.number(height);
            self.state("height", Kind::Hill, height);
            let land = self.some(Kind::Land, lands);
            self.state("land", Kind::Hill, land);
            let stone = self.some(Kind::Substance, substances);
            self.state("stone", Kind::Hill, stone);
        }
    }

    fn works(&mut self, (books, guilds, events): (usize, usize, usize), (people, towns): (usize, usize)) {
        let adjectives = ["Short", "New", "Complete", "Plain", "Great", "Second", "Little", "Royal"];
        let forms = ["Account", "Book", "Art", "Mirror", "Guide", "Treatise", "Garden", "Compendium"];
        for at in 0..books {
            let topic = self.random.below(TOPICS.len());
            let noun = TOPICS[topic].nouns[self.random.below(18)];
            let form = *self.random.pick(&forms);
            let title = self.register.fresh(|longer| {
                let adjective = *self.random.pick(&adjectives);
                let number = if longer > 0 { format!(", Part {}", at + 1) } else { String::new() };
                format!("The {adjective} {form} of {}{number}", capital(&super::pen::plural(noun)))
            });
            self.name(Kind::Book, title);
            let author = self.some(Kind::Person, people);
            self.state("author", Kind::Book, author);
            let subject = self.word(TOPICS[topic].name);
            self.state("subject", Kind::Book, subject);
            let year = self.year_of(author);
            let year = self.number(year);
            self.state("year", Kind::Book, year);
        }
        for at in 0..guilds {
            let topic = &TOPICS[at % TOPICS.len()];
            let seat = Thing { kind: Kind::Town, rank: self.random.zipf(towns) as u32 };
            let town = self.names[&Kind::Town][seat.rank as usize].clone();
            let name = self.register.fresh(|longer| {
                let order =
                    if longer > 0 { format!(" of the {} Gate", capital(COLOURS[at % COLOURS.len()])) } else { String::new() };
                format!("the {town} Guild of {}{order}", capital(&super::pen::plural(topic.profession)))
            });
            self.name(Kind::Guild, name);
            self.state("seat", Kind::Guild, seat);
            let master = self.some(Kind::Person, people);
            self.state("master", Kind::Guild, master);
            let craft = self.word(topic.name);
            self.state("craft", Kind::Guild, craft);
        }
        for at in 0..events {
            let place = Thing { kind: Kind::Town, rank: self.random.zipf(towns) as u32 };
            let town = self.names[&Kind::Town][place.rank as usize].clone();
            let kind = *self.random.pick(EVENT_KINDS);
            let name = self.register.fresh(|longer| {
                let order = ["", "Second ", "Third ", "Great ", "Last "][longer.min(4)];
                if longer < 5 { format!("the {order}{kind} of {town}") } else { format!("the {kind} of {town} ({at})") }
            });
            self.name(Kind::Event, name);
            self.state("place", Kind::Event, place);
            // Events are named in the order they happened, so a cause always lies before its effect.
            let year = 200 + (at as i64) * (TODAY - 220) / events as i64;
            let leader = self.someone_in(year, people);
            self.state("leader", Kind::Event, leader);
            let year = self.number(year);
            self.state("year", Kind::Event, year);
            let back = 1 + self.random.below(events / 10 + 1);
            self.state("cause", Kind::Event, Thing { kind: Kind::Event, rank: at.saturating_sub(back) as u32 });
        }
    }

    fn nature(
        &mut self,
        (substances, animals, plants, goods): (usize, usize, usize, usize),
        (lands, people, guilds): (usize, usize, usize),
    ) {
        for at in 0..substances {
            let class = self.word(SUBSTANCE_CLASSES[at % SUBSTANCE_CLASSES.len()]);
            self.state("class", Kind::Substance, class);
            let colour = COLOURS[self.random.zipf(COLOURS.len())];
            let colour = self.word(colour);
            self.state("colour", Kind::Substance, colour);
            let land = self.some(Kind::Land, lands);
            self.state("land", Kind::Substance, land);
            let melts = self.random.within(5, 180) * 10;
            let melts = self.number(melts);
            self.state("melts", Kind::Substance, melts);
            let finder = self.some(Kind::Person, people);
            self.state("finder", Kind::Substance, finder);
        }
        for at in 0..animals {
            let class = self.word(ANIMAL_CLASSES[at % ANIMAL_CLASSES.len()]);
            self.state("class", Kind::Animal, class);
            let habitat = self.random.below(HABITATS.len());
            // Most animals wear the colour of the place they live in.
            let colour = if self.random.chance(0.6) { habitat % COLOURS.len() } else { self.random.zipf(COLOURS.len()) };
            let colour = self.word(COLOURS[colour]);
            self.state("colour", Kind::Animal, colour);
            let habitat = self.word(HABITATS[habitat]);
            self.state("habitat", Kind::Animal, habitat);
            let food = Thing { kind: Kind::Plant, rank: self.random.below(plants) as u32 };
            self.state("food", Kind::Animal, food);
            let hunter = (at + 1 + self.random.below(animals - 1)) % animals;
            self.state("hunter", Kind::Animal, Thing { kind: Kind::Animal, rank: hunter as u32 });
            let years = self.random.within(2, 60);
            let years = self.number(years);
            self.state("lifespan", Kind::Animal, years);
        }
        for at in 0..plants {
            let class = self.word(PLANT_CLASSES[at % PLANT_CLASSES.len()]);
            self.state("class", Kind::Plant, class);
            let colour = COLOURS[self.random.zipf(COLOURS.len())];
            let colour = self.word(colour);
            self.state("colour", Kind::Plant, colour);
            let habitat = *self.random.pick(HABITATS);
            let habitat = self.word(habitat);
            self.state("habitat", Kind::Plant, habitat);
            let land = self.some(Kind::Land, lands);
            self.state("land", Kind::Plant, land);
            let dye = self.some(Kind::Good, goods);
            self.state("dye", Kind::Plant, dye);
        }
        for _ in 0..goods {
            let material = self.some(Kind::Substance, substances);
            self.state("material", Kind::Good, material);
            let maker = self.some(Kind::Guild, guilds);
            self.state("maker", Kind::Good, maker);
            let price = self.random.within(2, 95);
            let price = self.number(price);
            self.state("price", Kind::Good, price);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_has_a_value_for_every_subject() {
        for people in [20, 400] {
            let world = World::new(3, people);
            for (at, relation) in RELATIONS.iter().enumerate() {
                for rank in 0..world.count(relation.from) {
                    let value = world.fact(at, Thing { kind: relation.from, rank: rank as u32 });
                    assert!(!world.name(value).is_empty());
                }
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_world_and_another_seed_another() {
        let name = |seed| World::new(seed, 200).name(Thing { kind: Kind::Person, rank: 5 }).to_owned();
        assert_eq!(name(1), name(1));
        assert_ne!(name(1), name(2));
    }

    #[test]
    fn whoever_did_something_was_alive_and_grown_up() {
        let world = World::new(4, 500);
        let relation = |key: &str, from| {
            RELATIONS.iter().position(|relation| relation.key == key && relation.from == from).expect("is there")
        };
        let [born, died] = ["born", "died"].map(|key| relation(key, Kind::Person));
        for (kind, who, when) in
            [(Kind::Town, "founder", "founded"), (Kind::Book, "author", "year"), (Kind::Event, "leader", "year")]
        {
            for rank in 0..world.count(kind) {
                let thing = Thing { kind, rank: rank as u32 };
                let person = world.fact(relation(who, kind), thing);
                let year = world.number(world.fact(relation(when, kind), thing));
                let (born, died) = (world.number(world.fact(born, person)), world.number(world.fact(died, person)));
                assert!(born + 18 <= year && year <= died, "{}: {year}, {} {born}-{died}", world.name(thing), world.name(person));
            }
        }
    }

    #[test]
    fn names_are_not_shared() {
        let world = World::new(0, 2000);
        for kind in [Kind::Town, Kind::Person, Kind::Book, Kind::Event, Kind::Guild] {
            let distinct: std::collections::HashSet<&String> = world.names[&kind].iter().collect();
            assert_eq!(distinct.len(), world.count(kind), "{kind:?}");
        }
    }
}
