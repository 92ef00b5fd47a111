"""Rendering of a `Table` as Markdown, CSV, TeX, JSON and HTML. The same table gives the same bytes."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from finpile.report.figures import Cell
from finpile.report.table import Row, RowKind, Table

_FORMAT_VERSION = 1
#: Prefixes that spreadsheets interpret as a formula; the last four are the full-width forms of the first four.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~&$])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_TEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "␣": r"\textvisiblespace{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
#: The characters that pdfLaTeX sets without a package, in its default font encoding.
_PDFLATEX = frozenset(
    "¡¢£¤¥¦§¨©ª¬®¯°±²³´µ¶·¸¹º¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖ×ØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõö÷øùúûüýÿ"
    "ĀāĂăĆćĈĉĊċČčĎďĒēĔĕĖėĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭİıĲĳĴĵĶķĹĺĻļĽľŁłŃńŅņŇňŌōŎŏŐőŒœŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŴŵŶŷŸŹźŻżŽž"
    "‐‑–—―‘’“”†‡•…‰€™←→"
)
_UNICODE_COMMAND = r"\providecommand{\unicodechar}[2]{\ifdefined\Umathcode #1\else\texttt{U+#2}\fi}"


def to_json_value(table: Table) -> dict[str, Any]:
    """Exact integers, ratios as floats, null for a ratio without a denominator; units as powers of ten."""
    keys = [column.key for column in table.columns]
    return {
        "version": _FORMAT_VERSION,
        "name": table.name,
        "title": table.title,
        "caption": table.caption,
        "columns": [{"key": column.key, "title": column.title, "shown_in": column.unit} for column in table.columns],
        "rows": [
            {
                "kind": row.kind.value,
                "group": row.group,
                "values": {key: cell.value for key, cell in zip(keys, row.cells, strict=True)},
                "shown": [cell.text for cell in row.cells],
            }
            for row in table.rows
        ],
        "footnotes": list(table.footnotes),
    }


def to_json(table: Table) -> str:
    return json.dumps(to_json_value(table), indent=2, ensure_ascii=False) + "\n"


def to_csv(table: Table) -> str:
    """One line per row, with exact values; `kind` marks totals, `group` is the dataset (if the table has groups).

    A text or heading that a spreadsheet would execute as a formula is prefixed with an apostrophe.
    """
    grouped = any(row.group for row in table.rows)
    keys = (_not_a_formula(column.key) for column in table.columns)
    lines = [_csv_line(["kind", *(["group"] if grouped else []), *keys])]
    for row in table.rows:
        values = ["" if cell.value is None else cell.value for cell in row.cells]
        texts = map(_not_a_formula, [*([row.group] if grouped else []), *values])
        lines.append(_csv_line([row.kind.value, *texts]))
    return "".join(lines)


def _csv_line(values: list[int | float | str]) -> str:
    """One line that ends with a line feed. The writer's terminator is CR LF, so that it quotes both characters."""
    stream, end = io.StringIO(), "\r\n"
    csv.writer(stream, lineterminator=end).writerow(values)
    return stream.getvalue().removesuffix(end) + "\n"


