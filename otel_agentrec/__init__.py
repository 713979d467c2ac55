"""otel-agentrec: a flight recorder for AI agents, built on OpenTelemetry.

The public face: it defines nothing. Each name is loaded from its room when it is first used, so that importing the
package costs nothing and needs none of its dependencies.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otel_agentrec import errors as errors
    from otel_agentrec._version import __version__
    from otel_agentrec.audit.report import VerifyReport
    from otel_agentrec.capture.emit import agent_run
    from otel_agentrec.capture.ingest import IngestReport, ingest
    from otel_agentrec.capture.recorder import Recorder
    from otel_agentrec.clients.ready import (
        AnthropicClient,
        AsyncAnthropicClient,
        AsyncOpenAIChatClient,
        AsyncOpenAIResponsesClient,
        OpenAIChatClient,
        OpenAIResponsesClient,
    )
    from otel_agentrec.errors import (
        AgentRecError,
        AnswerUnavailable,
        CannotReplay,
        ConfigurationError,
        EventInvalid,
        ExtraMissing,
        LedgerUnavailable,
        ProcessNotResumed,
        RecordedError,
        RecordingBusy,
        RecordingEnds,
        RecordingNotFound,
        RecordingTampered,
        RecordingUnreadable,
        ReplayDivergence,
        ResumeDivergence,
        RunStopped,
        StoreUnavailable,
        ToolNotIntercepted,
        UnknownOutcomeError,
        UsageError,
    )
    from otel_agentrec.export.kept.verify import verify
    from otel_agentrec.intercept.transports import AgentRecTransport, AsyncAgentRecTransport
    from otel_agentrec.intercept.unknown import Outcome, UnknownEffect
    from otel_agentrec.journal.chain import ChainVerification, HashChainedEventLog, InMemoryEventLog, Link
    from otel_agentrec.journal.draft import NewEvent
    from otel_agentrec.journal.memory import InMemoryEventStore
    from otel_agentrec.journal.reader import Recording, read_events
    from otel_agentrec.journal.sqlstore import SqlEventStore
    from otel_agentrec.journal.store import EventStore, FileEventStore, SequenceConflict
    from otel_agentrec.nodes.read import read_nodes
    from otel_agentrec.nodes.sinks import InMemoryIoCaptureSink, JsonlIoCaptureSink
    from otel_agentrec.otel.exporters import AgentRecSpanExporter, RecordingLogExporter, RecordingSpanExporter
    from otel_agentrec.otel.recording import AgentRecLogProcessor, AgentRecSpanProcessor, configure
    from otel_agentrec.prompts import (
        AgentModelChunk,
        AgentModelResult,
        AgentPrompt,
        AgentToolCall,
        AgentToolResult,
        AsyncModelClient,
        AsyncToolExecutor,
        ModelClient,
        ModelStreamListener,
        ToolExecutor,
    )
    from otel_agentrec.records import IoCaptureSink, NodeIoRecord, NodeType
    from otel_agentrec.redaction import Redactor, whole_record
    from otel_agentrec.replay.node import NodeReplayer
    from otel_agentrec.replay.report import ReplayReport
    from otel_agentrec.replay.whole import replaying
    from otel_agentrec.resume.cache import ResumeCache
    from otel_agentrec.resume.clients import (
        AsyncResumableModelClient,
        AsyncResumableToolExecutor,
        ResumableModelClient,
        ResumableToolExecutor,
    )
    from otel_agentrec.resume.tools import resumable_tool
    from otel_agentrec.session.agent import AGENT, AgentSession
    from otel_agentrec.session.log import SessionLog
    from otel_agentrec.session.policy import CONVERSATION, Policy, of_lane, with_compaction, with_tools
    from otel_agentrec.session.snapshot import AgentSessionSnapshot
    from otel_agentrec.session.sqlstore import SqlAgentSessionStore
    from otel_agentrec.session.stores import AgentSessionStore, FileAgentSessionStore

_ROOMS = {
    "_version": ["__version__"],
    "audit.report": ["VerifyReport"],
    "capture.emit": ["agent_run"],
    "capture.ingest": ["IngestReport", "ingest"],
    "clients.ready": [
        "AnthropicClient",
        "AsyncAnthropicClient",
        "AsyncOpenAIChatClient",
        "AsyncOpenAIResponsesClient",
        "OpenAIChatClient",
        "OpenAIResponsesClient",
    ],
    "errors": [
        "AgentRecError",
        "AnswerUnavailable",
        "CannotReplay",
        "ConfigurationError",
        "EventInvalid",
        "ExtraMissing",
        "LedgerUnavailable",
        "ProcessNotResumed",
        "RecordedError",
        "RecordingBusy",
        "RecordingEnds",
        "RecordingNotFound",
        "RecordingTampered",
        "RecordingUnreadable",
        "ReplayDivergence",
        "ResumeDivergence",
        "RunStopped",
        "StoreUnavailable",
        "ToolNotIntercepted",
        "UnknownOutcomeError",
        "UsageError",
    ],
    "export.kept.verify": ["verify"],
    "journal.chain": ["ChainVerification", "HashChainedEventLog", "InMemoryEventLog", "Link"],
    "journal.draft": ["NewEvent"],
    "journal.memory": ["InMemoryEventStore"],
    "journal.reader": ["Recording", "read_events"],
    "capture.recorder": ["Recorder"],
    "intercept.transports": ["AgentRecTransport", "AsyncAgentRecTransport"],
    "intercept.unknown": ["Outcome", "UnknownEffect"],
    "nodes.read": ["read_nodes"],
    "nodes.sinks": ["InMemoryIoCaptureSink", "JsonlIoCaptureSink"],
    "otel.exporters": ["AgentRecSpanExporter", "RecordingLogExporter", "RecordingSpanExporter"],
    "otel.recording": ["AgentRecLogProcessor", "AgentRecSpanProcessor", "configure"],
    "prompts": [
        "AgentModelChunk",
        "AgentModelResult",
        "AgentPrompt",
        "AgentToolCall",
        "AgentToolResult",
        "AsyncModelClient",
        "AsyncToolExecutor",
        "ModelClient",
        "ModelStreamListener",
        "ToolExecutor",
    ],
    "records": ["IoCaptureSink", "NodeIoRecord", "NodeType"],
    "redaction": ["Redactor", "whole_record"],
    "replay.node": ["NodeReplayer"],
    "replay.report": ["ReplayReport"],
    "replay.whole": ["replaying"],
    "resume.cache": ["ResumeCache"],
    "resume.tools": ["resumable_tool"],
    "session.agent": ["AGENT", "AgentSession"],
    "session.log": ["SessionLog"],
    "session.policy": ["CONVERSATION", "Policy", "of_lane", "with_compaction", "with_tools"],
    "session.snapshot": ["AgentSessionSnapshot"],
    "session.sqlstore": ["SqlAgentSessionStore"],
    "session.stores": ["AgentSessionStore", "FileAgentSessionStore"],
    "journal.sqlstore": ["SqlEventStore"],
    "journal.store": ["EventStore", "FileEventStore", "SequenceConflict"],
    "resume.clients": [
        "AsyncResumableModelClient",
        "AsyncResumableToolExecutor",
        "ResumableModelClient",
        "ResumableToolExecutor",
    ],
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "AGENT",
    "CONVERSATION",
    "AgentModelChunk",
    "AgentModelResult",
    "AgentPrompt",
    "AgentRecError",
    "AgentRecLogProcessor",
    "AgentRecSpanExporter",
    "AgentRecSpanProcessor",
    "AgentRecTransport",
    "AgentSession",
    "AgentSessionSnapshot",
    "AgentSessionStore",
    "AgentToolCall",
    "AgentToolResult",
    "AnswerUnavailable",
    "AnthropicClient",
    "AsyncAgentRecTransport",
    "AsyncAnthropicClient",
    "AsyncModelClient",
    "AsyncOpenAIChatClient",
    "AsyncOpenAIResponsesClient",
    "AsyncResumableModelClient",
    "AsyncResumableToolExecutor",
    "AsyncToolExecutor",
    "CannotReplay",
    "ChainVerification",
    "ConfigurationError",
    "EventInvalid",
    "EventStore",
    "ExtraMissing",
    "FileAgentSessionStore",
    "FileEventStore",
    "HashChainedEventLog",
    "InMemoryEventLog",
    "InMemoryEventStore",
    "InMemoryIoCaptureSink",
    "IngestReport",
    "IoCaptureSink",
    "JsonlIoCaptureSink",
    "LedgerUnavailable",
    "Link",
    "ModelClient",
    "ModelStreamListener",
    "NewEvent",
    "NodeIoRecord",
    "NodeReplayer",
    "NodeType",
    "OpenAIChatClient",
    "OpenAIResponsesClient",
    "Outcome",
    "Policy",
    "ProcessNotResumed",
    "RecordedError",
    "Recorder",
    "Recording",
    "RecordingBusy",
    "RecordingEnds",
    "RecordingLogExporter",
    "RecordingNotFound",
    "RecordingSpanExporter",
    "RecordingTampered",
    "RecordingUnreadable",
    "Redactor",
    "ReplayDivergence",
    "ReplayReport",
    "ResumableModelClient",
    "ResumableToolExecutor",
    "ResumeCache",
    "ResumeDivergence",
    "RunStopped",
    "SequenceConflict",
    "SessionLog",
    "SqlAgentSessionStore",
    "SqlEventStore",
    "StoreUnavailable",
    "ToolExecutor",
    "ToolNotIntercepted",
    "UnknownEffect",
    "UnknownOutcomeError",
    "UsageError",
    "VerifyReport",
    "__version__",
    "agent_run",
    "configure",
    "ingest",
    "of_lane",
    "read_events",
    "read_nodes",
    "replaying",
    "resumable_tool",
    "verify",
    "whole_record",
    "with_compaction",
    "with_tools",
]


def __getattr__(name: str) -> Any:
    if name == "errors":  # so that `otel_agentrec.errors.X` needs no import of its own
        return import_module(f"{__name__}.errors")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
