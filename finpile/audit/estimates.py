"""Estimates from the answers, with 95% intervals: precision by stage and source, and what `near` misses.

Sums over strata weigh each by its size in the build. Their intervals combine those of the strata (MOVER), and are those
of Wilson for one stratum. Strata without an answer are left out of sums, and `covered` says how much is in them.

Source of the interval of a weighted sum: Zou, Huang and Zhang, A note on confidence interval estimation for a linear
function of binomial proportions, Computational Statistics and Data Analysis 53 (2009), equation 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from finpile.audit.judgements import Answers
from finpile.audit.sample import NEAR, Sample, Stratum
from finpile.counts.shares import Share, wilson
from finpile.plugins import stages


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """The share of removals that are right. `stage` and `source` are empty in sums over all of them."""

    stage: str
    source: str
    removals: int
    """Of the build."""
    covered: int
    """Of these, the removals of strata with an answer."""
    sampled: int
    judged: int
    right: int
    precision: Share | None
    """None without an answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Missed:
    """Kept documents that `near` should have removed, of those just below its limit. `source` is empty in the sum."""

    source: str
    documents: int
    """Kept documents of the build."""
    covered: int
    """Of these, the documents of sources with an estimate."""
    compared: int
    """Those that were compared with all others."""
    pairs: int
    """Compared documents that have a similar document before them."""
    judged: int
    duplicates: int
    """Pairs of which a person says that one should have been removed."""
    missed: Share | None
    """The number of covered documents that should have been removed; None if pairs of a source have no answer."""
    recall: Share | None
    """Right removals of `near` over these and the missed ones, of sources with both estimates."""


def weighted(shares: Sequence[tuple[float, Share]]) -> Share:
    """The sum of shares with weights, and its interval (Zou, Huang and Zhang 2009)."""
    value = sum(weight * share.value for weight, share in shares)
    below = sqrt(sum((weight * (share.value - share.low)) ** 2 for weight, share in shares))
    above = sqrt(sum((weight * (share.high - share.value)) ** 2 for weight, share in shares))
    return Share(value, value - below, value + above)


def precisions(sample: Sample, answers: Answers) -> list[Precision]:
    """All removals, then each stage in the order of the stages, followed by its sources."""
    sampled, judged, right = _counts(sample, answers)
    removals = sample.removals

    def row(stage: str, source: str, strata: Sequence[Stratum]) -> Precision:
        known = [one for one in strata if judged[one]]
        covered = sum(removals[one] for one in known)
        shares = [
            (removals[one] / covered, wilson(right[one] / judged[one], judged[one], removals[one])) for one in known
        ]
        return Precision(
            stage=stage,
            source=source,
            removals=sum(removals[one] for one in strata),
            covered=covered,
            sampled=sum(sampled[one] for one in strata),
            judged=sum(judged[one] for one in strata),
            right=sum(right[one] for one in strata),
            precision=weighted(shares) if shares else None,
        )

    rows = [row("", "", list(removals))]
    for stage in stages.names():
        own = sorted(one for one in removals if one.stage == stage)
        if own:
            rows += [row(stage, "", own), *(row(stage, one.source, [one]) for one in own)]
    return rows


def _counts(sample: Sample, answers: Answers) -> tuple[Counter[Stratum], Counter[Stratum], Counter[Stratum]]:
    """Items, items with an answer, and items with the answer yes, by stratum."""
    sampled = Counter(item.stratum for item in sample.items)
    judged = Counter(item.stratum for item in sample.items if item.shown in answers)
    return sampled, judged, Counter(item.stratum for item in sample.items if answers.get(item.shown))


def missed(sample: Sample, answers: Answers) -> list[Missed]:
    """All sources, then each; nothing if no pairs were looked for.

    Of `compared` documents, `pairs` have a similar document before them, and of these some are judged. With K answers
    yes among J of F pairs, the share of documents to remove is estimated as K among `compared` * J / F documents: the
    others of these have no pair, which needs no answer. Without pairs, it is 0 among `compared`.
    """
    if not sample.kept:
        return []
    pairs, judged, right = _counts(sample, answers)
    shares: dict[Stratum, Share] = {}
    for stratum, documents in sample.kept.items():
        compared = sample.compared.get(stratum, 0)
        examined = compared * (judged[stratum] / pairs[stratum] if pairs[stratum] else 1)
        if examined:
            shares[stratum] = wilson(right[stratum] / examined, examined, documents)
    open_strata = {stratum for stratum in sample.compared if stratum not in shares}
    removed = {row.source: row for row in precisions(sample, answers) if row.stage == NEAR and row.source}

    def row(source: str, strata: Sequence[Stratum]) -> Missed:
        known = [stratum for stratum in strata if stratum in shares]
        parts = {stratum.source: (float(sample.kept[stratum]), shares[stratum]) for stratum in known}
        return Missed(
            source=source,
            documents=sum(sample.kept[stratum] for stratum in strata),
            covered=sum(sample.kept[stratum] for stratum in known),
            compared=sum(sample.compared.get(stratum, 0) for stratum in strata),
            pairs=sum(pairs[stratum] for stratum in strata),
            judged=sum(judged[stratum] for stratum in strata),
            duplicates=sum(right[stratum] for stratum in strata),
            missed=None if open_strata.intersection(strata) or not parts else weighted(list(parts.values())),
            recall=_recall(removed, parts),
        )

    strata = sorted(sample.kept)
    return [row("", strata), *(row(stratum.source, [stratum]) for stratum in strata)]


def _recall(removed: Mapping[str, Precision], parts: Mapping[str, tuple[float, Share]]) -> Share | None:
    """Of near duplicates, the share that is removed, over the sources with both estimates.

    The interval joins the ends of both, so it is wider than 95%.
    """
    right: list[tuple[float, Share]] = []
    wrong: list[tuple[float, Share]] = []
    for source, part in parts.items():
        found = removed.get(source)
        if found is not None and found.precision is None:
            continue
        wrong.append(part)
        if found is not None and found.precision is not None:
            right.append((found.removals, found.precision))
    if not right:
        return None
    true, lost = weighted(right), weighted(wrong)
    ends = ((true.value, lost.value), (true.low, lost.high), (true.high, lost.low))
    value, low, high = (kept / (kept + missing) if kept + missing else 0.0 for kept, missing in ends)
    return Share(value, low, high)
