"""Proofs over a journal: what the chain shows, and what it does not."""
