"""Show that a record was not changed: ``HashChainedEventLog`` as a listener + ``verify_chain``."""

from openai import OpenAI
from planner import FOLDER, Tools, plan, scene

from otel_agentrec import HashChainedEventLog, OpenAIChatClient

audit = HashChainedEventLog()
FOLDER.mkdir(parents=True, exist_ok=True)
with scene.model():
    plan(OpenAIChatClient(OpenAI()), Tools(FOLDER / "effects.txt"), listeners=[audit])

print(f"{audit.sequence} events; head {audit.links[-1].hash}")  # keep the head elsewhere: it stands for all of them
before = audit.verify_chain()
print(f"as it was:   {before}")

audit.tamper_event(4, {"type": "TOOL_RESULT", "message": "light sunshine from 15:00"})
after = audit.verify_chain()
print(f"one changed: {after}")

assert (before.is_valid, before.first_broken_index) == (True, -1)
assert (after.is_valid, after.first_broken_index) == (False, 4)
