"""Pages of the general web: cooking, travel, nature, crafts, science, small towns. Every line is a full sentence."""

# ruff: noqa: E501 - a sentence stands on one line, however long.

from __future__ import annotations

COOKING = (
    "wash {n:300-900} grams of {vegetable}, cut them into [dice|slices|strips] and let them [sweat|soften|brown] in {material}-coloured butter for {n:4-25} minutes.",
    "add {n:2-6} [cloves of garlic|shallots|spoonfuls of mustard] and a handful of {herb}, and stir until the kitchen smells of [summer|an old inn|{city} market].",
    "my grandmother, who cooked in {city}, put {herb} into {dish} and never [explained|wrote down|measured] anything.",
    "for {n:2-8} people you need {n:200-900} millilitres of stock, {n:100-500} grams of flour and a [patient|heavy|wide] pan.",
    "serve the {dish} with {vegetable} and a glass of [cider|cold tea|red wine], and save a slice for [breakfast|the neighbour|{weekday}].",
    "the oven should stand at {n:140-230} degrees, and the dish wants {n:20-95} minutes on the [middle|lowest|upper] shelf.",
    "[some|many] cooks in {country} leave out the {herb} and use [lemon peel|vinegar|smoked salt] instead, which suits {vegetable} well.",
    "if the [dough|sauce|crust] seems too [dry|thin|heavy], add {n:1-5} spoonfuls of [milk|water|cream] and wait for {n:5-40} minutes.",
    "we tried {dish} and {dish} side by side, and the [children|guests|judges] [preferred|finished|fought over] the first.",
    "leftover {vegetable} make a fine {dish} when they are [fried|mashed|baked] with an egg and some {herb}.",
)
TRAVEL = (
    "from {city} the [slow train|night ferry|post bus] takes {n:2-19} hours to {city}, and you should sit on the [left|right|upper deck].",
    "a room above {sight} cost us {n:28-160} [crowns|pesos|pounds] a night, with {dish} for breakfast and a view of [chimneys|boats|hills].",
    "go to {sight} before {n:7-10} in the morning, when only the [cleaners|gulls|bakers] are about.",
    "the guide, a retired [pilot|teacher|net maker] called {first}, showed us how [rope|glass|bread] is made of {material} and stubbornness.",
    "in {month} the wind off {city} can [turn umbrellas|empty the beach|delay the boats], so [pack wool|bring cards|stay near {sight}].",
    "{sight} was built of {material} in {n:2-19} years by [monks|sailors|convicts], and burned down [twice|once|in a single night].",
    "nobody in {country} will [hurry you|sell you {dish} after nine|tell you the way to {sight}] unless you greet them first.",
    "we walked {n:6-31} kilometres along the [dyke|cliff|canal] and met {n:2-9} people and {n:10-90} [goats|cyclists|herons].",
    "the museum keeps {n:40-4000} [clocks|anchors|puppets] in a hall where it is always {month}.",
    "children under {n:5-14} [travel free|pay half|must be held by the hand] on the tram that climbs to {sight}.",
)
NATURE = (
    "in the marsh near {city} the {animal} came back in {month}, {n:4-90} of them, after the old [weir|pump|fence] was taken away.",
    "volunteers counted {animal} on {n:3-30} [nights|mornings] and found that [numbers had doubled|the young were few|they shun the lamp posts].",
    "{plant} like [lime|shade|poor soil|wet feet], and should be cut back in {month} with a [clean|sharp|curved] knife.",
    "dig in {n:2-12} [buckets|barrows] of compost around the {plant}, water for {n:5-30} minutes, and leave them in peace until {month}.",
    "a pond of {n:2-14} square metres, lined with {material}, is enough for {animal} to [breed|drink|winter].",
    "{animal} and {animal} share the bank without [quarrel|fear|notice], as {first} {last} showed in {n:3-25} years of notes.",
    "the frost of {month} killed {n:10-80} percent of the {plant} in {city}, and spared the ones along the [south wall|river|railway].",
    "sow {plant} {n:1-9} centimetres deep, and [thin|tie up|shade] them when they are as tall as a [thumb|bottle|boot].",
    "nobody knows how {animal} find their way, although [smell|starlight|the slope of the beach] has been [proposed|tested|ruled out].",
    "slugs leave {plant} alone if {plant} grow between them, or so the gardeners of {country} [say|swear|hope].",
)
SCIENCE = (
    "the team in {city} heated {material} to {n:200-1900} degrees and watched it [shrink|glow|turn to glass] through a window of {material}.",
    "a sample of {n:30-4000} [adults|students|twins] slept {n:4-9} hours a night for {n:2-20} weeks, and their [memory|mood|balance] [improved|suffered|did not change].",
    "the telescope on the hill above {city} saw the [comet|dust ring|pulse] {n:3-60} times before [clouds|dawn|the harvest moon] ended the season.",
    "what looks like a [crack|river|stain] on the map is a [fault|dune|lava tube] of {n:4-700} kilometres, as {first} {last} argues.",
    "the [vaccine|sensor|battery] kept {n:51-97} percent of its strength after {n:3-40} months at {n:4-40} degrees.",
    "models that leave out [clouds|soil|ice] miss the [drought|flood|frost] of {month} by {n:2-19} weeks.",
    "one student noticed that {animal} [avoid|prefer|hear] the colour of {material}, and the experiment was repeated {n:4-60} times.",
    "a grain of {material} holds more [salt|iron|pollen] than anyone had [guessed|measured|hoped], {n:2-90} parts in a thousand.",
    "critics in {country} say that the effect is [too small|badly measured|known to every farmer], and they ask for {n:2-9} more [years|trials|sites].",
    "the instrument weighs {n:2-90} kilograms, and was built of {material}, {material} and spare parts from a [ferry|loom|dairy].",
)
TOWN = (
    "the council of {city} voted {n:8-19} to {n:2-7} to [repair {sight}|widen the lane|plant {n:20-400} trees] before {month}.",
    "{first} {last}, who has [mended clocks|sold bread|taught swimming] for {n:11-52} years, will close the shop by {sight}.",
    "the choir needs [tenors|chairs|a new roof], and meets on {weekday} at {n:6-8} in the hall behind {sight}.",
    "a [lost cat|silver watch|bag of letters] was found near {sight} and waits for its owner at the [library|bakery|police post].",
    "last year's fair drew {n:600-9000} visitors, sold {n:90-900} plates of {dish} and raised money for {sight}.",
    "the swimming team beat {city} by {n:3-40} points, thanks to {first} {last}, who is only {n:12-17}.",
    "parking around {sight} will be [free|forbidden|dearer] on {weekday}, and the bus will run every {n:6-40} minutes.",
    "the old {material} works will become {n:8-120} flats, a [school|pool|workshop] and a garden of {plant}.",
    "[snow|fog|a burst pipe] closed the school in {month}, and the pupils built [a slide|an igloo|a paper] of {material} instead.",
    "donations of {material}, [paint|rope|books] and {dish} are welcome until {weekday}, says {first} {last}.",
)
THEMES = {"cooking": COOKING, "travel": TRAVEL, "nature": NATURE, "science": SCIENCE, "town": TOWN}
