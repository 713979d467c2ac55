"""The demo, and the scripted model server that it and the tests talk to. Nothing here needs a key or a network."""
