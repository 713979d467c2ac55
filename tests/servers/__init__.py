"""Servers of tests marked ``servers``: each starts its own on loopback and stops it at the end."""
