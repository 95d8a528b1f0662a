//! The English the invented world is described in: a stock of words per topic, most common first.
//! Order matters: words are drawn by rank, so the head of a list is met often and its tail seldom.

/// The words one trade talks in. A document keeps to one or two topics, so the topic can be learned from its words.
pub struct Topic {
    pub name: &'static str,
    /// Who practises it.
    pub profession: &'static str,
    pub nouns: &'static [&'static str],
    /// Plural-subject present; `past` gives the past of the same rank.
    pub verbs: &'static [&'static str],
    pub past: &'static [&'static str],
    pub adjectives: &'static [&'static str],
}

macro_rules! words {
    ($($word:literal)*) => { &[$($word),*] };
}

pub const TOPICS: &[Topic] = &[
    Topic {
        name: "farming",
        profession: "farmer",
        nouns: words!("field" "seed" "harvest" "plough" "barn" "furrow" "meadow" "orchard" "sheaf" "ox" "hedge" "granary" "sickle" "scythe" "stubble" "manure" "trough" "pasture" "haystack" "yoke" "fallow strip" "irrigation ditch" "winnowing fan" "seedbed"),
        verbs: words!("sow" "reap" "plough" "water" "store" "thresh" "weed" "graze" "fence" "harrow"),
        past: words!("sowed" "reaped" "ploughed" "watered" "stored" "threshed" "weeded" "grazed" "fenced" "harrowed"),
        adjectives: words!("fertile" "ripe" "dry" "muddy" "golden" "heavy" "fallow" "weedy" "sheltered" "terraced"),
    },
    Topic {
        name: "mining",
        profession: "miner",
        nouns: words!("ore" "shaft" "vein" "pit" "lamp" "tunnel" "pick" "seam" "crystal" "gallery" "furnace" "slag heap" "windlass" "nugget" "quarry" "timber prop" "pulley" "sluice" "crucible" "bellows" "adit" "gangue" "assay" "overburden"),
        verbs: words!("dig" "haul" "smelt" "crush" "sort" "drain" "sink" "wash" "test" "shore"),
        past: words!("dug" "hauled" "smelted" "crushed" "sorted" "drained" "sank" "washed" "tested" "shored"),
        adjectives: words!("deep" "hard" "dark" "rich" "narrow" "brittle" "flooded" "metallic" "dusty" "exhausted"),
    },
    Topic {
        name: "sailing",
        profession: "sailor",
        nouns: words!("ship" "sail" "harbour" "mast" "rope" "tide" "anchor" "deck" "chart" "rudder" "keel" "cargo" "oar" "compass" "lighthouse" "hull" "rigging" "gale" "shoal" "pilot" "berth" "ballast" "capstan" "bowsprit"),
        verbs: words!("steer" "load" "row" "repair" "moor" "sight" "launch" "hoist" "caulk" "sound"),
        past: words!("steered" "loaded" "rowed" "repaired" "moored" "sighted" "launched" "hoisted" "caulked" "sounded"),
        adjectives: words!("swift" "stormy" "calm" "seaworthy" "salty" "foreign" "leaky" "coastal" "windward" "becalmed"),
    },
    Topic {
        name: "weaving",
        profession: "weaver",
        nouns: words!("cloth" "thread" "loom" "wool" "dye" "needle" "pattern" "spindle" "shuttle" "carpet" "linen" "bobbin" "tapestry" "hem" "fleece" "warp" "weft" "distaff" "tassel" "felt" "skein" "selvage" "brocade" "heddle"),
        verbs: words!("spin" "weave" "dye" "stitch" "cut" "fold" "card" "mend" "embroider" "bleach"),
        past: words!("spun" "wove" "dyed" "stitched" "cut" "folded" "carded" "mended" "embroidered" "bleached"),
        adjectives: words!("fine" "coarse" "soft" "striped" "bright" "tight" "woollen" "faded" "silken" "threadbare"),
    },
    Topic {
        name: "medicine",
        profession: "physician",
        nouns: words!("patient" "fever" "wound" "medicine" "heart" "bone" "herb" "pulse" "lung" "bandage" "cure" "dose" "symptom" "infection" "salve" "liver" "nerve" "poultice" "remedy" "stomach" "joint" "artery" "tincture" "diagnosis"),
        verbs: words!("treat" "examine" "heal" "prescribe" "bind" "observe" "clean" "soothe" "bathe" "diagnose"),
        past: words!("treated" "examined" "healed" "prescribed" "bound" "observed" "cleaned" "soothed" "bathed" "diagnosed"),
        adjectives: words!("sick" "healthy" "weak" "painful" "swollen" "bitter" "contagious" "feverish" "chronic" "convalescent"),
    },
    Topic {
        name: "astronomy",
        profession: "astronomer",
        nouns: words!("star" "moon" "planet" "sky" "comet" "orbit" "eclipse" "lens" "night" "horizon" "telescope" "calendar" "solstice" "constellation" "shadow" "meridian" "equinox" "observatory" "zenith" "crescent" "sundial" "almanac" "parallax" "astrolabe"),
        verbs: words!("observe" "measure" "predict" "record" "map" "compare" "follow" "calculate" "name" "chart"),
        past: words!("observed" "measured" "predicted" "recorded" "mapped" "compared" "followed" "calculated" "named" "charted"),
        adjectives: words!("bright" "distant" "faint" "round" "regular" "rising" "visible" "celestial" "luminous" "retrograde"),
    },
    Topic {
        name: "music",
        profession: "musician",
        nouns: words!("song" "drum" "flute" "string" "note" "melody" "voice" "rhythm" "choir" "harp" "scale" "dance" "chord" "bell" "trumpet" "lute" "hymn" "refrain" "interval" "reed" "ballad" "cadence" "bagpipe" "dulcimer"),
        verbs: words!("play" "sing" "tune" "compose" "teach" "repeat" "perform" "pluck" "rehearse" "improvise"),
        past: words!("played" "sang" "tuned" "composed" "taught" "repeated" "performed" "plucked" "rehearsed" "improvised"),
        adjectives: words!("loud" "slow" "gentle" "merry" "low" "solemn" "sweet" "shrill" "harmonious" "plaintive"),
    },
    Topic {
        name: "law",
        profession: "judge",
        nouns: words!("law" "court" "witness" "contract" "tax" "council" "oath" "dispute" "charter" "fine" "debt" "crime" "custom" "verdict" "petition" "heir" "treaty" "seal" "statute" "tenant" "guardian" "bailiff" "testament" "arbitration"),
        verbs: words!("judge" "write" "settle" "forbid" "grant" "witness" "amend" "enforce" "appeal" "repeal"),
        past: words!("judged" "wrote" "settled" "forbade" "granted" "witnessed" "amended" "enforced" "appealed" "repealed"),
        adjectives: words!("just" "old" "public" "strict" "lawful" "written" "guilty" "binding" "solemn" "unanimous"),
    },
    Topic {
        name: "cooking",
        profession: "cook",
        nouns: words!("bread" "soup" "oven" "salt" "kitchen" "flour" "pot" "spice" "meal" "oil" "honey" "onion" "knife" "dough" "broth" "cheese" "pepper" "yeast" "ladle" "cellar" "vinegar" "pickle" "marinade" "griddle"),
        verbs: words!("bake" "boil" "season" "stir" "taste" "slice" "roast" "knead" "serve" "simmer"),
        past: words!("baked" "boiled" "seasoned" "stirred" "tasted" "sliced" "roasted" "kneaded" "served" "simmered"),
        adjectives: words!("fresh" "warm" "sweet" "sour" "crisp" "salty" "spicy" "stale" "fragrant" "savoury"),
    },
    Topic {
        name: "building",
        profession: "mason",
        nouns: words!("wall" "stone" "bridge" "roof" "tower" "arch" "beam" "brick" "gate" "foundation" "mortar" "pillar" "stair" "dome" "scaffold" "vault" "chisel" "plumb line" "lintel" "buttress" "cornice" "keystone" "parapet" "aqueduct"),
        verbs: words!("build" "lay" "raise" "carve" "measure" "repair" "support" "plaster" "level" "demolish"),
        past: words!("built" "laid" "raised" "carved" "measured" "repaired" "supported" "plastered" "levelled" "demolished"),
        adjectives: words!("solid" "tall" "strong" "square" "thick" "ruined" "vaulted" "weathered" "symmetrical" "fortified"),
    },
    Topic {
        name: "geometry",
        profession: "geometer",
        nouns: words!("line" "angle" "circle" "number" "triangle" "square" "proof" "point" "ratio" "area" "plane" "sum" "theorem" "radius" "diagonal" "cube" "axiom" "remainder" "polygon" "perimeter" "divisor" "lemma" "tangent" "conjecture"),
        verbs: words!("prove" "draw" "count" "divide" "compare" "double" "construct" "bisect" "assume" "generalise"),
        past: words!("proved" "drew" "counted" "divided" "compared" "doubled" "constructed" "bisected" "assumed" "generalised"),
        adjectives: words!("equal" "straight" "right" "parallel" "whole" "even" "odd" "similar" "perpendicular" "commensurable"),
    },
    Topic {
        name: "weather",
        profession: "weather keeper",
        nouns: words!("rain" "wind" "cloud" "storm" "snow" "frost" "season" "drought" "flood" "fog" "thunder" "ice" "breeze" "hail" "valley" "temperature" "monsoon" "thaw" "lightning" "humidity" "barometer" "dew" "avalanche" "inversion"),
        verbs: words!("watch" "measure" "record" "expect" "forecast" "note" "fear" "describe" "explain" "correlate"),
        past: words!("watched" "measured" "recorded" "expected" "forecast" "noted" "feared" "described" "explained" "correlated"),
        adjectives: words!("cold" "wet" "warm" "sudden" "mild" "severe" "misty" "seasonal" "humid" "torrential"),
    },
    Topic {
        name: "printing",
        profession: "printer",
        nouns: words!("book" "page" "ink" "letter" "press" "paper" "library" "margin" "type" "copy" "binding" "map" "parchment" "quill" "scroll" "alphabet" "chapter" "engraving" "index" "catalogue" "vellum" "colophon" "typeface" "manuscript"),
        verbs: words!("print" "copy" "bind" "read" "correct" "translate" "illustrate" "publish" "annotate" "catalogue"),
        past: words!("printed" "copied" "bound" "read" "corrected" "translated" "illustrated" "published" "annotated" "catalogued"),
        adjectives: words!("printed" "rare" "legible" "ancient" "blank" "famous" "anonymous" "illustrated" "marginal" "apocryphal"),
    },
    Topic {
        name: "trade",
        profession: "merchant",
        nouns: words!("market" "price" "coin" "caravan" "shop" "scale" "barrel" "profit" "road" "cart" "ledger" "customer" "tariff" "warehouse" "bargain" "loan" "auction" "toll" "partner" "receipt" "inventory" "monopoly" "invoice" "surplus"),
        verbs: words!("sell" "buy" "weigh" "carry" "count" "trade" "lend" "export" "import" "auction"),
        past: words!("sold" "bought" "weighed" "carried" "counted" "traded" "lent" "exported" "imported" "auctioned"),
        adjectives: words!("cheap" "costly" "honest" "wealthy" "busy" "scarce" "foreign" "profitable" "wholesale" "perishable"),
    },
];

