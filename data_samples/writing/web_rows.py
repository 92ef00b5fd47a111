"""Row Web of dataset `FinPile`: crawled pages of one invented site."""

from __future__ import annotations

from datetime import datetime
from html import escape

from writing import containers, stories
from writing.plan import Plan, Row, later, moments
from writing.stories import SUBJECT_NAMES, Story, financial_passage

SITE_FOOTER = (
    "Quay & Ledger is published in Oldfirth. All text on this site may be quoted with its source. Letters reach the "
    "editors at the old customs house; corrections are printed on Fridays."
)
_NAVIGATION = ("Home", "Markets", "Shipping", "Harvest", "Letters", "Archive", "Weather", "Sign in")
_NEAR, _EXACT = "near_duplicate", "exact_duplicate"


def web(plan: Plan) -> None:
    row = plan.row("FinPile", "Web")
    when = moments(30, 4, 3)
    pages = [
        (stories.finance(f"web/{i}", SUBJECT_NAMES[(i * 3 + 6) % 7], 30 + i % 11, financial_passage(i, 3, 0)), when[i])
        for i in range(30)
    ]
    records = [containers.warc_info()]
    for number, (story, moment) in enumerate(pages):
        url = _url(number, story, moment)
        records += [containers.warc_request(url), containers.warc_response(url, _page(story, _meta(number, moment)))]
        row.keep(moment)
        row.planted["site_footer"] += 1
    for number in (4, 8):  # the same bytes at another address; number 8 has its date in the address alone
        story, moment = pages[number]
        url = _url(number, story, later(moment, 2)).replace("www.", "mirror.")
        records.append(containers.warc_response(url, _page(story, _meta(number, moment))))
        row.drop("exact", "exact_duplicate", _EXACT)
        row.planted["site_footer"] += 1
    story, moment = pages[10]
    copy = Story(story.title, stories.edited(story.text, "web/near"))
    records.append(containers.warc_response(_url(90, copy, later(moment, 3)), _page(copy, later(moment, 3))))
    row.drop("near", "near_duplicate", _NEAR)
    row.planted["site_footer"] += 1
    records += _bad_responses(row)
    undated = stories.finance("web/undated", "opinion", 18)
    records.append(containers.warc_response("https://www.quay-ledger.example/about-this-column", _page(undated, None)))
    row.keep(None)
    row.planted["site_footer"] += 1
    plan.files["web/pages-00000.warc.gz"] = b"".join(records[:40])
    plan.files["web/pages-00001.warc.gz"] = b"".join([containers.warc_info(), *records[40:]])
    plan.files["web/cut-in-the-middle.warc.gz"] = _cut_warc(row)


def _bad_responses(row: Row) -> list[bytes]:
    host = "https://www.quay-ledger.example"
    gone = b"<html><body><h1>Not found</h1><p>The page that you asked for is not here any more.</p></body></html>"
    empty = b"<html><head><title></title></head><body></body></html>"
    row.drop("ingest", "http_status")
    row.drop("ingest", "not_text")
    row.drop("ingest", "not_text")
    row.drop("clean", "empty_text")
    return [
        containers.warc_response(f"{host}/2012/05/09/gone", gone, status="404 Not Found"),
        containers.warc_response(f"{host}/logo.png", containers.noise(300), "image/png"),
        containers.warc_response(f"{host}/tariff.pdf", b"%PDF-1.4\n" + containers.noise(200), "application/pdf"),
        containers.warc_response(f"{host}/2016/02/11/nothing-here", empty),
    ]


def _cut_warc(row: Row) -> bytes:
    """Three whole pages and half of a fourth."""
    records = [containers.warc_info()]
    for number, moment in enumerate(moments(4, 0, 77), start=60):
        story = stories.finance(f"web/cut/{number}", SUBJECT_NAMES[number % 7], 17)
        records.append(containers.warc_response(_url(number, story, moment), _page(story, moment)))
        if number < 63:
            row.keep(moment)
            row.planted["site_footer"] += 1
    row.drop("ingest", "truncated_file")
    return b"".join(records[:-1]) + records[-1][: len(records[-1]) // 2]


def _url(number: int, story: Story, moment: datetime) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in stories.ascii_only(story.title).lower()).split()
    return f"https://www.quay-ledger.example/{moment:%Y/%m/%d}/{'-'.join(words[:6])}-n{number}"


def _meta(number: int, moment: datetime) -> datetime | None:
    """Every fourth page states no date; it stands in the address alone."""
    return None if number % 4 == 0 else moment


def _page(story: Story, published: datetime | None) -> bytes:
    meta = f'<meta property="article:published_time" content="{published:%Y-%m-%dT%H:%M:%SZ}">\n' if published else ""
    links = "".join(f'<li><a href="/{name.lower().replace(" ", "-")}">{name}</a></li>' for name in _NAVIGATION)
    body = "\n".join(f"<p>{escape(text, quote=False)}</p>" for text in story.text.split("\n\n"))
    title = escape(story.title, quote=False)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n{meta}'
        f"<style>p {{ margin: 1em }}</style>\n</head>\n<body>\n<nav><ul>{links}</ul></nav>\n"
        f"<article>\n<h1>{title}</h1>\n{body}\n</article>\n"
        f"<footer><p>{escape(SITE_FOOTER, quote=False)}</p></footer>\n</body>\n</html>\n"
    ).encode()
