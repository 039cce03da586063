"""Where values come from: `effective`, `origin_of`, `source_of`."""

from __future__ import annotations

import pytest
from tests.compose.support import Folder

from foreword.compose import Setting, schema

TEXT = """
system_prompt: {persona: {file: a/p.md}, limits: {text: 100}}
variables:
  company: "Acme"
plugins:
  - id: billing
    use: acme-billing
    config:
      all: [1, "${env:KEY}"]
      none: {}
sections:
  "growth:upsell": {enabled: false}
agents: {support: }
"""


def test_effective_in_yaml(folder: Folder) -> None:
    """Every value of the file is listed with its line, then the defaults where the file is silent."""
    folder.write("a/p.md", "x")
    deployment = folder.read(TEXT, environment={"KEY": "sk-1234"})
    name = str(folder.path / "foreword.yaml")
    expected = [
        ("foreword", "1", 1),
        ("system_prompt.persona.file", '"a/p.md"', 2),
        ("system_prompt.limits.text", "100", 2),
        ("variables.company", '"Acme"', 4),
        ("plugins[0].id", '"billing"', 6),
        ("plugins[0].use", '"acme-billing"', 7),
        ("plugins[0].config.all[0]", "1", 9),
        ("plugins[0].config.all[1]", "${env:KEY} (set)", 9),
        ("plugins[0].config.none", "{}", 10),
        ("sections.growth:upsell.enabled", "false", 12),
        ("agents.support", "null", 13),
    ]
    settings = deployment.effective({"KEY": "x"})
    written, defaults = settings[: len(expected)], settings[len(expected) :]
    assert written == [Setting(path, shown, f"{name}:{line}") for path, shown, line in expected]
    assert {each.where for each in defaults} == {"default"}
    assert {each.path: each.shown_value for each in defaults} == {
        "system_prompt.identity": "null",
        "system_prompt.include_harness_identity": "null",
        "system_prompt.include_runtime_context": "true",
        "system_prompt.tool_order": "null",
        "system_prompt.section_ties": '"registration"',
        "system_prompt.limits.value": "4194304",
        "system_prompt.limits.rendered": "16777216",
        "log.store": '"sqlite:foreword.db"',
    }


def test_effective_in_toml(folder: Folder) -> None:
    """TOML's reader keeps no lines: values come from the file."""
    deployment = folder.read("[variables]\ncompany = 'Acme'\n", "foreword.toml")
    assert Setting("variables.company", '"Acme"', str(folder.path / "foreword.toml")) in deployment.effective({})


def test_other_spellings_are_no_defaults(folder: Folder) -> None:
    """A field in the seeds' spelling is not listed as a default as well."""
    paths = [each.path for each in folder.read("system_prompt: {includeRuntimeContext: false}").effective({})]
    assert "system_prompt.includeRuntimeContext" in paths
    assert "system_prompt.include_runtime_context" not in paths


@pytest.mark.parametrize(
    ("path", "line"),
    [("variables.company", 4), (("variables", "company"), 4), ("plugins[0]", 6), (("plugins", 0, "config", "all", 1), 9),
     ("sections.growth:upsell", 12), ("system_prompt.identity", None), ("nothing", None), (("plugins", 7), None)],
)  # fmt: skip
def test_origin_of(folder: Folder, path: str | tuple[str | int, ...], line: int | None) -> None:
    """The origin of a value is file and line, or `default` if it was not written."""
    folder.write("a/p.md", "x")
    origin = folder.read(TEXT, environment={"KEY": "x"}).origin_of(path)
    assert origin == ("default" if line is None else f"{folder.path / 'foreword.yaml'}:{line}")


def test_source_of(folder: Folder) -> None:
    """Traces name the deployment file by its bare name, and a text's file relative to it."""
    folder.write("a/p.md", "x")
    deployment = folder.read(TEXT, environment={"KEY": "x"})
    assert str(deployment.source_of(("variables", "company"))) == "foreword.yaml:4"
    assert str(deployment.source_of(("system_prompt", "persona"))) == "a/p.md:1"
    assert deployment.source_of(("system_prompt", "persona")).is_text


# -- the schema --------------------------------------------------------------------------------------------------------


def properties(schema: dict, *path: str) -> set[str]:  # type: ignore[type-arg]
    for step in path:
        schema = schema[step] if step in schema else schema["anyOf"][0][step]
    return set(schema)


def test_the_schema_has_every_key() -> None:
    """The schema knows the keys of the file, with a description each, and allows no other."""
    made = schema()
    assert properties(made, "properties") == {
        "foreword", "system_prompt", "variables", "plugins", "agents", "sections", "log", "lint"
    }  # fmt: skip
    assert made["required"] == ["foreword"]
    assert made["additionalProperties"] is False
    assert all(each["description"] for each in made["properties"].values())
    plugin = made["properties"]["plugins"]["anyOf"][0]["items"]
    assert set(plugin["properties"]) == {"id", "use", "config", "disabled"}
    assert plugin["required"] == ["id", "use"]
    agent = made["properties"]["agents"]["anyOf"][0]["additionalProperties"]["anyOf"][0]
    assert set(agent["properties"]) == {"model", "persona", "tools", "labels"}
    section = made["properties"]["sections"]["anyOf"][0]["additionalProperties"]
    assert set(section["properties"]) == {"enabled", "order", "text", "file", "why"}


def test_the_schema_is_a_copy() -> None:
    """Whoever changes the schema changes a copy."""
    schema()["properties"].clear()
    assert schema()["properties"]
