"""Event-sourced chat sessions: the log is the conversation, and what a model is given is a projection of it."""
