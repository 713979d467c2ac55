"""An agent of Pydantic AI; the framework makes its spans itself, content included."""

import scene
from pydantic_ai import Agent

with scene.recorded(), scene.model():
    Agent.instrument_all()
    agent = Agent(f"openai-chat:{scene.MODEL}", name="trip planner", tools=[scene.weather, scene.last_train])
    with agent.run_stream_sync(scene.QUESTION) as result:
        print("".join(result.stream_text(delta=True)))
