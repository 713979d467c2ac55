"""Out: recorded steps as spans for the systems where people already look, with stamps that lead back to the journal. And back:
what those systems kept is verified, and held against the recording (:mod:`~otel_agentrec.export.kept`)."""
