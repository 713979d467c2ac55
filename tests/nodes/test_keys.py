"""Keys: the same call has the same key, however it is written; whatever changes makes another."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otel_agentrec.errors import UsageError
from otel_agentrec.journal.canonical import canonical_any
from otel_agentrec.nodes import exactjson
from otel_agentrec.nodes.inert import inert_of, path_text
from otel_agentrec.nodes.keys import (
    KeyRing,
    NoKey,
    aliased_wire_key,
    prompt_key,
    split_key,
    tool_key,
    wire_key,
)

RING = KeyRing.random()
CHAT = "/v1/chat/completions"

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    leaves, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=4), x, max_size=3), max_leaves=12
)
objects = st.dictionaries(st.text(max_size=6), values, max_size=5)


def wire(body: Any, *inert: str) -> str:
    return wire_key(RING, "POST", CHAT, body, inert, api="openai.chat")


def alias(body: Any, api: str = "openai.chat") -> str | None:
    return aliased_wire_key(RING, "POST", "/v1/x", body, api=api)


def shuffled(value: Any) -> Any:
    """The same JSON with the members of every object in reverse order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(x) for x in value] if isinstance(value, list) else value


# --- the spelling -----------------------------------------------------------------------------------------------------


def test_a_key_names_its_scheme_and_the_id_of_the_secret(tmp_path: Path) -> None:
    ring = KeyRing.of(tmp_path)
    key = wire_key(ring, "POST", CHAT, {"a": 1}, ["$.user", "order:tools by name"], api="openai.chat")
    parts = split_key(key)
    assert parts.scheme == "wire/openai.chat[$.user, order:tools by name]"
    assert parts.key_id == ring.key_id == KeyRing.of(tmp_path, create=False).key_id
    assert len(parts.digest) == 64
    assert ring.made(key)
    assert not KeyRing.random().made(key)
    assert key == f"{parts.scheme}:{parts.key_id}.{parts.digest}"


def test_a_recording_without_its_secret_gets_a_ring_that_fits_no_stored_key(tmp_path: Path) -> None:
    ring = KeyRing.of(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []
    assert not ring.made(tool_key(KeyRing.of(tmp_path), "t", None))


def test_the_secret_is_not_shown() -> None:
    assert "secret" not in repr(RING)


def test_schemes_never_answer_one_another() -> None:
    body = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}
    keys = {
        wire(body),
        alias(body),
        prompt_key(RING, body),
        tool_key(RING, "POST", body),
        wire_key(RING, "POST", CHAT, body, api="openai.responses"),
        wire(body, "$.user"),
        prompt_key(RING, body, ["$.user"]),
    }
    assert len(keys) == 7


# --- laws -------------------------------------------------------------------------------------------------------------


@given(objects)
def test_the_order_of_members_does_not_matter(value: dict[str, Any]) -> None:
    assert prompt_key(RING, value) == prompt_key(RING, shuffled(value))
    assert tool_key(RING, "t", value) == tool_key(RING, "t", json.dumps(shuffled(value), indent=2))
    assert wire(value) == wire(json.dumps(shuffled(value)).encode())


@given(objects, objects)
def test_any_changed_value_changes_the_key(a: dict[str, Any], b: dict[str, Any]) -> None:
    assume(canonical_any(a) != canonical_any(b))
    assert tool_key(RING, "t", a) != tool_key(RING, "t", b)
    assert wire(a) != wire(b) or all(
        canonical_any({k: x for k, x in v.items() if k != "prompt_cache_key"}) for v in (a, b)
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"x": 1}, {"x": "1"}),
        ({"x": 1}, {"x": True}),
        ({"x": None}, {}),
        ({"x": [1, 2]}, {"x": [2, 1]}),
        ({"x": "a"}, {"x": "a "}),
        ({"x": "café"}, {"x": "cafe\u0301"}),
        ({"x": 2**53}, {"x": 2**53 + 1}),
        ({"x": []}, {"x": {}}),
        ({"x": {"$int": "1"}}, {"x": 1}),
    ],
    ids=["type", "bool", "null or absent", "order", "blank", "composed", "beyond a double", "empty", "marks"],
)
def test_what_looks_alike_is_not_the_same(a: Any, b: Any) -> None:
    assert tool_key(RING, "t", a) != tool_key(RING, "t", b)
    assert wire(a) != wire(b)
    assert prompt_key(RING, a) != prompt_key(RING, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ('{"n":12345678901234567890}', '{"n":12345678901234567891}'),
        ('{"n":1e400}', '{"n":2e400}'),
        ('{"n":1e400}', '{"n":"1e400"}'),
        ('{"n":1e-400}', '{"n":0}'),
        ('{"n":' + "9" * 5000 + "}", '{"n":"' + "9" * 5000 + '"}'),
        ("[" * 3000 + "1" + "]" * 3000, "[" * 3000 + "2" + "]" * 3000),
        ('"abc"', "abc"),
        ("abc", "abd"),
        ("{}", ""),
    ],
    ids=["big", "huge", "huge text", "tiny", "digits", "deep", "text or JSON", "text", "empty"],
)
def test_arguments_as_json_text_are_read_exactly(a: str, b: str) -> None:
    assert tool_key(RING, "t", a) != tool_key(RING, "t", b)
    assert tool_key(RING, "t", a) == tool_key(RING, "t", f" {a}\n" if a[:3] not in ("abc", "[[[") else a)


