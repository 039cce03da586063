"""Print the digest that a whole environment bears: what it was made from, and that it is all still there.

Run by the environment's own Python, so that a dead one has no digest.
"""

import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

INPUTS = ("pyproject.toml", "requirements/dev.txt", "requirements/uv.txt", "scripts/env.sh", "scripts/stamp.py")


def parts() -> Iterator[str]:
    yield str(Path.cwd())  # console scripts and the editable install hold absolute paths
    yield sys.version
    yield sys.base_prefix
    for name in INPUTS:
        yield Path(name).read_text(encoding="utf-8")
    # Names only: enough to notice what was installed, removed or broken off by hand, and cheap.
    for folder in (sysconfig.get_path("scripts"), sysconfig.get_path("purelib")):
        yield from sorted(entry.name for entry in Path(folder).iterdir() if entry.name != "__pycache__")


digest = hashlib.sha256()
for part in parts():
    digest.update(part.encode() + b"\0")
print(digest.hexdigest())
