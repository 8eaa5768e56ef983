"""Tables as lines of text: aligned in letters of one width, or cell after cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .formatted_document import Cell, Piece, Style

MOST_COLUMNS = 20  # of a table in a rich message
_WIDEST = 40  # of a column; a longer cell moves the rest of its line
_LONGEST = 2000  # of an aligned line
_BETWEEN = " | "


def aligned(rows: Sequence[Sequence[Cell]], *, has_header: bool) -> list[str] | None:
    """Return the lines of a table, the first with the line under it; None if it is better not aligned."""
    if any(
        style.kind == "text_link"
        for row in rows
        for cell in row
        for one in cell.pieces
        for style in one.styles
    ):
        return None
    columns = max(map(len, rows))
    if columns > MOST_COLUMNS:
        return None
    texts = [["".join(piece.text for piece in cell.pieces) for cell in row] for row in rows]
    widths = [0] * columns
    for row in texts:
        for column, text in enumerate(row):
            widths[column] = max(widths[column], min(_width(text), _WIDEST))
    lines = [_line(row, text, widths) for row, text in zip(rows, texts, strict=True)]
    if max(map(len, lines)) > _LONGEST:
        return None
    if has_header:
        lines[0] += "\n" + "-+-".join("-" * width for width in widths)
    return lines


def joined(row: Sequence[Cell], style: Style | None) -> Iterator[Piece]:
    """Yield the words of a row, cell after cell; with a style, all of them have it."""
    around = () if style is None else (style,)
    for number, cell in enumerate(row):
        if number:
            yield Piece(_BETWEEN)
        yield from (Piece(one.text, (*around, *one.styles)) for one in cell.pieces)


def _line(row: Sequence[Cell], texts: list[str], widths: list[int]) -> str:
    cells = []
    for cell, text, width in zip(row, texts, widths, strict=False):
        space = max(0, width - _width(text))
        before = {"right": space, "center": space // 2}.get(cell.align, 0)
        cells.append(" " * before + text + " " * (space - before))
    return _BETWEEN.join(cells).rstrip()


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(0, wcswidth(text))