def test_no_arguments_are_no_arguments() -> None:
    assert tool_key(RING, "t", None) == tool_key(RING, "t", "") == tool_key(RING, "t", "null")


def test_name_and_arguments_do_not_run_into_one_another() -> None:
    assert tool_key(RING, "a|1", 2) != tool_key(RING, "a", "1|2")


def test_what_has_no_end_has_no_key() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(NoKey):
        tool_key(RING, "t", {"x": cycle})


def test_large_values_are_told_apart_to_the_last_byte() -> None:
    a, b = "x" * (33 << 20), "x" * (33 << 20) + "y"
    assert tool_key(RING, "t", {"x": a + "0"}) != tool_key(RING, "t", {"x": b})


# --- what is inert ----------------------------------------------------------------------------------------------------


def test_defaults_leave_out_what_cannot_change_an_answer() -> None:
    assert prompt_key(RING, {"model": "m", "stream": True}) == prompt_key(
        RING, {"model": "m", "streamExecution": {"t": 1}}
    )
    assert wire({"model": "m", "prompt_cache_key": "a"}) == wire({"model": "m"})
    assert wire({"model": "m", "stream": True}) != wire({"model": "m"})
    assert split_key(wire({})).scheme == "wire/openai.chat"
    assert split_key(wire({}, "prompt_cache_key")).scheme == "wire/openai.chat"


BODY = {
    "messages": [{"id": "1", "content": "a"}, {"id": "2", "content": "b"}],
    "metadata": {"trace": "t", "user": "u"},
    "odd.name": {"x y": 1},
    "tools": [{"name": "a", "p": 1}, {"name": "b", "p": 2}],
}


@pytest.mark.parametrize(
    ("entry", "changed"),
    [
        ("$.messages[*].id", lambda b: b["messages"][1].update(id="9")),
        ("messages[*].id", lambda b: b["messages"][0].pop("id")),
        ("$.messages[0].id", lambda b: b["messages"][0].update(id="9")),
        ("$.messages[0]", lambda b: b["messages"][0].update(content="c")),
        ("metadata.trace", lambda b: b["metadata"].update(trace=None)),
        ("$.metadata", lambda b: b.pop("metadata")),
        ("$.metadata.*", lambda b: b["metadata"].update(user="v", more=1)),
        ("$['odd.name']['x y']", lambda b: b["odd.name"].update({"x y": 2})),
        ("order:tools by name", lambda b: b["tools"].reverse()),
        ("order:$.tools by name", lambda b: b["tools"].reverse()),
    ],
)
def test_a_declared_path_is_left_out_and_nothing_else(entry: str, changed: Any) -> None:
    other = copy.deepcopy(BODY)
    changed(other)
    assert wire(BODY) != wire(other)
    assert wire(BODY, entry) == wire(other, entry)
    before = json.dumps(BODY)
    other["messages"][1]["content"] = "c"
    assert wire(BODY, entry) != wire(other, entry)
    assert json.dumps(BODY) == before, "the request itself is not touched"


def test_one_item_more_is_a_change_though_every_item_is_inert() -> None:
    assert wire({"m": [1]}, "$.m[*]") == wire({"m": [2]}, "$.m[*]") != wire({"m": [1, 2]}, "$.m[*]")


def test_tools_in_the_nested_shape_are_ordered_by_their_name_too() -> None:
    tools = [{"type": "function", "function": {"name": n, "p": p}} for n, p in (("a", 1), ("b", 2), ("b", 1))]
    assert wire({"tools": tools}, "order:tools by name") == wire({"tools": tools[::-1]}, "order:tools by name")


@pytest.mark.parametrize("entry", ["", "$", "a..b", "$.a[", "order:tools", "a[x]"])
def test_what_is_no_path_is_refused(entry: str) -> None:
    with pytest.raises(UsageError, match="no inert path"):
        wire({}, entry)


def test_a_list_names_one_scheme_however_it_was_typed() -> None:
    assert inert_of(["b", "$.a", "$['a']"]).suffix == inert_of(("$.a", "$.b")).suffix == "[$.a, $.b]"


@given(st.lists(st.text(min_size=1, max_size=5) | st.integers(0, 5) | st.none(), min_size=1, max_size=4))
def test_a_path_reads_back_as_it_was_written(path: list[Any]) -> None:
    assume(not any(isinstance(s, str) and ("'" in s and '"' in s) for s in path))
    assert inert_of([path_text(path)]).paths == (tuple(path),)


# --- ids of tool calls ------------------------------------------------------------------------------------------------


