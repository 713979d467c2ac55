"""Tool calls of agent frameworks, intercepted on their way into the tool: one adapter per framework."""
