"""The candidates of a view: a sequence that never changes, and makes its successor without copying itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from cudal1_tui.view import Row

SIZE = 32  # rows of a part: what one event copies


class _Part:
    """Some rows in a row, and what is asked of all of them, worked out once."""

    __slots__ = ("_fastest", "_unjudged", "rows")

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.rows = rows
        self._fastest: Row | bool | None = False  # False: nobody has asked yet
        self._unjudged: tuple[Row, ...] | None = None

    @property
    def fastest(self) -> Row | None:
        if isinstance(self._fastest, bool):
            self._fastest = _fastest(self.rows)
        return self._fastest

    @property
    def unjudged(self) -> tuple[Row, ...]:
        if self._unjudged is None:
            self._unjudged = tuple(row for row in self.rows if row.verdict is None)
        return self._unjudged


class Rows(Sequence["Row"]):
    """Rows in order of writing. `put` costs as much for ten thousand as for ten."""

    __slots__ = ("_length", "_parts", "_places")

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        given = tuple(rows)
        self._parts = tuple(_Part(given[at : at + SIZE]) for at in range(0, len(given), SIZE))
        self._length = len(given)
        self._places = {row.id: place for place, row in enumerate(given)}  # shared with successors, so it may know more

    def put(self, row: Row) -> Rows:
        """With this row in place of the one of its id, or at the end."""
        place = self.place(row.id)
        made = object.__new__(Rows)
        made._places, made._length = self._places, self._length
        if place is None:
            place = self._length
            if len(self._places) > place:  # another successor has grown already
                made._places = dict(list(self._places.items())[:place])
            made._places[row.id] = place
            made._length += 1
        number, at = divmod(place, SIZE)
        before = self._parts[number].rows if number < len(self._parts) else ()
        changed = _Part((*before[:at], row, *before[at + 1 :]))
        made._parts = (*self._parts[:number], changed, *self._parts[number + 1 :])
        return made

    def place(self, id: str | None) -> int | None:
        """Where the row of this id stands."""
        place = self._places.get(id) if id is not None else None
        return place if place is not None and place < self._length else None

    def find(self, id: str | None) -> Row | None:
        place = self.place(id)
        return None if place is None else self[place]

    @property
    def fastest(self) -> Row | None:
        """The one that may be called best; the earlier one where two are as fast."""
        return _fastest(part.fastest for part in self._parts if part.fastest is not None)

    @property
    def unjudged(self) -> list[Row]:
        return [row for part in self._parts for row in part.unjudged]

    def changed_since(self, before: Rows) -> Iterator[tuple[int, Row | None, Row]]:
        """Place, earlier row and row, of each that is not the same any more or is new."""
        for number, part in enumerate(self._parts):
            old = before._parts[number] if number < len(before._parts) else None
            if old is part:
                continue
            for at, row in enumerate(part.rows):
                earlier = old.rows[at] if old is not None and at < len(old.rows) else None
                if earlier is not row:
                    yield number * SIZE + at, earlier, row

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Row]:
        for part in self._parts:
            yield from part.rows

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(*at.indices(self._length)))
        number, place = divmod(range(self._length)[at], SIZE)
        return self._parts[number].rows[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Rows({list(self)!r})"


def _fastest(rows: Iterable[Row]) -> Row | None:
    return max((row for row in rows if row.can_be_best), key=lambda row: row.speedup or 0.0, default=None)
