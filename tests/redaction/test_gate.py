"""The quick look: what it calls clean, no default rule changes."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from otel_agentrec.redaction import Redactor
from otel_agentrec.redaction.credentials import Credentials
from otel_agentrec.redaction.gate import suspicious
from otel_agentrec.redaction.marker import Marker
from otel_agentrec.redaction.names import ENDINGS, QUERY_ENDINGS
from tests.redaction.secrets import SHAPED

NAMES = [name for names in (*ENDINGS.values(), *QUERY_ENDINGS.values()) for name in names]


def spellings(name: str) -> st.SearchStrategy[str]:
    words = name.split("-")
    return st.sampled_from(
        [
            name,
            name.upper(),
            "_".join(words),
            words[0] + "".join(word.title() for word in words[1:]),
            "X-" + "-".join(word.title() for word in words),
            "http.request.header." + "_".join(words),
            "".join(words),
            " ".join(words),
            f"MY_{'_'.join(words).upper()}_2",
        ]
    )


SIGNS = [
    ":",
    "=",
    ": ",
    " = ",
    '": "',
    '":"',
    "': '",
    r"\": \"",
    "=>",
    ":=",
    "%3D",
    " ",
    '", "',
    '"]',
    '":{"',
    "?",
    "&",
    "\n",
    "\\n",
    "%0A",
    "",
]
WORDS = ["x1", "abc", "hunter2", "q=1&", "https://", "a@b.test", "user:pw@", "[[", "[", "]", "{", "}", '"', "'", "\\", "--", "value",
         "name", "key", "Cookie", "Bearer", "basic", "é", "東", "\ud800", "$b64", "%26", "null", "12", ",", "the", "rain"]  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(NAMES).flatmap(spellings),
    st.sampled_from(SIGNS),
    st.sampled_from(WORDS),
    st.sampled_from([*SHAPED.values()]),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(PIECES, TEXTS), inner, max_size=4),
        st.lists(st.tuples(PIECES, inner).map(list), min_size=1, max_size=3),
    ),
    max_leaves=12,
)


def ungated(monkeypatch: pytest.MonkeyPatch) -> Credentials:
    """The default rules without the quick look at each text."""
    monkeypatch.setattr("otel_agentrec.redaction.credentials.suspicious", lambda data: True)
    return Credentials(Marker(b"k" * 32), lambda rule: None)


def test_what_is_called_clean_no_rule_would_change() -> None:
    with pytest.MonkeyPatch.context() as patch:
        rules = ungated(patch)

        @settings(max_examples=400, deadline=None)
        @given(TEXTS)
        def check(text: str) -> None:
            if not suspicious(text.encode("utf-8", "surrogatepass")):
                assert rules.text(text) is text

        check()


def test_what_is_called_clean_as_json_no_rule_would_change() -> None:
    with pytest.MonkeyPatch.context() as patch:
        rules = ungated(patch)

        @settings(max_examples=300, deadline=None)
        @given(VALUES)
        def check(value: object) -> None:
            data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
            if not suspicious(data):
                assert rules.value(value) == value

        check()


@settings(max_examples=300, deadline=None)
@given(TEXTS)
@example("-----BEGIN PRIVATE KEY-----\nMIIE0123456789abcdefABCDEF\n-----END PRIVATE KEY-----api key:api-key")
def test_what_was_redacted_is_not_redacted_again(text: str) -> None:
    once = Redactor(key=b"k").text(text)
    assert Redactor(key=b"k").text(once) == once


CLEAN = [
    "The rain is likely after noon, so a train at nine would be better: platform 3.5 is crowded (see page 4).",
    "max_tokens: 100, input_tokens=7, token_count: 3, total tokens = 12; finish_reason: stop",
    '{"role":"user","parts":[{"type":"text","content":"Wie ist das Wetter? 東京 — it\'s 3:30, a risk-free, disk-based task."}]}',
    "SELECT id FROM authors WHERE keyword = 'x'; monkey: 1, turkey=2, compass: north",
    "def key_points(tokens: int) -> None: return sorted(items, key=len)",
    "see https://example.test/a?x=1 and mail to someone@example.test",
]


@pytest.mark.parametrize("text", CLEAN)
def test_texts_of_every_day_are_clean(text: str) -> None:
    assert Redactor().text(text) is text


def test_the_quick_look_is_not_slower_than_the_text_is_long() -> None:
    random.seed(1)
    for alphabet in (":", "=", "-", ":a", '"', "\\", "[", "k", "ab ", "I", "://a", "%3D", "-----BEGIN ", "--key"):
        suspicious((alphabet * (200_000 // len(alphabet))).encode())
