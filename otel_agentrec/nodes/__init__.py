"""The one fold: events to runs, steps and node records; sinks; readers."""
