"""The public test kit: what a plugin's tests, or another kernel's, need to check themselves against Foreword.

* `mount` loads one plugin in a kernel of its own, and sees that nothing of it is left when it goes.
* `MemoryStore` keeps sessions in memory, by the rules of the real stores.
* `ScriptedModel` answers by script, and keeps what it was asked: agents run without a key and without a network.
* `offline_client` stands in for a provider below a vendor's SDK, for agents of other frameworks.
* `assert_stable_prefix` sees that a prompt begins alike in every step.
* `foreword.testing.pytest_plugin` keeps prompts in files that a review can read; pytest loads it by itself.
* `foreword.testing.conformance` replays recorded assemblies and tells where the answers differ.

Loaded when first used, and but for that plugin it needs no test framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.testing.memory_store import MemoryStore as MemoryStore
    from foreword.testing.mounting import Mounted as Mounted
    from foreword.testing.mounting import mount as mount
    from foreword.testing.offline import offline_client as offline_client
    from foreword.testing.scripted_model import Gate as Gate
    from foreword.testing.scripted_model import Reply as Reply
    from foreword.testing.scripted_model import ScriptedModel as ScriptedModel
    from foreword.testing.scripted_model import call_tools as call_tools
    from foreword.testing.stable_prefix import assert_stable_prefix as assert_stable_prefix

__all__ = [
    "Gate",
    "MemoryStore",
    "Mounted",
    "Reply",
    "ScriptedModel",
    "assert_stable_prefix",
    "call_tools",
    "mount",
    "offline_client",
]

_HOMES = {
    "foreword.testing.memory_store": ("MemoryStore",),
    "foreword.testing.mounting": ("Mounted", "mount"),
    "foreword.testing.offline": ("offline_client",),
    "foreword.testing.scripted_model": ("Gate", "Reply", "ScriptedModel", "call_tools"),
    "foreword.testing.stable_prefix": ("assert_stable_prefix",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
