"""Out, while the program runs: spans with their stamps, events as log records, checkpoints. Nothing here may hold up the agent."""
