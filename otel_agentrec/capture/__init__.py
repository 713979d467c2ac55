"""Capture: spans, span events and log records of any framework become journal events."""
