"""The journal: canonical bytes, typed events, the chain, content cells, writer and reader. All else is a projection of it."""
