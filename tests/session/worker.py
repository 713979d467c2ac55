"""A web worker: reads requests as lines of JSON, answers each with a model call in the conversation, says when it is done."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.session.conversing import Recorded, assistant

program = Recorded(Path(sys.argv[1]))
for line in sys.stdin:
    asked = json.loads(line)
    if not asked:
        break
    program.call(asked["messages"], assistant(asked["reply"]), "shared")
    print("done", flush=True)
program.end()
