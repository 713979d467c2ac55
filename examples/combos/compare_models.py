"""Put one recorded prompt to two models: capture + ``compare_live`` (one model: ``replay_model_live``). No tool runs."""

from openai import OpenAI
from planner import FOLDER, Tools, plan, scene

from otel_agentrec import InMemoryIoCaptureSink, NodeReplayer, NodeType, OpenAIChatClient
from otel_agentrec.demo.script import Turn
from otel_agentrec.demo.server import ScriptedServer

OTHER = "Stay at home: rain from 15:00, and the last train leaves before it ends."

sink = InMemoryIoCaptureSink()
FOLDER.mkdir(parents=True, exist_ok=True)
with ScriptedServer([*scene.SCRIPT, Turn(scene.ANSWER)]) as one, ScriptedServer([Turn(OTHER, times=0)]) as other:
    a = OpenAIChatClient(OpenAI(base_url=one.base_url, api_key="none"))
    b = OpenAIChatClient(OpenAI(base_url=other.base_url, api_key="none"))
    plan(a, Tools(FOLDER / "effects.txt"), listeners=[sink])

    *_, last = sink.records(NodeType.MODEL)
    compared = NodeReplayer().compare_live(last, {"a": a, "b": b})
    for trial in compared.trials:
        same = "as recorded" if compared.same_as_recorded(trial) else "differs"
        print(f"{trial.client}  {trial.seconds * 1000:4.0f} ms  {same:12} {trial.result.output_text}")

    asked = [request.body["messages"] for request in (one.requests[-1], other.requests[-1])]
    assert asked[0] == asked[1] == one.requests[1].body["messages"], "both were asked what the agent had asked"
assert [compared.same_as_recorded(trial) for trial in compared.trials] == [True, False]
assert (FOLDER / "effects.txt").read_text().split() == ["weather", "last_train"], "no tool ran for the comparison"
