"""An agent of LangChain, which runs on LangGraph, instrumented by OpenInference."""

import scene
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor

with scene.recorded(), scene.model():
    LangChainInstrumentor().instrument()
    agent = create_agent(
        ChatOpenAI(model=scene.MODEL, stream_usage=True), tools=list(scene.TOOLS.values()), name="trip planner"
    )
    asked = {"messages": [{"role": "user", "content": scene.QUESTION}]}
    for piece, _ in agent.stream(asked, stream_mode="messages"):
        if piece.type == "AIMessageChunk":
            print(piece.content, end="")
    print()
