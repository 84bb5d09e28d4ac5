"""A diagnosis app on top of harness, ledger and viewer: it asks a model about the machine it runs on."""

import os

# Before anything imports langgraph: nothing about a run leaves this machine but through the configured model.
os.environ["LANGSMITH_TRACING"] = "false"
