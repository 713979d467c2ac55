"""Ready model clients over the SDK client that a program already has: OpenAI's chat completions, Responses, Anthropic.

They translate and nothing else: a prompt into the provider's request, its answer or stream into a result. No span comes
from here: an instrumentation of the SDK, ``agent_run`` or the HTTP transport records the call, each call once.
"""
