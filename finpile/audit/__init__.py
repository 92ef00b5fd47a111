"""The audit: a person judges a sample of removals, and of pairs just below the limit of `near`; estimates follow.

sample.py       what is judged: drawn by stage and source, by digests
judgements.py   OUT/audit/judgements.jsonl, one line for each answer
estimates.py    precision of each stage and source, and what `near` misses, with 95% intervals
report.py       the estimates as tables and as a page
served.py       the view Audit of the explorer's server

Decision: docs/decisions/0088-the-audit.md.
"""
