"""Deployments: a file says which plugins contribute to a prompt, and has the last word on it.

    async with open_deployment("foreword.yaml") as app:
        print((await app.prompt.render()).text)

`read_deployment` checks a file without running anything; `open_deployment` runs it. What was not named must be trusted.
"""

from foreword.compose.deployment import (
    AgentEntry,
    Deployment,
    LintSettings,
    LogSettings,
    PluginEntry,
    SectionChange,
    Setting,
)
from foreword.compose.discovery import Discovered, discover
from foreword.compose.loading import App, PluginStatus, open_deployment
from foreword.compose.reading import read_deployment
from foreword.compose.schema import schema
from foreword.compose.trust import TrustEntry, TrustStore, find_deployment
from foreword.errors import DeploymentError, Fault, TrustStoreError, UntrustedFileError

__all__ = [
    "AgentEntry",
    "App",
    "Deployment",
    "DeploymentError",
    "Discovered",
    "Fault",
    "LintSettings",
    "LogSettings",
    "PluginEntry",
    "PluginStatus",
    "SectionChange",
    "Setting",
    "TrustEntry",
    "TrustStore",
    "TrustStoreError",
    "UntrustedFileError",
    "discover",
    "find_deployment",
    "open_deployment",
    "read_deployment",
    "schema",
]