pub const ADVERBS: &[&str] = words!("often" "usually" "slowly" "carefully" "together" "rarely" "quickly" "quietly" "always" "gladly" "seldom" "patiently" "openly" "skilfully" "nightly" "reluctantly" "cheaply" "diligently" "occasionally" "meticulously");
pub const PLACES: &[&str] = words!("in the valley" "near the river" "at the market" "behind the hill" "in the old town" "along the coast" "by the gate" "under the bridge" "in the workshop" "on the road" "beyond the forest" "inside the hall" "at the crossroads" "on the plateau" "among the ruins" "beside the granary");
pub const TIMES: &[&str] = words!("in spring" "every morning" "in winter" "after the harvest" "at night" "in autumn" "before dawn" "once a year" "in dry years" "during the festival" "at midsummer" "after heavy rain" "on market days" "between the wars" "in times of peace" "at the turn of the century");
pub const REASONS: &[&str] = words!("because it saves time" "so that nothing is wasted" "because it is safer" "as their parents did" "since it costs less" "to avoid mistakes" "because the law requires it" "so that everyone can see it" "out of habit" "in order to compare results" "for fear of fire" "because the weather changes quickly");
pub const COLOURS: &[&str] =
    words!("red" "white" "blue" "green" "black" "grey" "yellow" "brown" "violet" "silver" "orange" "pink");
