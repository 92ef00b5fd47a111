"""Longer passages, each written for this corpus and used once."""

# ruff: noqa: E501 - a sentence stands on one line, however long.

from __future__ import annotations

FINANCE = (
    "A dividend is a sentence with one verb. The board has met, the sum is known, the day is fixed, and nothing in it can be argued with. That is why clerks like dividends and columnists do not.",
    "Ask three grain merchants what a tonne is worth and you will hear four prices, because one of them will change his mind while the others speak. The exchange was built to spare him the embarrassment.",
    "The ledger of a small bank reads like the diary of its town. In the wet year the brickmaker borrows; in the dry year the miller does; when the railway comes, everybody borrows, and when it goes, the bank is for sale.",
    "There are two kinds of forecast. One tells you what will happen, and is wrong. The other tells you what might happen, and is useless. Between them lies the spreadsheet, which does both to four decimals.",
    "On the morning the peg broke, the money changers on the quay did nothing at all. They had moved their signs the night before, having noticed that the minister's sister-in-law had bought a great many suitcases.",
    "Every merger is announced as a wedding and audited as a house clearance. The speeches speak of fit; the notes to the accounts speak of overlapping canteens, unused licences and a warehouse that nobody remembers renting.",
    "A furnace cannot be switched off for the weekend. Whoever owns one learns to sell on Fridays at prices that others refuse on Mondays, and to read the weather report before the newspaper.",
    "The auditors came in pairs, drank tea without sugar and asked for the same invoice three times. It was the third copy, slightly paler than the others, that interested them.",
    "Insurance is the art of being paid for what does not happen. In the years in which it does happen, the art is called reinsurance, and is practised in another city by people who have never seen the sea.",
    "Old traders on the floor kept a pencil behind each ear: a red one for what they owed and a blue one for what they were owed. The day the floor closed, someone counted the stubs, and there were more red ones.",
    "An index is a list of names that somebody once thought important. Money follows the list; the names, knowing that, take care to stay on it; and so the list becomes true, a little at a time, without anyone having meant it.",
    "The quarterly report had forty pages, of which thirty-eight said that nothing had changed. Investors read the other two, found that the warehouse lease had been moved from one to the other, and sold.",
    "When the central bank moved its letters of appointment from parchment to paper, the governor's signature shrank to a third of its size. Analysts of handwriting were consulted. Inflation, they said, would be moderate.",
    "Copper travels slowly. The ore that is sold today was promised two years ago by a man who has since changed employers, to a smelter that has since changed countries, at a price that neither of them now admits.",
    "Nobody at the fund could explain the formula, and nobody had to, since it made money in every month with an even number of days. In the leap year they took the precaution of closing for the end of February.",
    "The pension committee met in the gymnasium because the council chamber had been let to a wedding. Beneath the climbing ropes it resolved, eleven to two, to trust in bonds.",
    "It was a market in which everyone waited for everyone else. The bakers waited for flour, the millers for wheat, the farmers for rain, and the rain, as far as could be told, for the weekend.",
    "To lend is to tell a story about the future and to hold the listener to it. Collateral is the clause for listeners who fall asleep.",
    "The price of lemons was fixed each day at noon by an old woman on the fish pier, who had no licence, no telephone and no competitor. When she died, three economists were appointed, and lemons have not been the same since.",
    "A shipowner once told me that the only honest statistic is the waterline. Cargo may be overstated and profit understated, but the paint mark on the hull is wet or dry, and anyone with a rowing boat can read it.",
    "The tender closed at noon by the clock in the hall, which ran four minutes slow, and at four past noon by the clock in the office, which did not. The dispute about the bridge has now outlived both clocks.",
    "In bad years the shareholders came for the reckoning and in good years for the buffet. This year the hall was half full, and the sandwiches were cut in triangles, which was taken as guidance.",
    "A bond is a promise with a calendar. The calendar is printed in advance, on heavy paper, by people who have never missed a day; the promise is made by the others.",
    "The town lived on one mill, the mill on one customer, and the customer on a subsidy that was renewed each spring by a committee of seven. In the spring that two of them had influenza, house prices fell by a tenth.",
)
GENERAL = (
    "The library keeps its oldest map under a cloth, not because of the light but because visitors point at it. A century of fingertips has worn a bay into the coast, and ships in the margin have begun to look for it.",
    "To make ink, take oak galls that fell before midsummer, crush them, and leave them in rain water until the water turns the colour of weak tea. Add iron, and patience. The letter that you write will be pale today and black on the day it is read.",
    "Swifts sleep on the wing, or so we believe, since nobody has found one in a bed. In August they leave between two evenings, and the street takes some days to notice what it no longer hears.",
    "My neighbour repairs accordions. He says that most of them have nothing wrong but time, and that the cure for time is leather, glue, and the right kind of silence in which to listen for the leak.",
    "The ferry has two captains, who have not spoken since the matter of the whistle. One takes it out and the other brings it back, and both have asked the company, in writing, to lengthen the pier.",
    "Bread teaches you to read a clock without hands. The dough is ready when it has forgotten your thumb, the oven when flour browns while you say your own address, and the loaf when it sounds like a door with nobody behind it.",
    "On the island the post comes by boat on Tuesdays, weather permitting, and is read aloud at the pump. There are few secrets and many corrections, for the postman is hard of hearing and inclined to kindness.",
    "A hedge is a slow kind of wall that feeds birds. It wants cutting when the days are short, a little narrower at the top than at the foot, like a sleeve, so that the light can reach the mice.",
    "When the glass works closed, the sand merchants went home and the river ran clear for the first time in anyone's memory. The anglers, who had always blamed the works, now had to blame each other.",
    "The comet was seen first by a milkman, then by two nuns, and last by the observatory, whose dome had been jammed since the frost. It carries the name of the observatory.",
    "If you lose your way on the moor, follow any wall downhill and at each corner keep to the damper side. You will come to a gate, then a dog, then tea.",
    "He collected bus timetables of towns that he had never visited, and could tell you that the last one out of the valley left at ten past seven, except in the week of the fair, when it waited for the band.",
    "Honey remembers the year. In the spring that the limes flowered late it was almost green; in the dry one it set like tallow, and the bees, my aunt said, had been to the heather and come back in a mood.",
    "The school clock was stopped during examinations so that nobody would look at it. In the year that somebody forgot to start it again, a whole class grew up believing that lunch was an opinion.",
    "A well is dug from the top and thought about from the bottom. The digger sends up clay, then gravel, then jokes, and when the jokes stop, someone pulls the rope.",
    "Paint the boat in a week without wind and launch it in one without hurry. Between the two lies the month in which everyone on the slip will tell you about the colour.",
)
