"""An agent of Pydantic AI, not changed for being resumed."""

import trip
from pydantic_ai import Agent

agent = Agent(f"openai-chat:{trip.MODEL}", name="trip planner", tools=list(trip.TOOLS.values()))
print(agent.run_sync(trip.QUESTION).output)
