"""Takes one measure and prints its figures as JSON."""

from __future__ import annotations

import json
import sys
from importlib import import_module

if __name__ == "__main__":
    print(json.dumps(import_module(f"benchmarks.measures.{sys.argv[1]}").measure()))
