"""Two models on recorded prompts: an agent is recorded once, then each of its model calls is put to both of them.

Live in earnest: ``compare`` makes real calls. Here a scripted model answers, one of them in other words.
"""

import os
import sys

import openai
import scene

import otel_agentrec
from otel_agentrec.cli.app import run as otel_agentrec_command
from otel_agentrec.demo.script import Call, Turn, When
from otel_agentrec.demo.server import ScriptedServer

with otel_agentrec.configure(path=scene.recording(), wire=True), scene.model(), otel_agentrec.agent_run("trip planner"):
    print(scene.chat(openai.OpenAI(), lambda name, arguments, _: scene.TOOLS[name](**arguments)))

OTHER = [Call("weather", {"place": "Finse"}), Call("last_train", {"start": "Finse", "to": "Bergen"})]
WORDS = "Go, but start late: light rain from 15:00. Your last train leaves at 21:42."
SCRIPT = [
    Turn(tool_calls=OTHER, when=When(model="small", step=1), times=0),
    Turn(WORDS, when=When(model="small"), times=0),
    Turn(tool_calls=scene.CALLS, when=When(step=1), times=0),
    Turn(scene.ANSWER, times=0),
]
with ScriptedServer(SCRIPT) as server:
    os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = server.base_url, "none"
    models = ["--model", "a=large", "--model", "b=small"]
    sys.exit(otel_agentrec_command(["compare", str(scene.recording()), *models, "--repeats", "2", "--yes"]))
