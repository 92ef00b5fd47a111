"""Company announcements and the sections and tables of filings."""

# ruff: noqa: E501 - a sentence stands on one line, however long.

from __future__ import annotations

from writing.grammar import Scribe

FORWARD_LOOKING = (
    "This announcement contains forward-looking statements, which can be known by words such as may, will, expect, plan "
    "and believe. They rest on what the company assumes today and are exposed to risks that it cannot foresee or govern, "
    "among them the state of the economy, the price of materials, the conduct of rivals and the decisions of authorities. "
    "What happens may differ greatly from what is said here. Nobody should rely on such statements without care, and the "
    "company takes on no duty to correct them later."
)
ANNOUNCEMENT = (
    "{co} today announced that it has [opened|completed|expanded|commissioned] a {segment} [plant|laboratory|depot|training centre] in {city}, [on time|three months early|after some delay], at a cost of ${n:4-310} million.",
    '"[this|our new site|the programme] brings {segment} closer to the people who use it," said {person}, {role} of {co}.',
    "the project [creates|secures|adds] {n:25-760} positions and [is powered|will be heated|is cooled] by {material} waste, tidal current and recovered heat.",
    "customers in {country} and {country} will be served from {city} [starting in|from|by] {month}.",
    "{co} also [named|appointed|elected] {person} as {role}, succeeding {person}, who [retires|leaves to teach|joins {firm}] after {n:3-31} years.",
    "the agreement with {firm} covers {segment}, [runs for {n:2-12} years|may be renewed twice|is worth up to ${n:5-240} million] and replaces one that {cause} had made unworkable.",
    "under the terms, {firm} will supply {n:2-90} thousand [units|tonnes|metres|litres] of {good} from its works at {city}.",
    "the board of {co} has authorised the purchase of up to {d:0.5-11} million shares [until {month}|over {n:6-24} months|in the open market].",
    "tests by the {city} Institute showed that the new process [saves|needs|recovers] {n:8-64} percent [of the water|less energy|of the solvent].",
    "{person}, {role}, added that {outlook}, and that {cause} [had been taken into account|would not change the plan|made the step more urgent].",
    "{co} will [present|discuss|explain] its results by telephone on {month} {n:2-28}; slides will be [posted|available] that morning.",
    "a recall of {n:2-70} thousand {segment} parts made in {city} is [voluntary|precautionary|complete]; [no injuries are|one injury has been] known.",
    "the {stem} Foundation, which {co} supports, will [restore {sight}|fund {n:4-60} apprenticeships|plant {n:2-90} thousand trees] in {city}.",
    "pilot customers include {firm}, {firm} and the {city} transport authority.",
    "certification under the {national} standard for {segment} was [granted|renewed|extended to {city}] in {month}.",
    "the [licence|patent|trade mark] dispute with {firm} has been settled; the terms [are confidential|do not affect the outlook|include a payment of ${n:1-44} million].",
    '"we looked at {n:4-30} places before we chose {city}," said {person}, who [leads|founded|rebuilt] the {segment} team, "and {outlook}."',
    "in a first step {n:3-45} [lines|vessels|kilns|servers|tank cars] will be moved from {city}, and a further {n:3-45} by {month}.",
    "{firm} will [operate|insure|lease back] the [buildings|fleet|network], and {broker} arranged the financing.",
    "since {month} the company has [trained|hired|insured] {n:40-940} [apprentices|drivers|welders|nurses] in {country}.",
    "the {segment} range comes in {n:2-9} sizes, is made of {material} and {material}, and costs from ${n:9-870}.",
    "shareholders [approved|adopted|took note of] all items at the meeting in {city}, where {d:51-96} percent of the capital was represented.",
)
ABOUT = (
    "About {co}: the company, based in {city}, [makes|supplies|designs] {segment} and {segment} for customers in {n:4-80} countries. It has {n:300-41000} employees and had revenue of ${d:0.1-18} billion last year.",
    "About {co}: founded in {city} by {person}, {co} is a maker of {segment}. Its shares are traded on {exchange}; it runs {n:3-60} sites in {country} and {country}.",
    "About {co}: from workshops in {city}, the group has [served|equipped|supplied] the {segment} trade for {n:12-140} years and today employs {n:300-41000}.",
)
RISKS = (
    "our {segment} revenue depends on [a few|{n:3-9}|a small number of] customers in {country}, and the loss of {firm} would [reduce it|harm us|leave capacity unused] for {n:2-9} quarters.",
    "prices of {good} and {good} have moved by as much as {n:9-70} percent within a year; we [hedge|do not hedge|hedge a third of] these purchases.",
    "the lease of our works in {city} [ends|may be terminated|must be renewed] in {month}, and {cause} could make a move costly.",
    "{cause} [has|may have] a material effect on {segment}, as it had in the {month} quarter, when costs {moved} by ${d:0.4-31} million.",
    "we owe ${n:20-940} million under the facility arranged by {broker}, which requires [a ratio of debt to earnings under {d:2-5}|interest cover of {d:1.5-4}|a minimum of cash].",
    "a claim brought by {firm} before a court in {city} seeks ${n:2-95} million; we [believe it has no merit|have set aside ${n:1-20} million|cannot estimate the outcome].",
    "rules on {segment} in {country} [were tightened|are under review|differ from those at home], and compliance cost us ${d:0.3-12} million.",
    "our {city} site is exposed to [floods|landslides|heavy snow|failures of the grid], against which we insure up to ${n:10-400} million.",
    "the services of {person}, our {role}, [are not easily replaced|end by agreement in {month}|are secured by contract].",
    "{n:12-70} percent of the workforce is covered by agreements that [expire in {month}|were renewed for two years|are being negotiated].",
    "counterfeit {segment} made of poor {material} [has appeared|has been seized] in {country}, and may [hurt our name|cost us sales].",
    "{money} accounted for {n:8-52} percent of receipts; a fall of a tenth would have lowered income by ${d:0.4-19} million.",
)
DISCUSSION = (
    "revenue from {segment} {moved} by {d:0.6-24} percent, of which [volume|price|mix] explains {d:0.2-9} points and {cause} the rest.",
    "cost of sales {moved} to {d:48-79} percent of revenue, [mainly|partly|chiefly] because of {cause}.",
    "we spent ${n:3-160} million on research, [most|{n:30-80} percent|about half] of it in {city} on {segment} and {segment}.",
    "selling expense {moved} by ${d:0.5-21} million, reflecting {cause} and the [opening|closing] of offices in {country}.",
    "cash used in investing was ${n:8-310} million, including ${n:3-120} million for the purchase of {firm}.",
    "inventories of {good} and {segment} {moved} to {n:31-140} days of sales from {n:31-140} days.",
    "receivables past due by more than {n:30-120} days were ${d:0.3-18} million, mainly in {country}.",
    "we believe that cash, the facility with {broker} and {segment} receipts will meet our needs for [twelve|eighteen] months.",
    "in {month} we [sold|closed|leased] the {city} works for ${n:2-84} million and recorded a [gain|loss] of ${d:0.1-14} million.",
    "goodwill of ${n:9-540} million was tested in {month}; an increase of {n:50-200} basis points in the discount rate would [cause|not cause] an impairment in {segment}.",
    "the effective tax rate differs from the statutory rate because of [income in {country}|research credits|losses without relief|{cause}].",
    "the {segment} segment had {n:90-9400} employees, {n:2-19} plants and an order book of ${n:12-890} million.",
)
_TABLES = (
    ("Revenue by segment (in millions)", "{segment}"),
    ("Property by site (in thousands of square feet)", "{city}"),
    ("Sales by region (in millions)", "{country}"),
    ("Purchases of materials (in thousands of tonnes)", "{good}"),
)


