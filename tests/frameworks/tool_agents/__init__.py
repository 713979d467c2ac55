"""Agents of real frameworks that use two tools, and what runs them twice: once for real, once answered from a file."""
