"""Going on after a crash: what was done before is answered from the record (docs/resume.md)."""
