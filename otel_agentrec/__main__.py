"""``python -m otel_agentrec``: the same as the command ``otel-agentrec``."""

from otel_agentrec.cli import main

if __name__ == "__main__":
    main()
