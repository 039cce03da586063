"""Models: who can be asked, by the name of the provider, and the adapters that ask.

    adapters = ModelAdapters(OpenAIAdapter())
    adapters.get("openai")              # for ModelConfig.parse("openai:gpt-5")

An adapter that ships is imported from its own module (`foreword.agent.models.openai`), which loads its vendor's SDK.
"""

from foreword.agent.models.adapter import (
    Chunk,
    Finish,
    FinishKind,
    ModelAdapter,
    ModelFailure,
    TextChunk,
    ToolCallChunk,
    Usage,
)
from foreword.agent.models.registry import ModelAdapters

__all__ = [
    "Chunk",
    "Finish",
    "FinishKind",
    "ModelAdapter",
    "ModelAdapters",
    "ModelFailure",
    "TextChunk",
    "ToolCallChunk",
    "Usage",
]
