"""The public test kit: what a plugin's tests, or another kernel's, need to check themselves against Foreword.

* `foreword.testing.conformance` replays recorded assemblies and tells where the answers differ.

Nothing is imported here: take what you need from its module.
"""

__all__: list[str] = []
