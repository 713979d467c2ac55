"""Going on after a crash: what was done before is answered from the record (design: 4-resume-replay)."""
