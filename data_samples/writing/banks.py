"""Word banks. Every company, person, place, money and market in them is invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


STEMS = _words(
    """Tarnbeck Quillmere Oastwick Vandrell Brimholt Corvane Eddlestow Fenquay Galdermoor Hollinbrae Isqueth Jorvanne
    Kestrow Lammerdale Marchwold Northolm Ostravelle Pellworm Quensby Rathmullin Sarnholt Thistledon Umberleigh
    Vexmoor Wrayfield Yarmouthe Zellwick Ashcombe-Roy Bellatrine Calderwick Dunmorrow Elverstone Farrowgate Glasswater
    Hartsmere Inverlask Jessamy Knottley Lorimund Mossgrave Netherby Orlestan Pendragh Ravenscar-Holt Stonebarrow
    Tolvane Ullsmere Veldhuis-Karr Winterbourne-Ames Ystrad Aldermoss Birchallow Cinderford-Pike Drachmere Eskdalen
    Foxholme Greywether Heronsgate Ivelchester Juniperholt Kilbrannoch Lindqvarn Mirefold Nadderby Okenshaw"""
)
TRADES = _phrases(
    """Foods, Shipping, Semiconductor, Power, Rail, Pharma, Insurance, Bancorp, Steel, Mining, Textiles, Software,
    Airlines, Timber, Chemicals, Brewing, Motors, Optics, Cement, Telecom, Water, Logistics, Robotics, Paper,
    Aggregates, Instruments, Retail, Gas, Fisheries, Ceramics"""
)
FORMS = _phrases("plc, Group, Holdings, AG, Partners LP, Oyj, SpA, Company, Brothers, Union")
FIRST_NAMES = _words(
    """Maren Tobias Ysolde Anselm Priya-Lou Casimir Beatrix Oduya Leontine Farid Henrike Jorge-Luis Wilhelmina Takumi
    Ophelia Benedek Saoirse Kwabena Ingrith Rafferty Noor Emeric Talitha Sandor Philippa Ezekiel Marguerite Dacian
    Yevna Lucan Adaeze Thorvald Perpetua Ishaan Rosalba Cormac Delphine Gideon Annika Bartholomew Zuleika Matthias"""
)
LAST_NAMES = _words(
    """Okonjay-Veld Hartigan-Sloe Brannigar Lindqvarn Passerini-Holt Muldrake Szabolek Ferrantino Achterberg Whinfell
    Delacourtois Nakadai-Moss Thistlewood Obuasi Ravenholme Calloway-Dunn Grimsditch Vasquellar Yardleyson Petrosyanov
    Haverstock Mbekane-Lund Tollemark Ashgrove Quartermayne Bjornstrand Castellane Dravidan Eastlake-Rho Fotheringay
    Gillespont Hollowell Iremonger Jankovar Kinsolving Lathbury Merriwether-Po Northcotte Osterhuis Penhallow"""
)
CITIES = _phrases(
    """Port Salen, Marrowgate, Vintersund, Calle Dorada, Oldfirth, San Ysandro, Kharvel, Belmarsh, Lusterhaven,
    Tessaly, Grand Orme, Novi Brod, Aldwater, Zimmerstadt, Ostmouth, Penharrow, Quay St. Anne, Rivermeet, Tamsui-Hoek,
    Ullapoort, Västerå, São Telmo, Cap-Ferré, Düstermoor, Eidsfjell, Montcalmé, Northgate Bay, Sable Point"""
)
COUNTRIES = _phrases(
    """Arvenia, Merland, the Tessal Republic, Costa Verana, Nordhavn, Khorvia, the Salen Islands, Ostland, Belmora,
    Zimra, Qarath, the United Cantons, Lower Vantia, Pellonia, Dravia, East Orme"""
)
ADJECTIVES_OF_COUNTRY = _words("Arvenian Merlandic Tessal Veranan Nordhavn Khorvian Salenese Ostlandic Belmoran Zimran")
CURRENCIES = _phrases(
    "the arven, the merland crown, the tessal, the verano peso, the khorv, the salen pound, the zimra, the pellon"
)
BANKS_CENTRAL = _phrases(
    """the Bank of Arvenia, the Merland Reserve, the Tessal Monetary Council, the Banco de Verana, the Nordhavn
    Riksbank, the Khorvian Central Bank, the Monetary Authority of Salen, the Ostland State Bank,
    the Bank of Pellonia"""
)
BROKERS = _phrases(
    """Ashgrove Lathbury, Haverstock Securities, Iremonger & Sons, Tollemark Capital, Penhallow Research,
    Castellane Frères, Quartermayne Asset Management, Muldrake Brothers, Osterhuis Bank, Kinsolving Markets,
    Lorimer Vane, the Belmarsh Institute, Northcotte Advisers, Yardleyson Partners, Whinfell Wealth"""
)
EXCHANGES = _phrases(
    "the Port Salen exchange, the Marrowgate bourse, the Oldfirth market, the Zimmerstadt exchange, the Aldwater board"
)
COMMODITIES = _phrases(
    """copper, nickel, thermal coal, natural gas, crude oil, arabica, cocoa, raw sugar, cotton, soybean meal, wheat,
    palm oil, iron ore, zinc, lumber, rubber, barley, silver, lithium carbonate, orange juice, rapeseed, tin"""
)
MONTHS = _words("January February March April May June July August September October November December")
WEEKDAYS = _words("Monday Tuesday Wednesday Thursday Friday")
ROLES = _phrases(
    """chief executive, finance director, head of treasury, chair, chief operating officer, plant manager,
    head of investor relations, general counsel, chief economist, head of procurement, chief risk officer"""
)
SEGMENTS = _phrases(
    """packaging, cold storage, marine engines, bearings, retail banking, speciality resins, freight, hospital supplies,
    consumer loans, precision glass, data centres, fertiliser, aftermarket parts, frozen meals, cables, seed treatment,
    reinsurance, sensors, roofing tiles, water meters, ferry services, laboratory reagents, trade finance, turbines"""
)
CAUSES = _phrases(
    """a late harvest, higher freight rates, a strike at two depots, the new tariff schedule, weak demand for housing,
    a fire at a supplier, the strength of the home currency, a change in the way rebates are booked, a mild winter,
    early orders from distributors, the closing of an old furnace, rising wages in the ports, a shortage of drivers,
    a recall of pumps, cheaper electricity, a software migration that overran, flooding in the delta, thinner margins
    on long contracts, the loss of a large customer, a settlement with former agents, delayed permits, pent-up demand"""
)
OUTLOOKS = _phrases(
    """the second half will look better than the first, nobody should expect a quick recovery, orders will hold until
    spring, the worst is behind the industry, margins will stay under pressure for several quarters, the dividend is
    safe for now, inventories are still too high, prices have found a floor, credit will be dearer before it is
    cheaper, the rally has run ahead of the facts, smaller rivals will have to merge,
    spending on maintenance cannot be put off"""
)
MOODS = _words("cautious upbeat restless wary patient sceptical relieved subdued nervous confident unmoved curious")
ADVERBS = _words(
    "sharply slightly steadily modestly briefly markedly gradually abruptly narrowly broadly barely visibly"
)
RISE = _phrases("rose, climbed, gained, advanced, edged up, moved higher")
FALL = _phrases("fell, slipped, dropped, declined, retreated, slid, eased")
DISHES = _phrases(
    """lentil soup, barley risotto, plum tart, smoked trout pie, chickpea stew, pumpkin dumplings, rye bread,
    walnut cake, braised leeks, mushroom pancakes, apricot jam, cabbage rolls, almond biscuits, potato gratin"""
)
HERBS = _phrases("thyme, marjoram, bay, sage, dill, tarragon, chervil, lovage, mint, rosemary, parsley, savory")
VEGETABLES = _phrases(
    "leeks, carrots, parsnips, white beans, turnips, fennel, beetroot, celeriac, chard, onions, peppers, broad beans"
)
ANIMALS = _phrases(
    "otters, reed warblers, stag beetles, harbour seals, swifts, bats, hedgehogs, marsh frogs, eels, owls, red kites"
)
PLANTS = _phrases(
    "foxgloves, roses, tomatoes, quince trees, lavender, sweet peas, ferns, dahlias, hostas, gooseberries, clematis"
)
SIGHTS = _phrases(
    """the lighthouse, the old customs house, the covered market, the botanical garden, the ropewalk, the salt museum,
    the cathedral steps, the ferry pier, the observatory, the tram depot, the river baths, the glass workshop"""
)
MATERIALS = _phrases("oak, limestone, copper sheet, clay, linen, wool, cork, ash wood, slate, brass, beeswax, leather")

BANKS: Mapping[str, Sequence[str]] = {
    "stem": STEMS,
    "trade": TRADES,
    "form": FORMS,
    "firm": ("{stem} {trade}", "{stem} {trade}", "{stem} {trade} {form}", "{stem} {form}"),
    "first": FIRST_NAMES,
    "last": LAST_NAMES,
    "person": ("{first} {last}",),
    "city": CITIES,
    "country": COUNTRIES,
    "national": ADJECTIVES_OF_COUNTRY,
    "money": CURRENCIES,
    "central_bank": BANKS_CENTRAL,
    "broker": BROKERS,
    "exchange": EXCHANGES,
    "good": COMMODITIES,
    "month": MONTHS,
    "weekday": WEEKDAYS,
    "role": ROLES,
    "segment": SEGMENTS,
    "cause": CAUSES,
    "outlook": OUTLOOKS,
    "mood": MOODS,
    "adverb": ADVERBS,
    "rose": RISE,
    "fell": FALL,
    "moved": (*RISE, *FALL),
    "dish": DISHES,
    "herb": HERBS,
    "vegetable": VEGETABLES,
    "animal": ANIMALS,
    "plant": PLANTS,
    "sight": SIGHTS,
    "material": MATERIALS,
    "saying": _phrases(
        """said, told reporters, wrote in a note, told a conference in {city}, said by telephone, said in an interview,
        told the annual meeting, added, insisted, said on a call with investors"""
    ),
}
