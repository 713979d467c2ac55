"""Where a running program can be recorded exactly, and answered: HTTP transports and tool hooks of frameworks."""
