"""SDKs of model providers against a server that keeps the exact bytes it sent."""
