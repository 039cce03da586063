"""Replay recorded prompt-assembly scenarios against the public API, and tell where the answers differ.

    python -m foreword.testing.conformance [--driver standalone|kernel] [--door sync|async] FILE...

A file holds one JSON object a line: a scenario with an ``id``, perhaps ``about`` and ``config``, its ``steps``, and
``expect``, one recorded answer per step. A step's kind is in ``op``; ``in`` names the place it happens in (a scope, a
plugin, or the root when absent), ``as`` what later steps call that which it made. An answer is null, a number, an
assembly, or ``{"error": kind}``; a configuration that does not load has the one answer ``{"mount": {"error": kind}}``.

The command prints each mismatch and a last line ``N passed, M failed``. It exits with 0 when there are no mismatches,
1 when there are some, and 2, with one sentence on standard error, when a file cannot be read as scenarios.

Reads in this order: `scenario` (files and fields), `drivers` (a prompt standing alone, or in a kernel), `registering`
and `listening` (what a step does), `replay`, `comparison`, `command`.
"""

from foreword.testing.conformance.command import main
from foreword.testing.conformance.comparison import Mismatch, mismatches
from foreword.testing.conformance.drivers import Driver, Kernel, Place, Standalone
from foreword.testing.conformance.registering import WHO
from foreword.testing.conformance.replay import Door, run
from foreword.testing.conformance.scenario import Answer, Scenario, ScenarioError, load

__all__ = [
    "WHO",
    "Answer",
    "Door",
    "Driver",
    "Kernel",
    "Mismatch",
    "Place",
    "Scenario",
    "ScenarioError",
    "Standalone",
    "load",
    "main",
    "mismatches",
    "run",
]
