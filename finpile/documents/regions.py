"""The region of a country, and of a host by its top-level domain, as the paper classifies its pages of the Web.

BloombergGPT §2.1.1 names `US`, `Asia-Pac` and `UK`, "classified mainly by the location of the web domain", and does not
list their countries. The table follows the regions of the United Nations, with the paper's three names:

| region         | countries                                                                              |
|----------------|----------------------------------------------------------------------------------------|
| `US`           | the United States                                                                      |
| `UK`           | the United Kingdom                                                                     |
| `Asia-Pac`     | Central, Eastern, South-eastern and Southern Asia with Taiwan, and Oceania             |
| `Western Asia` | from Türkiye and Georgia to Yemen                                                      |
| `Europe`       | other countries of Europe                                                              |
| `Americas`     | other countries of the Americas                                                        |
| `Africa`       | the countries of Africa                                                                |

A host has the region of its country's domain. `.com`, `.org` and other domains without a country have none, nor do
those of countries that are registered all over the world (`.io`, `.tv`). `.gov`, `.mil` and `.edu` are for the United
States alone.

Source: UN Statistics Division, Standard country or area codes for statistical use (M49),
https://unstats.un.org/unsd/methodology/m49; codes of ISO 3166-1, which domains of countries have, but for `.uk`: IANA
Root Zone Database, https://www.iana.org/domains/root/db.
"""

from __future__ import annotations

_US, _UK, _EUROPE, _ASIA_PACIFIC = "US", "UK", "Europe", "Asia-Pac"
_AFRICA = "Africa"

_COUNTRIES = {
    _US: "US",
    _UK: "GB",
    _ASIA_PACIFIC: """KZ KG TJ TM UZ
        CN HK MO KP JP MN KR TW
        BN KH ID LA MY MM PH SG TH TL VN
        AF BD BT IN IR MV NP PK LK
        AU CX CC HM NZ NF
        FJ NC PG SB VU
        GU KI MH FM NR MP PW UM
        AS CK PF NU PN WS TK TO TV WF""",
    "Western Asia": "AM AZ BH CY GE IQ IL JO KW LB OM QA SA PS SY TR AE YE",
    _EUROPE: """BY BG CZ HU PL MD RO RU SK UA
        AX GG JE DK EE FO FI IS IE IM LV LT NO SJ SE
        AL AD BA HR GI GR VA IT MT ME MK PT SM RS SI ES
        AT BE FR DE LI LU MC NL CH""",
    "Americas": """AI AG AW BS BB BQ VG KY CU CW DM DO GD GP HT JM MQ MS PR BL KN LC MF VC SX TT TC VI
        BZ CR SV GT HN MX NI PA
        AR BO BV BR CL CO EC FK GF GY PY PE GS SR UY VE
        BM CA GL PM""",
    _AFRICA: """DZ EG LY MA SD TN EH
        IO BI KM DJ ER ET TF KE MG MW MU YT MZ RE RW SC SO SS UG TZ ZM ZW
        AO CM CF TD CG CD GQ GA ST
        BW SZ LS NA ZA
        BJ BF CV CI GM GH GN GW LR ML MR NE NG SH SN SL TG""",
}
_REGION_OF_COUNTRY = {code: region for region, codes in _COUNTRIES.items() for code in codes.split()}

#: Domains of countries that are used as if they had none. Source: Google Search Central, "Managing multi-regional and
#: multilingual sites", https://developers.google.com/search/docs/specialty/international/managing-multi-regional-sites
_GENERIC = "ad ai as bz cc cd co dj fm io la me ms nu sc sr su tv tk ws"
#: Domains of regions and countries that are not codes of ISO 3166-1.
_OTHER_DOMAINS = {
    "uk": _UK,
    "eu": _EUROPE,
    "asia": _ASIA_PACIFIC,
    "africa": _AFRICA,
    "gov": _US,
    "mil": _US,
    "edu": _US,
}


def region_of_country(code: str) -> str | None:
    """The region of a country by its two letters (`GB`, or `UK`), in any case; None for another code."""
    letters = code.strip().upper()
    return _REGION_OF_COUNTRY.get("GB" if letters == "UK" else letters)


def region_of_host(host: str) -> str | None:
    """The region of a host by its last label; None for a domain without a country.

    >>> region_of_host("www.bankofengland.co.uk"), region_of_host("example.com")
    ('UK', None)
    """
    domain = host.rstrip(".").rpartition(".")[2].lower()
    if domain in _OTHER_DOMAINS:
        return _OTHER_DOMAINS[domain]
    return None if domain in _GENERIC.split() else _REGION_OF_COUNTRY.get(domain.upper())
