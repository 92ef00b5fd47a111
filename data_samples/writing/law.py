"""Opinions of invented courts."""

# ruff: noqa: E501 - a sentence stands on one line, however long.

from __future__ import annotations

FACTS = (
    "{plaintiff} [leased|sold|delivered|entrusted] {n:2-90} [barges|looms|pumps|crates of {material}] to {defendant} under a contract signed at {city} in {month}.",
    "the [contract|lease|bill of lading] provided, in its {n:3-29}th clause, that [either party might withdraw|loss at sea fell on the carrier|payment was due on arrival] where {cause} intervened.",
    "{defendant} [refused|failed|was unable] to [pay|deliver|return the goods], citing {cause}.",
    "the trial judge, after {n:2-14} days of hearings in {city}, found [for the plaintiff|for the defendant|partly for each] and awarded ${n:12-940} thousand.",
    "{person}, an [expert|appraiser|engineer] called by {plaintiff}, testified that the {segment} were [worthless|sound|improperly stored].",
    "a clerk of {defendant}, {person}, wrote in {month} that {outlook}; the letter is exhibit {n:3-88}.",
    "neither party [disputes|contests] that the {material} was [wet|cracked|short in weight] when it reached {city}.",
    "counsel for {defendant} [conceded|insisted|argued] below that the [notice|invoice|survey] came {n:3-60} days late.",
    "the insurer, {firm}, [intervened|paid ${n:10-400} thousand|declined to appear] and takes no part in this appeal.",
    "the record shows {n:4-40} shipments between {month} and {month}, of which {n:2-3} were [rejected|returned|never inspected].",
)
REASONS = (
    "we [review|examine] the meaning of a [statute|contract|tariff] anew, and findings of fact only for clear error.",
    "in {stem} v. {stem}, {n:11-399} {national} Rep. {n:2-990}, this court held that [silence is no consent|a carrier must prove its excuse|interest runs from demand].",
    "that rule [governs|does not govern] here, because {cause} was [foreseen|unknown to both sides|of the defendant's own making].",
    "the [ordinance|statute] of {city} speaks of [goods in transit|any lessee|every vessel], and we give those words their common sense.",
    "{defendant} relies on {stem} Bank v. {stem}, but that case turned on [a forged signature|a waiver in writing|the law of {country}].",
    "damages are to put {plaintiff} where performance would have put it, [no better|and no worse], less what it [saved|earned elsewhere|could have avoided].",
    "we are not persuaded that {cause} excuses [delay|silence|part performance], for the risk was [priced|named|assigned] in the contract.",
    "the plaintiff's second ground, that {person} was biased, [was not raised below|finds no support in the record|fails for want of proof].",
    "equity [aids|does not aid] a party that [slept on its rights|came late|kept the goods] for {n:4-29} months.",
    "a reasonable [shipper|lender|tenant] in {city} would have [asked|inspected|insured], and the jury could so find.",
    "the award of ${n:3-90} thousand for [lost profit|storage|survey fees] rests on [guesswork|the books of {firm}|sworn testimony] and [cannot|may] stand.",
    "our sister court in {country} reads the clause [otherwise|the same way], see {stem} Lines v. {firm}, and we [decline to follow|agree].",
    "it [is|is not] for a court to repair a bargain that {cause} has made [dear|profitless|awkward].",
)
ENDINGS = (
    "the judgment is affirmed, with costs to {plaintiff}.",
    "the judgment is reversed and the cause remanded for a new trial on damages alone.",
    "the award is reduced to ${n:12-400} thousand and, so modified, affirmed.",
    "the appeal is dismissed; each side bears its own costs.",
)
DISSENT = (
    "Justice {last}, dissenting: I would [affirm|reverse], for the majority makes of {cause} a [shield|sword] that the parties never forged.",
    "Justice {last}, concurring: I join the result, though I would rest it on [the tariff|the usage of the {segment} trade|the silence of the record].",
    "Justice {last} took no part in the decision.",
)
