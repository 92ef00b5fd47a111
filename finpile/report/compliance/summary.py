"""The public summary of training content, after the European Commission's template for Article 53(1)(d) of the AI Act.

Sections have the numbers of the template, the wording is ours. Figures are of training documents, as the build has
them; what no build knows is the provider's statement, or `not stated`.

Source: C(2025) 8311 final, explanatory notice and template for the public summary of training content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from finpile.documents.document import Label
from finpile.plugins.filter import FILTERS
from finpile.report.compliance.facts import PaperFacts
from finpile.report.compliance.paper import Answer, Paper, Section, counted, stated
from finpile.report.compliance.survey import Days, Domain, largest
from finpile.report.figures import count, day, name
from finpile.report.from_manifest import count_removals
from finpile.report.removed import removal_table
from finpile.report.table import Field, Table, table_of

#: The template's ranges for text: their ends in tokens, and names.
_RANGES = ((10**9, "less than 1 billion tokens"), (10**13, "1 billion to 10 trillion tokens"))
_LARGEST = "more than 10 trillion tokens"
_MODALITIES = "text"
#: The filters that follow lists of sites, and those that concern persons.
_LISTS, _PERSONS = "url_list", "pii"


def summary_paper(facts: PaperFacts) -> Paper:
    """The summary of a corpus."""
    said = facts.stated
    return Paper(
        title=f"Public summary of training content: {facts.card.name}",
        about="After the template of the European Commission for Article 53(1)(d) of Regulation (EU) 2024/1689, "
        "C(2025) 8311. Figures follow from the build; other entries are marked as stated by the provider, or as not "
        "stated.",
        parts=(
            stated("summary_version", "Version of the summary", said.version),
            stated("summary_updated", "Last update", said.updated),
            counted("corpus_version", "Version of the corpus", facts.card.version),
            *((counted("as_of", "Corpus as of", facts.card.day),) if facts.card.day else ()),
        ),
        sections=(
            Section(number="1", title="General information"),
            _provider(facts),
            _model(facts),
            _data(facts),
            Section(number="2", title="Data sources"),
            *_sources(facts),
            Section(number="3", title="Data processing"),
            _rights(facts),
            _illegal_content(facts),
            _other(facts),
        ),
    )


def _provider(facts: PaperFacts) -> Section:
    said = facts.stated.provider
    return Section(
        number="1.1",
        title="Provider",
        parts=(
            stated("provider", "Name", said.name),
            stated("provider_contact", "Contact", said.contact),
            stated("representative", "Authorised representative in the Union", said.representative),
            stated("small", "Small or medium-sized enterprise", said.small),
        ),
    )


def _model(facts: PaperFacts) -> Section:
    said = facts.stated.model
    return Section(
        number="1.2",
        title="Model",
        parts=(
            stated("models", "Names and versions", said.names),
            stated("dependencies", "Models that it depends on", said.dependencies),
            stated("placed_on_market", "Placed on the market of the Union on", said.placed_on_market),
        ),
    )


def _data(facts: PaperFacts) -> Section:
    said, survey = facts.stated.data, facts.survey.sources.values()
    tokens = [facts.tokens_of(label) for label in facts.survey.sources]
    num_tokens = None if None in tokens else sum(number for number in tokens if number is not None)
    dated, crawled = Days(), Days()
    for source in survey:
        dated.add(source.dated.first, source.dated.last)
        crawled.add(source.crawled.first, source.crawled.last)
    size: tuple[Answer, ...] = ()
    if num_tokens is not None:
        named = next((text for end, text in _RANGES if num_tokens < end), _LARGEST)
        size = (
            counted("size_range", "Size of the training data", named),
            counted("tokens", "Tokens, each document once", num_tokens),
        )
    languages = "; ".join(facts.card.languages)
    return Section(
        number="1.3",
        title="Modalities, size and other characteristics",
        parts=(
            counted("modalities", "Modalities", (_MODALITIES,)),
            *size,
            counted("text_bytes", "Bytes of text (UTF-8)", sum(source.text_bytes for source in survey)),
            counted("documents", "Training documents", sum(source.documents for source in survey)),
            counted("heldout", "Further documents, held out for evaluation", facts.card.total("held_out")),
            stated("acquired_until", "Last day of data acquisition", said.acquired_until),
            counted("last_crawl", "Last day on which a page was fetched, by the archives of crawls", crawled.last),
            counted("first_document", "First date of a document", dated.first),
            counted("last_document", "Last date of a document", dated.last),
            stated("continues", "Training goes on with data acquired later", said.continues),
            counted("languages", "Languages that filters kept", languages)
            if languages
            else stated("languages", "Languages", said.languages),
            stated("characteristics", "Other characteristics", said.characteristics),
            _table(facts, list(facts.survey.sources), "sources"),
        ),
    )


def _sources(facts: PaperFacts) -> Iterator[Section]:
    said = facts.stated
    by_kind: dict[str | None, list[Label]] = {}
    for label in facts.survey.sources:
        by_kind.setdefault(facts.kinds[label], []).append(label)

    def used(kind: str) -> tuple[Answer | Table, ...]:
        labels, unknown = by_kind.get(kind, []), len(by_kind.get(None, []))
        text = f"yes, {len(labels)} of {len(facts.survey.sources)} sources" if labels else "no source is of this kind"
        if unknown:
            text += f"; the kind of {unknown} sources is not stated"
        answers: list[Answer | Table] = [counted(kind, "Used", text)]
        if labels:
            answers += [counted(f"{kind}_modalities", "Modalities", (_MODALITIES,))]
            answers += [*_described(facts, labels), _table(facts, labels, f"{kind}_sources")]
        return tuple(answers)

    yield Section(number="2.1", title="Publicly available data sets", parts=used("public"))
    yield Section(number="2.2", title="Private data sets of third parties")
    yield Section(number="2.2.1", title="Licensed by rightsholders or their representatives", parts=used("licensed"))
    yield Section(number="2.2.2", title="From other third parties", parts=used("private"))
    yield Section(
        number="2.3",
        title="Data crawled and scraped from online sources",
        parts=(*used("crawled"), *_crawled(facts, by_kind.get("crawled", []))),
    )
    yield Section(
        number="2.4",
        title="User data",
        parts=(
            *used("user"),
            stated("model_interactions", "From interactions with the model", said.user_data.model_interactions),
            stated("other_services", "From other services of the provider", said.user_data.other_services),
            stated("user_description", "Services that collected it", said.user_data.description),
        ),
    )
    yield Section(
        number="2.5",
        title="Synthetic data",
        parts=(
            *used("synthetic"),
            stated("synthetic_models", "Models on the market that generated it", said.synthetic.models),
            stated("synthetic_other", "Other models that generated it", said.synthetic.other_models),
        ),
    )
    yield Section(number="2.6", title="Other sources: data of the provider's own", parts=used("own"))
    if labels := by_kind.get(None):
        yield Section(
            title="Sources whose kind is not stated",
            parts=(*_described(facts, labels), _table(facts, labels, "unknown_sources")),
        )


def _described(facts: PaperFacts, labels: Sequence[Label]) -> Iterator[Answer]:
    """What the provider states of sources."""
    for dataset, row in labels:
        said = facts.stated.sources.get(f"{dataset}/{row}")
        if said is None:
            continue
        for key in ("link", "description", "first_day", "last_day"):
            if (value := getattr(said, key)) is not None:
                yield stated(f"{key} of {dataset}/{row}", f"{dataset}: {row}, {key.replace('_', ' ')}", value)


_OF_DOMAIN: Sequence[Field[tuple[str, Domain]]] = (
    Field("domain", "Domain", lambda listed: name(listed[0])),
    Field("num_docs", "Docs", lambda listed: count(listed[1].documents)),
    Field("num_bytes", "Bytes", lambda listed: count(listed[1].text_bytes)),
)


def _crawled(facts: PaperFacts, labels: Sequence[Label]) -> Iterator[Answer | Table]:
    crawlers = facts.stated.crawlers
    yield stated("crawlers", "Crawlers", tuple(crawler.name for crawler in crawlers))
    for crawler in crawlers:
        for key in ("purposes", "behaviour", "first_day", "last_day"):
            value = getattr(crawler, key)
            yield stated(f"{key} of {crawler.name}", f"{crawler.name}, {key.replace('_', ' ')}", value)
    if not labels:
        return
    survey = [facts.survey.sources[label] for label in labels]
    days = Days()
    for source in survey:
        days.add(source.crawled.first, source.crawled.last)
    domains, is_small = facts.survey.domains, bool(facts.stated.provider.small)
    listed = largest(domains, is_small=is_small)
    yield counted("first_crawl", "First day on which a page was fetched", days.first)
    yield counted("last_crawl", "Last day on which a page was fetched", days.last)
    yield counted("without_url", "Documents without a host in their URL", sum(source.without_host for source in survey))
    yield counted("domains", "Registered domains", len(domains))
    yield counted("domains_listed", "Of these listed", len(listed))
    yield counted("suffixes", "List of public suffixes", facts.given.suffixes)
    share = "5% of all, and at most 1,000" if is_small else "10% of all"
    yield table_of(
        listed,
        _OF_DOMAIN,
        name="domains",
        title="Largest domains",
        caption=f"Those with the most bytes of training text: {share}, rounded up.",
    )


def _rights(facts: PaperFacts) -> Section:
    said = facts.stated.rights
    return Section(
        number="3.1",
        title="Reservations of rights from text and data mining",
        parts=(
            stated("code_of_practice", "Signatory of the Code of Practice", said.code_of_practice),
            stated("rights_measures", "Measures, protocols and lists of opt-outs", said.measures),
            counted("url_lists", "Sources with filters by lists of sites", _with_filter(facts, _LISTS)),
            counted("url_list_removed", "Documents that these removed", _removed_by(facts, _LISTS)),
            counted("taken_down", "Documents taken down on request", facts.card.num_taken_down),
        ),
    )


def _illegal_content(facts: PaperFacts) -> Section:
    return Section(
        number="3.2",
        title="Removal of illegal content",
        parts=(
            stated("illegal_content", "Measures", facts.stated.illegal_content),
            counted("pii", "Sources with a filter for personal data", _with_filter(facts, _PERSONS)),
            counted("filtered", "Documents that cleaning and filters removed", facts.card.total("cleaned_out")),
        ),
    )


def _other(facts: PaperFacts) -> Section:
    removals = count_removals(facts.counts["split"]["ledger"])
    read = facts.card.total("read")
    return Section(
        number="3.3",
        title="Other information",
        parts=(
            stated("other", "About the processing", facts.stated.other),
            counted("read", "Documents and records that were read", read),
            counted("stages", "Stages", facts.card.stages),
            removal_table(removals, read),
        ),
    )


def _with_filter(facts: PaperFacts, filter_name: str) -> int:
    """The number of sources whose entries all have a filter."""
    return sum(
        all(filter_name in map(_name_of, entry["clean"]["filters"]) for entry in entries)
        for entries in facts.entries.values()
    )


def _name_of(entry: str | Mapping[str, Any]) -> str:
    return entry if isinstance(entry, str) else next(iter(entry))


def _removed_by(facts: PaperFacts, filter_name: str) -> int:
    """Documents that a filter removed."""
    reasons = FILTERS.get(filter_name).reasons
    return sum(row["reasons"][reason] for row in facts.card.rows for reason in reasons)


def _table(facts: PaperFacts, labels: Sequence[Label], key: str) -> Table:
    """Training documents of sources."""
    found = facts.survey.sources
    fields: Sequence[Field[Label]] = (
        Field("source", "Source", lambda label: name(": ".join(label))),
        Field("kind", "Kind", lambda label: name(facts.kinds[label] or "not stated"), is_text=True),
        Field("formats", "Formats", lambda label: name(", ".join(facts.formats_of(label))), is_text=True),
        Field("num_docs", "Docs", lambda label: count(found[label].documents)),
        Field("num_bytes", "Bytes", lambda label: count(found[label].text_bytes)),
        Field("num_tokens", "Tokens", lambda label: count(facts.tokens_of(label))),
        Field("first_day", "From", lambda label: day(found[label].dated.first)),
        Field("last_day", "To", lambda label: day(found[label].dated.last)),
    )
    caption = "Training documents, bytes of their texts, tokens, and the dates of the documents."
    return table_of(labels, fields, name=key, title="Sources", caption=caption)