pub const HABITATS: &[&str] =
    words!("forests" "marshes" "rivers" "caves" "grasslands" "mountains" "lakes" "deserts" "orchards" "cliffs" "reefs" "heaths");
pub const ANIMAL_CLASSES: &[&str] = words!("bird" "fish" "beetle" "lizard" "rodent" "deer" "moth" "frog" "goat" "crab");
pub const PLANT_CLASSES: &[&str] = words!("herb" "tree" "shrub" "grass" "vine" "fern" "reed" "moss");
pub const SUBSTANCE_CLASSES: &[&str] = words!("metal" "stone" "salt" "resin" "clay" "oil" "crystal" "pigment");
pub const CLIMATES: &[&str] = words!("mild" "dry" "cold" "rainy" "windy" "hot" "foggy" "stormy");
pub const GOODS: &[&str] = words!("rope" "ink" "glass" "soap" "candles" "paper" "lanterns" "knives" "pottery" "barrels" "needles" "carpets" "bells" "mirrors" "sails" "buttons" "locks" "combs" "lenses" "tiles" "saddles" "drums" "clocks" "gloves" "kettles" "ploughs" "nets" "baskets" "dyes" "perfume" "medicine" "chains" "wheels" "bricks" "furniture" "hats" "boots" "spoons" "musical boxes" "weather vanes");
pub const EVENT_KINDS: &[&str] = words!("Flood" "Drought" "Fire" "Famine" "Treaty" "Revolt" "Siege" "Plague" "Famine Tax" "Great Frost" "Census" "Strike" "Council" "Exodus" "Eclipse" "Long Peace");

