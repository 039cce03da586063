"""The JSON Schema of a deployment file, for editors. Made from the very shapes that check it."""

from __future__ import annotations

from typing import Any

from foreword.compose.shape import THE_FILE

__all__ = ["schema"]


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a deployment file; what plugins take as config is theirs, and open in it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Foreword deployment",
        "description": "Which plugins contribute to a system prompt, and what the deployment says about it itself.",
        **THE_FILE.schema(),
    }
