"""Put content back in place of references: cells by their commitment, lists by the splices they were stored as.

Every cell is checked against its commitment when it is read. What can't be had costs one element: ``{"$missing": {...}}``
stands in its place. ``{"$off": ...}`` stays (content was not recorded), ``{"$erased": {"bytes": n}}`` stands for what was
erased. ``{"$node": ...}`` points at another stream of the recording; what stands there is put in its place. A user's own keys
never begin with a single ``$`` here (the canonical form doubles it), so the marks are unambiguous.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import orjson

from otel_agentrec.errors import RecordingUnreadable
from otel_agentrec.journal.content import commit, parse_cell
from otel_agentrec.journal.events import Event
from otel_agentrec.journal.pointers import MARK, Pointer

if TYPE_CHECKING:
    from otel_agentrec.journal.elsewhere import Elsewhere

__all__ = ["Resolver"]

Json = Any
MAX_ELEMENTS = 1 << 20
"""Most elements that one list may come to; more is hostile (a few short splices can name any number)."""
MAX_STEPS = 1 << 22
_ENTRY = 400
"""What an entry of a cache weighs beside its value, in bytes."""


class _Cell(NamedTuple):
    i: int
    commitment: str
    size: int


class _Splice(NamedTuple):
    seq: int
    start: int
    stop: int
    path: str


class _Literal(NamedTuple):
    value: Json


class _Shape(NamedTuple):
    """How a list was stored; ``starts[k]`` = position of the first element of item ``k``, one more for the end."""

    items: list[_Cell | _Splice | _Literal]
    starts: list[int]


class Cells(Protocol):
    """The content of a stream."""

    def line(self, seq: int, i: int) -> bytes | None:
        """The line of a cell without its newline; None: it is not there."""
        ...

    def close(self) -> None: ...


class StreamLike(Protocol):
    """What the resolver needs of a stream."""

    def at(self, seq: int) -> Event:
        """Raises IndexError or RecordingUnreadable: it can't be had."""
        ...

    def cells(self) -> Cells: ...