def chat(*ids: str) -> dict[str, Any]:
    calls = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": f'{{"n":{n}}}'}} for n, i in enumerate(ids)
    ]
    results = [{"role": "tool", "tool_call_id": i, "content": str(n)} for n, i in enumerate(ids)]
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "call_1"}, {"role": "assistant", "tool_calls": calls}, *results],
    }


def responses(*ids: str) -> dict[str, Any]:
    return {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            *[{"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"} for i in ids],
            *[{"type": "function_call_output", "call_id": i, "output": str(n)} for n, i in enumerate(ids)],
        ]
    }


def anthropic(*ids: str) -> dict[str, Any]:
    return {
        "messages": [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": i, "name": "f", "input": {"id": 7}} for i in ids],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": i, "content": str(n)} for n, i in enumerate(ids)],
            },
        ]
    }


def gemini(*ids: str) -> dict[str, Any]:
    return {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"id": i, "name": "f", "args": {"id": "k"}}} for i in ids]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": i, "response": {"n": n}}} for n, i in enumerate(ids)],
            },
        ]
    }


def converse(*ids: str) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": i, "name": "f", "input": {}}} for i in ids]},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": i, "content": [{"text": str(n)}]}} for n, i in enumerate(ids)],
            },
        ]
    }


@pytest.mark.parametrize("shape", [chat, responses, anthropic, gemini, converse])
def test_a_consistent_renaming_of_call_ids_is_found_by_the_second_look_up(shape: Any) -> None:
    a, b = shape("call_1", "call_2"), shape("x9", "x8")
    assert wire(a) != wire(b)
    assert alias(a) == alias(b)
    assert alias(a) == alias(shape("call_2", "call_1")), "the names themselves say nothing"
    swapped = json.loads(json.dumps(shape("call_1", "call_2")).replace("call_2", "?").replace("call_1", "call_2", 1))
    assert alias(a) != alias(swapped), "a result that belongs to another call is another request"
    assert alias(a) != alias(shape("call_1", "call_1")), "two calls are not one"
    assert json.loads(json.dumps(a)) == shape("call_1", "call_2"), "the request itself is not touched"


def test_only_ids_are_renamed() -> None:
    assert alias(chat("call_1")) != alias({**chat("call_1"), "model": "n"})
    named_alike = chat("call_1")
    named_alike["messages"][0]["content"] = "call_9"
    assert alias(chat("call_1")) != alias(named_alike)
    one, two = anthropic("a"), anthropic("a")
    two["messages"][0]["content"][0]["input"]["id"] = 8
    assert alias(one) != alias(two)


def test_a_request_without_calls_has_no_second_key() -> None:
    assert alias({"messages": [{"role": "user", "content": "hi"}]}) is None
    assert alias([1, 2]) is None


# --- bodies -----------------------------------------------------------------------------------------------------------


def test_host_and_query_are_not_in_the_key_but_method_and_path_are() -> None:
    keys = {
        wire_key(RING, method, path, {}, api="x")
        for method, path in (("POST", "/a"), ("post", "/a?key=1"), ("GET", "/a"), ("POST", "/b"))
    }
    assert len(keys) == 3


def multipart(boundary: str, *, content: bytes = b"RIFF\r\n--x", name: str = "file") -> tuple[bytes, str]:
    parts = [
        b'content-disposition: form-data; name="model"\r\n\r\nwhisper',
        b'Content-Disposition: form-data; name="%s"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n%s'
        % (name.encode(), content),
    ]
    body = b"".join(b"--%s\r\n%s\r\n" % (boundary.encode(), part) for part in parts) + b"--%s--\r\n" % boundary.encode()
    return body, f'multipart/form-data; boundary="{boundary}"'


def test_multipart_counts_by_its_parts() -> None:
    def key(body: bytes, content_type: str | None) -> str:
        return wire_key(RING, "POST", "/a", body, api="x", content_type=content_type)

    a = key(*multipart("1f"))
    assert a == key(*multipart("b0b0"))
    assert (
        len({a, key(*multipart("1f", content=b"RIFG")), key(*multipart("1f", name="f")), key(multipart("1f")[0], None)})
        == 4
    )


def test_bytes_that_are_no_json_count_as_they_are() -> None:
    assert len({wire(b"\xff\xfe"), wire(b"\xff\xff"), wire(b""), wire(b"null"), wire("\\xff\\xfe")}) == 5


@pytest.mark.parametrize("depth", [150, 199, 200, 201, 205, 2_000, 200_000])
def test_a_text_is_a_value_up_to_one_depth_wherever_it_is_read(depth: int) -> None:
    deep = '{"a":[' * (depth // 2) + "[" * (depth % 2) + "1" + "]" * (depth % 2) + "]}" * (depth // 2)
    value = exactjson.read_text(deep)
    assert isinstance(value, bytes) == (depth > 200)
    if depth > 200:
        assert exactjson._is_deep(deep)
    else:
        assert not exactjson._is_deep(deep)
