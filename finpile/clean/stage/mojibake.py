"""Text that was decoded with another encoding than its own, such as `schÃ¶n` for `schön`, and its repair by ftfy.

Source: Speer 2019, "ftfy", https://doi.org/10.5281/zenodo.2591652. Only the repair of encodings is used: quotation
marks, ligatures and widths of characters stay as they are.
"""

from __future__ import annotations


def repair(text: str) -> tuple[str, int]:
    """The text with repaired lines, and the number of lines that changed.

    Each line is repaired on its own: a page can be put together from parts with and without the defect. A line in ASCII
    cannot have it.
    """
    if text.isascii():
        return text, 0
    import ftfy  # loads tables of characters

    lines = text.split("\n")
    repaired = [line if line.isascii() else ftfy.fix_encoding(line) for line in lines]
    return "\n".join(repaired), sum(map(str.__ne__, lines, repaired))