class Resolver:
    """Resolves the events of one stream, best in order. Not thread-safe; close it, or use it as a context manager.

    Args:
        stream: the stream that the events come from.
        cache_bytes: bound of what is kept, as bytes of the stored values; about three times that in memory.
    """

    def __init__(self, stream: StreamLike, *, cache_bytes: int = 32 << 20) -> None:
        self._stream = stream
        self._cells = stream.cells()
        self._values: _ByteLru[tuple[int, int], Json] = _ByteLru(cache_bytes)
        self._lists: _ByteLru[tuple[int, str], list[Json]] = _ByteLru(cache_bytes)
        self._shapes: _ByteLru[int, dict[str, _Shape]] = _ByteLru(cache_bytes // 4)
        self._elsewhere: Elsewhere | None = None

    def __enter__(self) -> Resolver:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._cells.close()
        if self._elsewhere is not None:
            self._elsewhere.close()

    def resolve(self, event: Event, *, only: Collection[str] | None = None) -> dict[str, Json]:
        """The payload with all references replaced. Values may be shared with other events: don't change them.

        Args:
            only: paths (``$.payload.facts.result`` …) to resolve; references elsewhere are left as they are.
        """
        shapes: dict[str, _Shape] = {}

        def leaf(node: dict[str, Json], path: str, number: int) -> Json:
            if only is not None and path not in only:
                return node
            if MARK in node:
                return self._pointed_at(node)
            if "$c" in node:
                return self._value(event.seq, _cell_of(node, number))[0]
            shape = shapes[path] = _shape_of(node["$list"], path, number)
            values, weight = self._gather(event.seq, shape)
            self._lists.put((event.seq, path), values, weight)
            return list(values)

        payload = _walk(event.payload, leaf)
        if only is None and shapes:
            self._keep(event.seq, shapes)
        return payload

    def element(self, event: Event, path: str, index: int) -> Json:
        """One element of the list at ``path`` (``$.payload.facts.messages``), without reading the others.

        Raises:
            IndexError: there is no such list, or it is shorter.
        """
        found: list[_Shape] = []

        def leaf(node: dict[str, Json], here: str, number: int) -> Json:
            if here == path and "$list" in node:
                found.append(_shape_of(node["$list"], here, number))
            return None

        _walk(event.payload, leaf)
        if not found or not 0 <= index < found[0].starts[-1]:
            raise IndexError(f"no element {index} at {path}")
        return self._gather(event.seq, found[0], index, index + 1)[0][0]

    def _pointed_at(self, node: dict[str, Json]) -> Json:
        path = getattr(self._stream, "path", None)
        if path is None:
            return _missing("it points at a file of a recording")
        if self._elsewhere is None:
            from otel_agentrec.journal.elsewhere import Elsewhere  # it reads other streams with resolvers of its own

            self._elsewhere = Elsewhere(path)
        pointer = Pointer.from_json(node)
        return _missing("no pointer") if pointer is None else self._elsewhere.value(pointer)

    def _gather(self, seq: int, shape: _Shape, first: int = 0, stop: int | None = None) -> tuple[list[Json], int]:
        """Elements of a list and their weight; splices are followed with a stack of our own, whatever their depth."""
        out: list[Json] = []
        weight = steps = 0
        # owner, shape, item, position, end
        stack: list[list[Any]] = [
            [seq, shape, bisect_right(shape.starts, first) - 1, first, shape.starts[-1] if stop is None else stop]
        ]
        while stack:
            owner, (items, starts), k, at, end = frame = stack[-1]
            if at >= end:
                stack.pop()
                continue
            steps += 1
            if len(out) >= MAX_ELEMENTS or steps > MAX_STEPS:
                out.append(_missing("the list is too long"))
                break
            if k >= len(items):
                _pad(out, end - at)
                stack.pop()
                continue
            item, upto = items[k], min(end, starts[k + 1])
            frame[2], frame[3] = k + 1, upto
            if isinstance(item, _Cell):
                value, size = self._value(owner, item)
                out.append(value)
                weight += size
            elif isinstance(item, _Literal):
                out.append(item.value)
                weight += 64
            else:
                first, last = item.start + at - starts[k], item.start + upto - starts[k]
                known = self._lists.get((item.seq, item.path)) if item.seq < owner else None
                if known is not None:
                    values, total = known
                    taken = values[first:last]
                    out += taken
                    weight += total * len(taken) // max(1, len(values))
                    _pad(out, last - first - len(taken))
                    continue
                target = self._shape(item.seq, item.path) if item.seq < owner else None
                if target is None:
                    _pad(out, last - first)
                else:
                    stack.append([item.seq, target, bisect_right(target.starts, first) - 1, first, last])
        return out, weight + 8 * len(out) + _ENTRY

    def _shape(self, seq: int, path: str) -> _Shape | None:
        """The list at ``path`` of an earlier event, as it was stored."""
        known = self._shapes.get(seq)
        if known is not None:
            return known[0].get(path)
        shapes: dict[str, _Shape] = {}

        def leaf(node: dict[str, Json], path: str, number: int) -> Json:
            if "$list" in node and MARK not in node:
                shapes[path] = _shape_of(node["$list"], path, number)
            return None

        try:
            _walk(self._stream.at(seq).payload, leaf)
        except (IndexError, RecordingUnreadable):
            pass
        self._keep(seq, shapes)
        return shapes.get(path)

    def _keep(self, seq: int, shapes: dict[str, _Shape]) -> None:
        self._shapes.put(seq, shapes, _ENTRY + sum(150 * len(shape.items) for shape in shapes.values()))

    def _value(self, seq: int, cell: _Cell) -> tuple[Json, int]:
        """(value, weight) of a cell; a mark in its place when it can't be had."""
        known = self._values.get((seq, cell.i))
        if known is not None:
            return known
        line = self._cells.line(seq, cell.i)
        if line is None:
            return _missing("gone", cell.size), 64
        found = parse_cell(line)
        if found is None:
            return _missing("damaged", cell.size), 64
        if found.salt is None:
            return {"$erased": {"bytes": cell.size}}, 64
        if commit(found.salt, found.value) != cell.commitment:
            return _missing("damaged", cell.size), 64
        try:
            value = orjson.loads(found.value)
        except ValueError:
            return _missing("damaged", cell.size), 64
        self._values.put((seq, cell.i), value, cell.size + _ENTRY)
        return value, cell.size


K = TypeVar("K")
V = TypeVar("V")


class _ByteLru(Generic[K, V]):
    """The most recently used values, bounded by the sum of their weights."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> tuple[V, int] | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: K, value: V, weight: int) -> None:
        old = self._entries.pop(key, None)
        self._weight += weight - (old[1] if old else 0)
        self._entries[key] = (value, weight)
        while self._weight > self._limit and self._entries:
            self._weight -= self._entries.popitem(last=False)[1][1]


def _walk(payload: dict[str, Json], leaf: Callable[[dict[str, Json], str, int], Json]) -> dict[str, Json]:
    """A copy of a payload in which ``leaf(node, path, number)`` takes the place of every reference and every list.

    ``number`` = references that stand before it in canonical order, which is how cells are numbered. Any depth.
    """
    out: dict[str, Json] = {}
    number = 0
    stack: list[tuple[Any, Iterator[tuple[Any, Json]], str]] = [(out, iter(payload.items()), "$.payload")]
    while stack:
        target, entries, path = stack[-1]
        for key, value in entries:
            inner: Json = value
            here = f"{path}.{key}"
            if isinstance(value, dict):
                if _is_reference(value):
                    inner = leaf(value, here, number)
                    number += 1
                elif isinstance(value.get(MARK), dict):
                    inner = leaf(value, here, number)
                elif isinstance(value.get("$list"), list):
                    inner = leaf(value, here, number)
                    number += sum(1 for item in value["$list"] if isinstance(item, dict) and _is_reference(item))
                else:
                    inner = {}
                    stack.append((inner, iter(value.items()), here))
            elif isinstance(value, list):
                inner = []
                stack.append((inner, enumerate(value), here))
            if isinstance(target, dict):
                target[key] = inner
            else:
                target.append(inner)
            if stack[-1][0] is not target:
                break  # down into the new container first: order decides the numbers
        else:
            stack.pop()
    return out


def _is_reference(node: dict[str, Json]) -> bool:
    return len(node) == 2 and isinstance(node.get("$c"), str) and type(node.get("bytes")) is int


def _cell_of(node: dict[str, Json], number: int) -> _Cell:
    return _Cell(number, node["$c"], node["bytes"])


def _shape_of(stored: list[Json], path: str, number: int) -> _Shape:
    items: list[_Cell | _Splice | _Literal] = []
    starts = [0]
    for item in stored:
        length = 1
        if isinstance(item, dict) and _is_reference(item):
            items.append(_cell_of(item, number))
            number += 1
        elif isinstance(item, dict) and "$v" in item:
            items.append(_Literal(item["$v"]))
        elif (splice := _splice_of(item, path)) is not None:
            items.append(splice)
            length = splice.stop - splice.start
        elif isinstance(item, dict) and "$off" in item:
            items.append(_Literal(item))
        else:
            items.append(_Literal(_missing("no item of a list")))
        starts.append(starts[-1] + length)
    return _Shape(items, starts)


def _splice_of(item: Json, path: str) -> _Splice | None:
    if not isinstance(item, list) or len(item) not in (3, 4) or any(type(n) is not int for n in item[:3]):
        return None
    seq, start, stop = item[:3]
    other = item[3] if len(item) == 4 else path
    return _Splice(seq, start, stop, other) if 0 <= start <= stop and seq >= 0 and isinstance(other, str) else None


def _missing(reason: str, size: int | None = None) -> dict[str, Json]:
    return {"$missing": {"reason": reason} if size is None else {"bytes": size, "reason": reason}}


def _pad(out: list[Json], count: int) -> None:
    """A mark for each of ``count`` elements whose splice leads nowhere."""
    mark = _missing("its splice leads nowhere")
    out += [mark] * max(0, min(count, MAX_ELEMENTS - len(out)))
