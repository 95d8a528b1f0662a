//! What can be said of things: one row per relation, with the phrases that state it, name its value and ask for it.
//! Phrases chain: the noun of one relation can be the subject of another, which is how two-hop sentences arise.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Land,
    Town,
    River,
    Hill,
    Person,
    Book,
    Guild,
    Substance,
    Animal,
    Plant,
    Good,
    Event,
    /// A plain word: a colour, a trade. It has no facts of its own, so chains end here.
    Word,
    /// A number that can be compared and reckoned with.
    Number,
}

pub struct Relation {
    pub key: &'static str,
    pub from: Kind,
    pub to: Kind,
    /// What follows the subject: `was born in {y}`.
    pub predicate: &'static str,
    /// Names the value by way of the subject: `the birthplace of {x}`.
    pub noun: &'static str,
    /// Asks for the value, without the question mark.
    pub question: &'static str,
}

const fn relation(
    from: Kind,
    key: &'static str,
    to: Kind,
    predicate: &'static str,
    noun: &'static str,
    question: &'static str,
) -> Relation {
    Relation { key, from, to, predicate, noun, question }
}

use Kind::{Animal, Book, Event, Good, Guild, Hill, Land, Number, Person, Plant, River, Substance, Town, Word};

#[rustfmt::skip]
pub const RELATIONS: &[Relation] = &[
    relation(Person, "birthplace", Town, "[was born in|came from|grew up in] {y}", "the [birthplace of {x}|town where {x} was born]", "[where was {x} born|in which town was {x} born]"),
    relation(Person, "teacher", Person, "[was taught by|was a pupil of|learned the craft from] {y}", "the [teacher of {x}|person who taught {x}]", "[who taught {x}|who was the teacher of {x}]"),
    relation(Person, "profession", Word, "[was|worked as|became|was known as] {a:y}", "the [profession|trade] of {x}", "what was the [profession|trade] of {x}"),
    relation(Person, "born", Number, "was born in the year {y}", "the year in which {x} was born", "[when|in what year] was {x} born"),
    relation(Person, "died", Number, "died in [the year |]{y}", "the year in which {x} died", "[when|in what year] did {x} die"),
    relation(Person, "workplace", Town, "[worked in|settled in|spent many years in] {y}", "the town where {x} [worked|settled]", "where did {x} work"),
    relation(Person, "friend", Person, "[exchanged letters with|was a close friend of|often quarrelled with] {y}", "the person to whom {x} wrote letters", "to whom did {x} write letters"),
    relation(Town, "land", Land, "[lies in|belongs to|is a town of|is found in] {y}", "the land [of {x}|to which {x} belongs]", "[in which land does {x} lie|to which land does {x} belong]"),
    relation(Town, "river", River, "[stands on|was built beside|draws its water from] {y}", "the river [of {x}|on which {x} stands]", "on which river does {x} stand"),
    relation(Town, "founder", Person, "was [founded|planned] by {y}", "the founder of {x}", "who founded {x}"),
    relation(Town, "founded", Number, "was founded in [the year |]{y}", "the year in which {x} was founded", "[when|in what year] was {x} founded"),
    relation(Town, "trade", Good, "is [known|famous] for {y}", "the chief product of {x}", "for what product is {x} known"),
    relation(Town, "people", Number, "has {y} inhabitants", "the number of people in {x}", "how many people live in {x}"),
    relation(Town, "road", Town, "is [joined by road to|one day's walk from|a neighbour of] {y}", "the town down the road from {x}", "which town is joined by road to {x}"),
    relation(Land, "capital", Town, "[has its capital at|is governed from] {y}", "the capital of {x}", "what is the capital of {x}"),
    relation(Land, "ruler", Person, "was [long |]ruled by {y}", "the ruler of {x}", "who ruled {x}"),
    relation(Land, "coin", Word, "[pays in|mints] {y}", "the money of {x}", "what money is used in {x}"),
    relation(Land, "climate", Word, "has a {y} climate", "the climate of {x}", "what is the climate of {x} like"),
    relation(Land, "crop", Plant, "[grows mostly|lives on|exports] {y}", "the main crop of {x}", "what is the main crop of {x}"),
    relation(Land, "arms", Animal, "bears the {y} on its flag", "the animal on the flag of {x}", "which animal is on the flag of {x}"),
    relation(Land, "border", Land, "[shares a border with|lies next to] {y}", "the neighbour of {x}", "with which land does {x} share a border"),
    relation(River, "source", Hill, "[rises on|has its source on|springs from] {y}", "the hill where {x} rises", "where does {x} rise"),
    relation(River, "length", Number, "is {y} miles long", "the length of {x} in miles", "how many miles long is {x}"),
    relation(River, "colour", Word, "runs {y} [in spring|after rain]", "the colour of {x}", "what colour is {x} in spring"),
    relation(Hill, "height", Number, "[rises to|is] {y} feet", "the height of {x} in feet", "how many feet high is {x}"),
    relation(Hill, "land", Land, "[stands in|overlooks] {y}", "the land of {x}", "in which land does {x} stand"),
    relation(Hill, "stone", Substance, "[is rich in|holds veins of] {y}", "the stuff mined on {x}", "what is mined on {x}"),
    relation(Book, "author", Person, "was written by {y}", "the author of {x}", "who wrote {x}"),
    relation(Book, "subject", Word, "[deals with|is a treatise on|teaches] {y}", "the subject of {x}", "what does {x} deal with"),
    relation(Book, "year", Number, "appeared in [the year |]{y}", "the year in which {x} appeared", "when did {x} appear"),
    relation(Guild, "seat", Town, "[meets in|has its hall in] {y}", "the seat of {x}", "in which town does {x} meet"),
    relation(Guild, "master", Person, "was [led|reformed] by {y}", "the master of {x}", "who led {x}"),
    relation(Guild, "craft", Word, "[guards the secrets of|examines pupils in] {y}", "the craft of {x}", "what craft does {x} guard"),
    relation(Substance, "class", Word, "is a kind of {y}", "the kind of stuff that {x} is", "what kind of stuff is {x}"),
    relation(Substance, "colour", Word, "is {y} [in colour|when pure]", "the colour of {x}", "what colour is {x}"),
    relation(Substance, "land", Land, "[is dug in|comes from] {y}", "the land where {x} is dug", "in which land is {x} dug"),
    relation(Substance, "melts", Number, "melts at {y} degrees", "the melting point of {x}", "at how many degrees does {x} melt"),
    relation(Substance, "finder", Person, "was first described by {y}", "the person who first described {x}", "who first described {x}"),
    relation(Animal, "class", Word, "is a kind of {y}", "the kind of animal that the {x} is", "what kind of animal is the {x}"),
    relation(Animal, "colour", Word, "[is|is usually] {y}", "the colour of the {x}", "what colour is the {x}"),
    relation(Animal, "habitat", Word, "lives in {y}", "the home of the {x}", "where does the {x} live"),
    relation(Animal, "food", Plant, "[eats|feeds on|lives on] {y}", "the food of the {x}", "what does the {x} eat"),
    relation(Animal, "hunter", Animal, "is [hunted|eaten] by the {y}", "the animal that hunts the {x}", "which animal hunts the {x}"),
    relation(Animal, "lifespan", Number, "lives for {y} years", "the life of the {x} in years", "how many years does the {x} live"),
    relation(Plant, "class", Word, "is a kind of {y}", "the kind of plant that {x} is", "what kind of plant is {x}"),
    relation(Plant, "colour", Word, "has {y} flowers", "the colour of the flowers of {x}", "what colour are the flowers of {x}"),
    relation(Plant, "habitat", Word, "grows in {y}", "the place where {x} grows", "where does {x} grow"),
    relation(Plant, "land", Land, "was first grown in {y}", "the land where {x} was first grown", "in which land was {x} first grown"),
    relation(Plant, "dye", Good, "is used to make {y}", "the thing made from {x}", "what is made from {x}"),
    relation(Good, "material", Substance, "must be made with {y}", "the material needed for {x}", "what material is needed for {x}"),
    relation(Good, "maker", Guild, "may be sold only by {y}", "the guild that sells {x}", "which guild sells {x}"),
    relation(Good, "price", Number, "used to cost {y} pennies", "the price of {x} in pennies", "how many pennies was the price of {x}"),
    relation(Event, "year", Number, "[began|took place] in [the year |]{y}", "the year of {x}", "in what year was {x}"),
    relation(Event, "place", Town, "[began in|struck|is remembered in] {y}", "the town where {x} began", "in which town did {x} begin"),
    relation(Event, "leader", Person, "made the name of {y}", "the person made famous by {x}", "who was made famous by {x}"),
    relation(Event, "cause", Event, "[followed from|was caused by|had its roots in] {y}", "the cause of {x}", "what was the cause of {x}"),
];
