"""An agent of LangChain on LangGraph, not changed for being resumed."""

import trip
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

agent = create_agent(ChatOpenAI(model=trip.MODEL), tools=list(trip.TOOLS.values()), name="trip planner")
print(agent.invoke({"messages": [{"role": "user", "content": trip.QUESTION}]})["messages"][-1].content)