def _not_a_formula(value: int | float | str) -> int | float | str:
    """The value with an apostrophe before a formula prefix; numbers are unchanged, including negative ones.

    Source: OWASP, CSV Injection.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def to_markdown(table: Table) -> str:
    """A pipe table with bold totals; the rows below a total are indented."""
    headings = [escape_markdown(column.heading) for column in table.columns]
    lines = [_pipes(headings), _pipes([":--" if text else "--:" for text in _texts(table)])]
    lines += [_pipes([_markdown_cell(row, index) for index in range(len(row.cells))]) for row in table.rows]
    notes = [f"- {escape_markdown(note)}" for note in table.footnotes]
    heading = f"**{escape_markdown(table.title)}.** {escape_markdown(table.caption)}"
    return "\n".join([heading, "", *lines, *(["", *notes] if notes else []), ""])


def to_tex(table: Table) -> str:
    """A `table` environment for the package `booktabs`, which pdfLaTeX, LuaLaTeX and XeLaTeX compile."""
    units = any(column.unit for column in table.columns)
    head = [_tex_line([escape_tex(column.title) for column in table.columns])]
    if units:
        head.append(_tex_line([escape_tex(column.unit) for column in table.columns]))
    body: list[str] = []
    for index, row in enumerate(table.rows):
        if row.gap and index:
            body.append(r"\midrule" if row.kind is RowKind.TOTAL else r"\addlinespace")
        body.append(_tex_line([_tex_cell(row, at) for at in range(len(row.cells))]))
    notes = [rf"\par\smallskip{{\footnotesize {escape_tex(note)}}}" for note in table.footnotes]
    caption = escape_tex(table.caption)
    others = any(r"\unicodechar{" in line for line in (*head, *body, *notes, caption))
    return "\n".join(
        [
            *([_UNICODE_COMMAND] if others else []),
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{''.join('l' if text else 'r' for text in _texts(table))}}}",
            r"\toprule",
            *head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{table.name}}}",
            r"\end{table}",
            "",
        ]
    )


def to_html(table: Table) -> str:
    """A `figure` with the table, its caption and notes; the style sheet uses the classes `total`, `indent`, `gap`."""
    texts = _texts(table)
    head = "".join(
        f"<th scope=col{_LEFT if text and index else ''}>{_heading_html(column.title, column.unit)}</th>"
        for index, (column, text) in enumerate(zip(table.columns, texts, strict=True))
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.footnotes)
    return "\n".join(
        [
            f'<figure id="{html.escape(table.name)}">',
            f"<figcaption><b>{html.escape(table.title)}.</b> {html.escape(table.caption)}</figcaption>",
            f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>",
            *(_html_row(row, texts) for row in table.rows),
            "</tbody></table></div>",
            *([f"<ul class=notes>{notes}</ul>"] if notes else []),
            "</figure>",
        ]
    )


#: Suffix -> renderer, for the files next to the page.
FORMATS: Mapping[str, Callable[[Table], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_tex, "json": to_json}


def escape_tex(text: str) -> str:
    """The text escaped for TeX; control characters become spaces.

    A character that pdfLaTeX lacks is written `\\unicodechar{CHARACTER}{CODE}`, which `to_tex` defines: pdfLaTeX prints
    its code, and the other engines print the character in the document's font.
    """
    return "".join(map(_tex_character, _CONTROL.sub(" ", text)))


def _tex_character(sign: str) -> str:
    if sign in _TEX_SPECIAL:
        return _TEX_SPECIAL[sign]
    return sign if sign.isascii() or sign in _PDFLATEX else rf"\unicodechar{{{sign}}}{{{ord(sign):04X}}}"


def escape_markdown(text: str) -> str:
    """The text escaped for Markdown and its inline HTML, on one line."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", _CONTROL.sub(" ", text))


def _texts(table: Table) -> list[bool]:
    """Whether each column is left-aligned."""
    return [index == 0 or column.is_text for index, column in enumerate(table.columns)]


def _pipes(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_cell(row: Row, index: int) -> str:
    text = escape_markdown(row.cells[index].text)
    if row.kind is RowKind.TOTAL:
        return f"**{text}**" if text.strip() else ""
    return "&nbsp;&nbsp;" * _depth(row) + text if index == 0 else text


def _depth(row: Row) -> int:
    """Steps by which the name of a row is indented."""
    return 0 if not row.indent else 2 if row.kind is RowKind.PART else 1


def _tex_line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _tex_cell(row: Row, index: int) -> str:
    text = escape_tex(row.cells[index].text)
    if row.kind is RowKind.TOTAL:
        return rf"\textbf{{{text}}}"
    return r"\quad " * _depth(row) + text if index == 0 else text


def _heading_html(title: str, unit: str) -> str:
    return html.escape(title) + (f" <small>{html.escape(unit)}</small>" if unit else "")


_LEFT = ' style="text-align:left"'
#: Indents the name of a part of a row.
_PART_STYLE = ' style="padding-left:2.35rem"'


def _html_row(row: Row, texts: list[bool]) -> str:
    marks = [
        word for word, on in (("total", row.kind is RowKind.TOTAL), ("indent", row.indent), ("gap", row.gap)) if on
    ]
    first = f"<th scope=row{_PART_STYLE if row.kind is RowKind.PART else ''}>{html.escape(row.cells[0].text)}</th>"
    cells = first + "".join(_html_cell(cell, text) for cell, text in zip(row.cells[1:], texts[1:], strict=True))
    return f'<tr class="{" ".join(marks)}">{cells}</tr>' if marks else f"<tr>{cells}</tr>"


def _html_cell(cell: Cell, is_text: bool) -> str:
    text = html.escape(cell.text)
    exact = f' title="{cell.value:,}"' if isinstance(cell.value, int) and f"{cell.value:,}" != cell.text else ""
    return f"<td{exact}{_LEFT if is_text else ''}>{text}</td>"