/// What leads to what: `(cause, effect)`. Chains are walks through this table, so their steps recur in every document that tells one.
pub const CAUSES: &[(&str, &str)] = &[
    ("the rains failed", "the wells ran dry"),
    ("the wells ran dry", "the cattle grew thin"),
    ("the wells ran dry", "people left the villages"),
    ("the cattle grew thin", "milk became scarce"),
    ("milk became scarce", "the price of cheese rose"),
    ("the price of cheese rose", "the merchants grew rich"),
    ("the merchants grew rich", "the council raised a new tax"),
    ("the council raised a new tax", "the weavers stopped work"),
    ("the weavers stopped work", "cloth became scarce"),
    ("cloth became scarce", "the sailors could not mend their sails"),
    ("the sailors could not mend their sails", "the ships stayed in harbour"),
    ("the ships stayed in harbour", "foreign goods did not arrive"),
    ("foreign goods did not arrive", "local workshops found new customers"),
    ("local workshops found new customers", "young people learned a trade"),
    ("young people learned a trade", "the town grew"),
    ("the town grew", "more houses were built"),
    ("more houses were built", "the forest was cut down"),
    ("the forest was cut down", "the hillside lost its soil"),
    ("the hillside lost its soil", "the river filled with mud"),
    ("the river filled with mud", "the river flooded its banks"),
    ("the river flooded its banks", "the bridge was swept away"),
    ("the bridge was swept away", "the caravans took another road"),
    ("the caravans took another road", "the market lost its customers"),
    ("the market lost its customers", "the shops closed"),
    ("the shops closed", "people left the villages"),
    ("people left the villages", "the fields lay empty"),
    ("the fields lay empty", "the harvest was small"),
    ("the harvest was small", "the price of bread rose"),
    ("the price of bread rose", "the poor went hungry"),
    ("the poor went hungry", "a revolt broke out"),
    ("a revolt broke out", "the council repealed the tax"),
    ("the council repealed the tax", "trade revived"),
    ("trade revived", "the town grew"),
    ("the snow melted early", "the river flooded its banks"),
    ("a hard frost came in spring", "the orchards bore no fruit"),
    ("the orchards bore no fruit", "the bees starved"),
    ("the bees starved", "there was no honey"),
    ("there was no honey", "the price of candles rose"),
    ("the price of candles rose", "the scholars worked only by day"),
    ("the scholars worked only by day", "the great map was never finished"),
    ("the great map was never finished", "ships were lost on the shoals"),
    ("ships were lost on the shoals", "a lighthouse was built"),
    ("a lighthouse was built", "more ships came to the harbour"),
    ("more ships came to the harbour", "the merchants grew rich"),
    ("a new vein of ore was found", "miners moved to the hills"),
    ("miners moved to the hills", "the price of bread rose"),
    ("miners moved to the hills", "the forest was cut down"),
    ("a comet was seen", "people feared the future"),
    ("people feared the future", "they stored grain"),
    ("they stored grain", "the granaries were full"),
    ("the granaries were full", "the next famine was mild"),
];

/// First causes: those that nothing in `CAUSES` explains.
pub const FIRST_CAUSES: &[&str] = words!("the rains failed" "the snow melted early" "a hard frost came in spring" "a new vein of ore was found" "a comet was seen" "the council raised a new tax" "the forest was cut down");