def table(scribe: Scribe, rows: int) -> tuple[str, list[tuple[str, str, str, str]]]:
    """A title and `rows` rows of a name and three figures."""
    title, name = _TABLES[scribe.whole(0, len(_TABLES) - 1)]
    lines: list[tuple[str, str, str, str]] = []
    while len(lines) < rows:
        label = scribe.write(name)
        if label not in (line[0] for line in lines):
            this_year, last_year = scribe.write("{n:12-9800}"), scribe.write("{n:12-9800}")
            lines.append((label, this_year, last_year, scribe.write("{d:0.3-38}%")))
    return title, lines


def dividend_notice(amount_cents: int, record_day: str, payment_day: str, total: str) -> str:
    """One of a series of notices that differ in nothing but their four figures."""
    return (
        "Yarmouthe Water plc - Notice of dividend to the holders of ordinary shares\n\n"
        f"The directors of Yarmouthe Water plc have declared an interim dividend of {amount_cents} cents for each "
        f"ordinary share in issue. The dividend will be paid on day {payment_day} of the year to holders whose names "
        f"stand in the register at the close of business on day {record_day} of the year.\n\n"
        "Holders who have chosen to receive new shares instead of cash need not do anything; their choice stands until "
        "they tell the registrar otherwise. Holders abroad are paid in the money of the country in which they live, "
        "at the rate that the paying bank finds in the market on the morning of payment. Tax is withheld where the law "
        "of that country asks for it, and a certificate is sent by post with the payment advice. Payments that come "
        "back to us are held for the holder and bear no interest.\n\n"
        f"The payment will take {total} million dollars in all. The registrar in Oldfirth answers questions about the "
        "register, lost certificates and changes of address on every working day, and no charge is made for any of "
        "these services.\n\nBy order of the board, the secretary."
    )


def fixing(bid: str, offer: str, previous: str) -> str:
    """One of a series of wire items whose only content is the rate."""
    return (
        "Oldfirth Interbank Fixing\n\n"
        f"(Market data) -- The overnight rate at which banks in Oldfirth lend to one another was fixed at {bid} percent "
        f"this morning, against {previous} percent the day before, the association of money brokers said. Offers stood "
        f"at {offer} percent when the window closed. Eleven of the twelve panel banks sent quotes, and the highest and the "
        "lowest were left out, as the rules of the panel ask. The rate is used for savings accounts, for leases and for "
        "short loans between municipalities, and the next fixing follows on the next working day at the same hour. The "
        "association publishes the single quotes after three months on its notice board, where they may be copied free "
        "of charge by anyone who names the source, and keeps the older ones in a ledger that is open to scholars."
    )
