"""An agent of the OpenAI Agents SDK (responses API), not changed for being resumed."""

import trip
from agents import Agent, Runner, function_tool

agent = Agent(name="trip planner", model=trip.MODEL, tools=[function_tool(tool) for tool in trip.TOOLS.values()])
print(Runner.run_sync(agent, trip.QUESTION).final_output)
