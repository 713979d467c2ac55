"""Small columns for many rows: a row costs bytes, not objects, and reads like an object with attributes.

Every descriptor here names one column of a :class:`Columns`; a :class:`Row` is a handle (columns, number) that is made
when it is needed and costs nothing while it is not.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

__all__ = ["Columns", "Count", "Id", "Label", "Mark", "Number", "Ref", "Row", "Text"]

R = TypeVar("R", bound="Row")

_LIMITS = {code: 1 << (8 * array(code).itemsize - 1) for code in "bhiq"}


class Columns:
    """The columns of one kind of row, and the texts that rows share."""

    def __init__(self, kind: type[Row]) -> None:
        self.kind = kind
        self.size = 0
        self.data: list[array[int]] = [array(c.code) for c in kind.columns]
        self._empty = [c.none for c in kind.columns]
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self.odd: dict[tuple[int, int], str] = {}
        """(column, row) -> an id that is not 16 hex digits"""

    def grow(self) -> int:
        """Append an empty row; returns its number."""
        for column, none in zip(self.data, self._empty, strict=True):
            column.append(none)
        self.size += 1
        return self.size - 1

    def text_number(self, text: str) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


class Row:
    """A handle of one row. Two handles of one row are equal."""

    __slots__ = ("at", "row")
    columns: ClassVar[list[Column[Any]]] = []
    column_of: ClassVar[dict[str, int]] = {}

    def __init__(self, at: Columns, row: int) -> None:
        self.at = at
        self.row = row

    def __init_subclass__(cls) -> None:
        named = {name: c for name, c in vars(cls).items() if isinstance(c, Column)}
        cls.columns, cls.column_of = list(named.values()), {}
        for i, (name, column) in enumerate(named.items()):
            column.i = i
            cls.column_of[name] = i
            setattr(cls, name, property(column.read, column.write))  # one call less than by way of the descriptor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.row == other.row and self.at is other.at

    def __hash__(self) -> int:
        return self.row


T = TypeVar("T")


class Column(Generic[T]):
    """One column: how its values are kept in an array of integers. Reads like an attribute of type T."""

    code = "q"
    none = 0
    i = -1

    if TYPE_CHECKING:

        def __get__(self, row: Row, owner: type[Row]) -> T: ...

        def __set__(self, row: Row, value: T) -> None: ...

    def read(self, row: Row) -> T:
        raise NotImplementedError

    def write(self, row: Row, value: T) -> None:
        raise NotImplementedError


class Number(Column["int | None"]):
    """An integer or None; what does not fit the column, or is no integer, is None."""

    def __init__(self, code: str = "q") -> None:
        self.code = code
        self.none = -_LIMITS[code]

    def read(self, row: Row) -> int | None:
        value = row.at.data[self.i][row.row]
        return None if value == self.none else value

    def write(self, row: Row, value: int | None) -> None:
        fits = type(value) is int and self.none < value < -self.none
        row.at.data[self.i][row.row] = value if fits and value is not None else self.none


class Count(Column[int]):
    """An integer that is never None, of a range that always fits."""

    def __init__(self, code: str, start: int = 0) -> None:
        self.code, self.none = code, start

    def read(self, row: Row) -> int:
        return row.at.data[self.i][row.row]

    def write(self, row: Row, value: int) -> None:
        row.at.data[self.i][row.row] = value


class Text(Column["str | None"]):
    """A text that many rows share, or None."""

    code, none = "i", -1

    def read(self, row: Row) -> str | None:
        number = row.at.data[self.i][row.row]
        return None if number < 0 else row.at.texts[number]

    def write(self, row: Row, value: str | None) -> None:
        row.at.data[self.i][row.row] = row.at.text_number(value) if isinstance(value, str) else -1


class Label(Column[str]):
    """A text that many rows share; "" where there is none."""

    code, none = "i", -1

    def read(self, row: Row) -> str:
        number = row.at.data[self.i][row.row]
        return "" if number < 0 else row.at.texts[number]

    def write(self, row: Row, value: str) -> None:
        row.at.data[self.i][row.row] = row.at.text_number(value)


class Id(Column[str]):
    """A span id, "" where there is none: 16 hex digits as a number, anything else beside the column."""

    code = "Q"

    def read(self, row: Row) -> str:
        number = row.at.data[self.i][row.row]
        return f"{number:016x}" if number else row.at.odd.get((self.i, row.row), "")

    def write(self, row: Row, value: str) -> None:
        number = id_number(value)
        row.at.data[self.i][row.row] = number
        if not number and value:
            row.at.odd[self.i, row.row] = value


class Mark(Column["int | None"]):
    """Not a text but its hash, to tell whether two are equal. 0 stands for None."""

    def read(self, row: Row) -> int | None:
        return row.at.data[self.i][row.row] or None

    def write(self, row: Row, value: int | None) -> None:
        row.at.data[self.i][row.row] = value or 0


class Ref(Column["R | None"]):
    """Another row of the same columns, or None."""

    code, none = "i", -1

    def read(self, row: Row) -> Any:
        number = row.at.data[self.i][row.row]
        return None if number < 0 else row.at.kind(row.at, number)

    def write(self, row: Row, value: Any) -> None:
        row.at.data[self.i][row.row] = -1 if value is None else value.row


def id_number(text: object) -> int:
    """The number of an id of 16 lower-case hex digits, else 0."""
    if isinstance(text, str) and len(text) == 16 and text.isascii() and text.isalnum() and text == text.lower():
        try:
            return int(text, 16)
        except ValueError:
            return 0
    return 0
