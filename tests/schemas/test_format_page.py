"""docs/format.md says what the code does: its types, keys, content, marks and fields, none missing and none made up."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from otel_agentrec.journal.content import cell_line, commit, erased_line, parse_cell
from otel_agentrec.journal.events import FORMAT, TYPES, content_of, keys_of
from otel_agentrec.journal.facts import CONTENT
from otel_agentrec.journal.lines import MAX_LINE
from otel_agentrec.journal.normal import MAX_BYTES, MAX_DEPTH
from otel_agentrec.journal.writer import new_stream_name
from otel_agentrec.records import RECORD_NAMESPACE, NodeIoRecord, NodeType
from otel_agentrec.schemas import FORMAT_DIRECTORY, load
from otel_agentrec.settings import Settings

PAGE = (Path(__file__).parent.parent.parent / "docs" / "format.md").read_text()
RESERVED = {"FINAL_OUTPUT", "ERROR", "MODEL_RETRY", "PRUNED", "ERASED"}
"""Types that nothing writes yet."""
NOT_YET = {"sinks"}
"""Keys that nothing writes yet."""


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def words(text: str) -> set[str]:
    """What stands between backticks, taken apart."""
    return {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[$A-Za-z][\w$.]*", code)}


def test_every_type_that_is_written_and_no_other() -> None:
    named = {word for word in words(section("An event")) if re.fullmatch(r"[A-Z]+(_[A-Z]+)*", word)}
    assert named - {"MODEL", "TOOL", "UUID"} == set(TYPES) - RESERVED


def test_every_key_of_a_payload() -> None:
    said = words(section("An event"))
    for name in set(TYPES) - RESERVED:
        keys = {key for _, key in keys_of(TYPES[name])} - NOT_YET
        index_only = {"stream", "size", "hash"} if name in ("OPENED", "SEALED") else set()
        assert keys - index_only <= said, name


def test_every_key_of_the_envelope() -> None:
    schema = load("event")
    said = words(section("An event"))
    assert set(schema["properties"]) <= said
    assert set(schema["properties"]["trace"]["properties"]) <= said
    assert f"`{FORMAT}`" in PAGE and f"schemas/{FORMAT_DIRECTORY}/" in PAGE


def test_what_is_content() -> None:
    (said,) = re.findall(r"^Content are the facts (.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    keys = {path for name in set(TYPES) - RESERVED for path in content_of(name)}
    plain = {path.rpartition(".")[2] for path in keys}
    assert {w for w in words(said) if w[0].islower()} - {"request"} == plain  # which holds content
    assert plain >= set(CONTENT)


def test_every_mark() -> None:
    said = {word for word in words(section("Values that JSON can't say")) if word.startswith("$")}
    marks = {next(iter(form["properties"])) for form in load("event")["$defs"]["mark"]["anyOf"]}
    assert said - {"$$name", "$name"} == marks


def test_fields_of_records_are_fields() -> None:
    record = NodeIoRecord("r", NodeType.MODEL, "n").to_json()
    cells = [row.split("|")[1] for row in section("Node records").splitlines() if row.startswith("| `")]
    named = set().union(*(words(cell) for cell in cells))
    assert named <= set(record)
    assert str(RECORD_NAMESPACE) in PAGE


def test_limits_and_names() -> None:
    assert f"{MAX_LINE >> 20} MiB" in section("A line")
    assert f"({MAX_BYTES >> 20} MiB), too deep ({MAX_DEPTH} levels)" in PAGE
    assert f"{Settings().segment_bytes >> 20} MiB" in section("Files")
    (example,) = set(re.findall(r"(\d{8}T\d{6}Z-\d+-[0-9a-f]+)\.jsonl", PAGE))
    shape = re.sub(r"\d", "0", re.sub(r"[0-9a-f]{8}$", "x" * 8, example))
    ours = re.sub(r"\d", "0", re.sub(r"[0-9a-f]{8}$", "x" * 8, new_stream_name()))
    assert re.sub(r"-0+-", "-0-", shape) == re.sub(r"-0+-", "-0-", ours)


def test_cells_are_as_the_page_says() -> None:
    assert '{"i":0,"salt":"<32 hex>","seq":17,"value":V}' in PAGE
    assert '`{"i":0,"salt":null,"seq":17}` and blanks' in PAGE
    salt = bytes(range(16))
    assert commit(salt, b"1") == hashlib.sha256(b"agentrec/content/1" + b"\0" + salt + b"1").hexdigest()
    line = cell_line(0, salt, 17, b"1")
    assert line == b'{"i":0,"salt":"%s","seq":17,"value":1}\n' % salt.hex().encode()
    erased = erased_line(0, 17, len(line))
    assert (len(erased), erased.strip()) == (len(line), b'{"i":0,"salt":null,"seq":17}')
    assert parse_cell(erased[:-1]) == (0, None, 17, b"")
