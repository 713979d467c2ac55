"""See one turn of an agent again: capture in memory + ``replay_model_mock``. No file, no second call of the model."""

from openai import OpenAI
from planner import FOLDER, Tools, plan, scene

from otel_agentrec import InMemoryIoCaptureSink, NodeReplayer, NodeType, OpenAIChatClient

sink, replayer = InMemoryIoCaptureSink(), NodeReplayer()
FOLDER.mkdir(parents=True, exist_ok=True)
with scene.model():
    plan(OpenAIChatClient(OpenAI()), Tools(FOLDER / "effects.txt"), listeners=[sink])

# the model is gone: what follows comes from memory
first, last = sink.records(NodeType.MODEL)
again = replayer.replay_model_mock(first)
for call in again.tool_calls:
    print(f"step {first.step}: the model asked for {call.name}({call.parsed})")
for record in sink.records(NodeType.TOOL):
    print(f"step {record.step}: {record.tool_name} gave {replayer.replay_tool_mock(record).output!r}")
print(f"step {last.step}: the model said {replayer.replay_model_mock(last).output_text!r}")

assert [call.name for call in again.tool_calls] == [call.name for call in scene.CALLS]
assert replayer.replay_model_mock(last).output_text == scene.ANSWER
assert (FOLDER / "effects.txt").read_text().split() == ["weather", "last_train"], "replaying runs no tool"
