"""The one gate for secrets: credentials are taken out of every value before a byte of it is hashed, written or handed on.

``Redactor`` is the gate; ``names`` and ``shapes`` say what a credential is; ``structure``, ``embedded`` and ``assignments`` find
them in values, in JSON text and in other text; ``gate`` tells in a few microseconds that there are none; ``marker`` is what
stands in their place; ``patterns`` and ``paths`` are rules that the user asks for.
"""

from otel_agentrec.redaction.marker import holds_marker, is_marker
from otel_agentrec.redaction.redactor import Redactor, whole_record

__all__ = ["Redactor", "holds_marker", "is_marker", "whole_record"]
