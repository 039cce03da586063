"""What contributions stand on: owners, undo, scopes and layers. Knows nothing of prompts."""

from foreword.kernel.effects import Owner, Registration
from foreword.kernel.scope import GLOBAL, ParentBinding, ScopeKey, bind_parent

__all__ = ["GLOBAL", "Owner", "ParentBinding", "Registration", "ScopeKey", "bind_parent"]
