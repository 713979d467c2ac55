"""Out: recorded steps as spans for the systems where people already look, with stamps that lead back to the journal."""
