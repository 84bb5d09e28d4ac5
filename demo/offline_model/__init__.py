"""An honest stand-in for a language model: rules behind an OpenAI-compatible HTTP endpoint, on this machine alone."""

from demo.offline_model.server import create_offline_model
from demo.offline_model.wire import MODEL_NAME

__all__ = ["MODEL_NAME", "create_offline_model"]
