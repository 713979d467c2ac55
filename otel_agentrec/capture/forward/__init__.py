"""Out, while the program runs: spans with their stamps, events as log records, checkpoints. Nothing here may hold up the agent.

``outlets`` holds all ways out of one recorder. Spans: ``sealed`` remembers which event each became; ``forwarder`` hands a copy of
each to the user's processors (``stamped``, its secrets taken out by ``cleaned``), and a span that says how far the stream has
come (``checkpoints``); ``spanexporter`` stamps those that come through an exporter. Events: ``events`` sends the lines of the
journal as ``eventrecords``. Both, and ``otel-agentrec export``, send in batches that receivers take (``sending``) through OTel's
``exporters``; what is too large even alone goes without its large values (``referring``).
"""
