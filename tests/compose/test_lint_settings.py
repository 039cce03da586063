"""What a deployment says to `foreword lint`, and loading its plugins the other way round."""

from __future__ import annotations

import pickle

import pytest
from tests.compose.support import Folder, places, text_of

from foreword.compose import LintSettings

LINT = """
lint:
  select: [FW1, FW204]
  ignore:
    FW104: both plugins are ours
    "FW204:a:b": for plugins to come
  section_tokens: 6000
"""
LINT_TOML = """
[lint]
select = ["FW1", "FW204"]
section_tokens = 6000
[lint.ignore]
FW104 = "both plugins are ours"
"FW204:a:b" = "for plugins to come"
"""


@pytest.mark.parametrize(("text", "name"), [(LINT, "foreword.yaml"), (LINT_TOML, "foreword.toml")])
def test_every_key(folder: Folder, text: str, name: str) -> None:
    """Which rules run, what is ignored and why, the budget of a section; from YAML and TOML alike."""
    settings = folder.read(text, name).lint
    assert settings == LintSettings(
        ("FW1", "FW204"), {"FW104": "both plugins are ours", "FW204:a:b": "for plugins to come"}, 6000
    )
    with pytest.raises(TypeError):
        settings.ignore["FW1"] = "x"  # type: ignore[index]
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize("text", ["", "lint:\n", "lint: {}\n"])
def test_nothing_said(folder: Folder, text: str) -> None:
    """Without the key, all rules run, and nothing is ignored."""
    assert folder.read(text).lint == LintSettings()


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        ("lint: [FW1]", "lint", "must be what foreword lint is told, not a list"),
        ("lint: {ignores: {}}", "lint.ignores", 'did you mean "ignore"?'),
        ("lint: {ignore: [FW104]}", "lint.ignore", "must be a mapping of codes and reasons, not a list"),
        ("lint: {ignore: {FW104: }}", "lint.ignore.FW104", "must be the reason why it is ignored, not nothing"),
        ("lint: {ignore: {FW104: ' '}}", "lint.ignore.FW104", "must be the reason why it is ignored"),
        ("lint: {ignore: {tie: meant}}", "lint.ignore.tie", "must be the code of a rule, as in FW104"),
        ("lint: {ignore: {'FW104:': meant}}", "lint.ignore.FW104:", "must be the code of a rule"),
        ("lint: {select: FW1}", "lint.select", "must be a list of codes of rules, not a string"),
        ("lint: {select: [104]}", "lint.select[0]", "must be the code of a rule, or its beginning, as in FW3"),
        ("lint: {select: [FW1234]}", "lint.select[0]", "must be the code of a rule, or its beginning, as in FW3"),
        ("lint: {section_tokens: 0}", "lint.section_tokens", "must be a positive whole number"),
    ],
)
def test_what_does_not_fit(folder: Folder, text: str, path: str, why: str) -> None:
    """Each fault is told with its line and path; an ignore without a reason is one."""
    fault = folder.only_fault(text + "\n")
    assert places([fault]) == [(2, path)]
    assert why in fault.message


def test_faults_are_told_together(folder: Folder) -> None:
    """With those of the rest of the file."""
    faults = folder.read_faults("lint: {select: [x], ignore: {FW1: }}\nvariables: {a: 1}\n")
    assert [fault.path for fault in faults] == ["lint.select[0]", "lint.ignore.FW1", "variables.a"]


@pytest.mark.anyio
async def test_backwards(folder: Folder) -> None:
    """Plugins are loaded from the last to the first, which decides between equal orders; `plugins` keeps the file's."""
    folder.plugins(
        "ties.py",
        """
        from foreword import SystemPrompt

        def one(prompt: SystemPrompt) -> None:
            prompt.section("one", "One.", order=10)

        def two(prompt: SystemPrompt) -> None:
            prompt.section("two", "Two.", order=10)
        """,
    )
    text = """
    system_prompt: {include_harness_identity: false}
    plugins: [{id: a, use: "ties:one"}, {id: b, use: "ties:two"}]
    """
    async with folder.open(text) as app:
        assert await text_of(app) == "One.\n\nTwo."
    async with folder.open(text, backwards=True) as app:
        assert await text_of(app) == "Two.\n\nOne."
        assert [plugin.id for plugin in app.plugins] == ["a", "b"]
