"""Each rule has a page: its example fires the rule, the mended one does not, and the list of pages is that of the rules."""

from __future__ import annotations

import re
import runpy
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.support import run

from foreword.explain.lint import RULES, Finding, Rule, lint

PAGES = Path(__file__).parents[3] / "docs" / "reference" / "lint"
HEADINGS = ["Why", "Found in", "Mended"]


@dataclass(frozen=True)
class Page:
    """A page, taken apart."""

    title: str
    text: str
    headings: list[str]
    found_in: str
    mended: str

    @classmethod
    def of(cls, rule: Rule) -> Page:
        text = (PAGES / f"{rule.code}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert len(blocks) == 2, f"{rule.code}.md has {len(blocks)} Python blocks"
        return cls(text.partition("\n")[0], text, re.findall(r"^## (.*)$", text, re.MULTILINE), *blocks)


def findings_of(code: str, folder: Path, *, deep: bool = False) -> list[str]:
    """The codes of what is found in a page's example, which stands in a file as a user's would."""
    file = folder / "page.py"
    file.write_text(code, encoding="utf-8")
    if deep:
        return re.findall(r"FW\d+", run("lint", f"{file}:prompt", "--deep", "--json", folder=folder).out)
    made = runpy.run_path(str(file))
    findings: list[Finding] = made["findings"] if "findings" in made else lint(made["prompt"])
    return [finding.code for finding in findings]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_page_says_what_the_rule_says(rule: Rule) -> None:
    """The page bears code and name, tells summary and severity, and has its parts in their order."""
    page = Page.of(rule)
    assert page.title == f"# {rule.code} {rule.name}"
    assert page.headings == HEADINGS
    assert f"\n{rule.summary[0].upper()}{rule.summary[1:]}. Severity: {rule.severity}.\n" in page.text


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.code != "FW105"], ids=lambda rule: rule.code)
def test_the_example_fires_and_its_fix_silences(rule: Rule, tmp_path: Path) -> None:
    """What the page shows is found, and once it is mended as the page says, nothing at all is."""
    page = Page.of(rule)
    assert rule.code in findings_of(page.found_in, tmp_path)
    assert findings_of(page.mended, tmp_path) == []


@pytest.mark.slow
def test_the_example_of_processes(tmp_path: Path) -> None:
    """The same for the rule that compares processes, through the command."""
    page = Page.of(next(rule for rule in RULES if rule.code == "FW105"))
    assert findings_of(page.found_in, tmp_path, deep=True) == ["FW105"]
    assert findings_of(page.mended, tmp_path, deep=True) == []


def test_the_list_is_that_of_the_rules() -> None:
    """The index is what the command makes of the rules, and there is no page without a rule."""
    assert (PAGES / "index.md").read_text(encoding="utf-8") == run("lint", "--list", "--markdown").out
    assert {path.stem for path in PAGES.glob("*.md")} == {"index", *(rule.code for rule in RULES)}
