"""The stage `clean` over one batch: normal form, rules, dates, parts."""
