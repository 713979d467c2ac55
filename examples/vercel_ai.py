"""An agent in another language: Node with the Vercel AI SDK (``vercel_ai.mjs``) sends OTLP to ``otel-agentrec serve``."""

import os
import re
import shutil
import subprocess
import sys

import environments
import scene

SERVE = [sys.executable, "-m", "otel_agentrec", "serve", "--port", "0", "--no-grpc", "--out", str(scene.recording())]

packages = environments.node()
shutil.copy(environments.HERE / "vercel_ai.mjs", packages)  # Node looks for packages beside the program
with subprocess.Popen(SERVE, stderr=subprocess.PIPE, text=True) as receiver, scene.model():
    try:
        address = re.search(r"http://\S+:\d+", receiver.stderr.readline())[0]
        told = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "EXAMPLE_MODEL": scene.MODEL,
            "EXAMPLE_QUESTION": scene.QUESTION,
        }
        subprocess.run(["node", "vercel_ai.mjs"], cwd=packages, env={**os.environ, **told}, check=True, timeout=60)
    finally:
        receiver.terminate()
scene.show()
