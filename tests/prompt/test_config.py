"""The configuration: checked as a whole, every fault told at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from foreword import (
    InvalidConfigError,
    PromptLimits,
    PromptTooLargeError,
    SystemPrompt,
    SystemPromptConfig,
    UnreadableTextError,
)

REST = "<unlisted-tools>"


def faults(**fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidConfigError) as caught:
        SystemPromptConfig(**fields)
    return [(fault.kind, fault.field) for fault in caught.value.faults]


def test_defaults() -> None:
    """Told nothing, a configuration has no identity of its own, an empty persona, and runtime contexts."""
    config = SystemPromptConfig()
    assert config.identity is None
    assert config.include_harness_identity is None
    assert config.include_runtime_context is True
    assert config.persona == ""
    assert config.tool_order is None
    assert config.section_ties == "registration"
    assert config.limits == PromptLimits(4 * 1024 * 1024, 4 * 1024 * 1024, 16 * 1024 * 1024)


def test_the_seeds_names_are_aliases() -> None:
    """The camelCase names of the seeds give the same configuration."""
    aliased = SystemPromptConfig(includeHarnessIdentity=True, includeRuntimeContext=False, toolOrder=["a", REST])
    assert aliased == SystemPromptConfig(
        include_harness_identity=True, include_runtime_context=False, tool_order=["a", REST]
    )
    assert aliased.tool_order == ("a", REST)
    prompt = SystemPrompt(includeHarnessIdentity=True)
    assert prompt.render_sync().text.startswith("You are an AI agent")


@pytest.mark.parametrize(
    ("alias", "name", "value"),
    [
        ("includeHarnessIdentity", "include_harness_identity", True),
        ("includeRuntimeContext", "include_runtime_context", True),
        ("toolOrder", "tool_order", None),
    ],
)
def test_both_spellings_at_once_are_a_fault(alias: str, name: str, value: Any) -> None:
    """A field given in both spellings is a fault, even when both say the same."""
    assert faults(**{alias: value, name: value}) == [("invalid_config", alias)]


def test_an_alias_is_held_to_its_field() -> None:
    """What is wrong with an aliased field is told of the field."""
    assert faults(toolOrder=["a", "a"]) == [("tool_order_duplicate", "tool_order")]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("identity", 5),
        ("identity", Path("identity.md")),
        ("include_harness_identity", "no"),
        ("include_harness_identity", 1),
        ("include_runtime_context", None),
        ("include_runtime_context", 0),
        ("persona", None),
        ("persona", 5),
        ("tool_order", "bash"),
        ("tool_order", [5, REST]),
        ("tool_order", {REST: 1}),
        ("section_ties", "order"),
        ("section_ties", None),
        ("section_ties", []),
        ("limits", None),
        ("limits", 1000),
        ("limits", PromptLimits(text=0)),
        ("limits", PromptLimits(value=-1)),
        ("limits", PromptLimits(rendered="16 MiB")),  # type: ignore[arg-type]
        ("limits", PromptLimits(text=None)),  # type: ignore[arg-type]
        ("limits", PromptLimits(text=0.5)),  # type: ignore[arg-type]
        ("limits", PromptLimits(text=True)),
    ],
    ids=repr,
)
def test_a_field_has_a_type(field: str, value: Any) -> None:
    """Each field is held to what it may be, and the fault names it."""
    assert faults(**{field: value}) == [("invalid_config", field)]


def test_a_misspelt_field_is_told_the_nearest_one() -> None:
    """An unknown field is a fault, not an attribute, and the nearest field is suggested."""
    with pytest.raises(InvalidConfigError, match='personna: is no field; did you mean "persona"'):
        SystemPromptConfig(personna="x")  # type: ignore[call-arg]


def test_all_faults_are_told_at_once() -> None:
    """One error tells every fault, each with its field; its kind is theirs if they agree."""
    with pytest.raises(InvalidConfigError) as caught:
        SystemPrompt(
            identity=5, section_ties="size", tool_order=["a", "b", "a"], includeRuntimeContext=True,
            include_runtime_context=True, colour="red",
        )  # type: ignore[call-arg, arg-type]  # fmt: skip
    error = caught.value
    fields = {"identity", "section_ties", "tool_order", "includeRuntimeContext", "colour"}
    assert {fault.field for fault in error.faults} == fields
    assert error.kind == "invalid_config"
    message = str(error)
    assert "5 faults" in message
    assert all(f"\n  {field}: " in message for field in fields)


@pytest.mark.parametrize(
    ("tool_order", "kind"),
    [(["a", "a"], "tool_order_duplicate"), (["a"], "tool_order_missing_rest"), (5, "invalid_config")],
)
def test_one_fault_gives_its_kind(tool_order: Any, kind: str) -> None:
    """With a single fault the error is of its kind; in company it is `invalid_config`."""
    with pytest.raises(InvalidConfigError) as caught:
        SystemPromptConfig(tool_order=tool_order)
    assert caught.value.kind == kind
    with pytest.raises(InvalidConfigError) as caught:
        SystemPromptConfig(tool_order=tool_order, identity=5)  # type: ignore[arg-type]
    assert caught.value.kind == "invalid_config"


def test_an_identity_that_would_never_show_is_a_fault() -> None:
    """A text for the identity and the wish for none contradict each other."""
    assert faults(identity="I", include_harness_identity=False) == [("invalid_config", "identity")]


def test_a_configuration_is_a_frozen_value() -> None:
    """Configurations compare by content, show what differs from the default, and cannot be changed."""
    config = SystemPromptConfig(persona="P", tool_order=[REST])
    assert config == SystemPromptConfig(persona="P", toolOrder=(REST,))
    assert config != SystemPromptConfig(persona="Q")
    assert repr(config) == "SystemPromptConfig(persona='P', tool_order=('<unlisted-tools>',))"
    with pytest.raises(AttributeError, match="make another one"):
        config.persona = "Q"


def test_a_configuration_survives_pickling() -> None:
    """A configuration can cross a process border."""
    config = SystemPromptConfig(persona="P", tool_order=[REST], limits=PromptLimits(text=5))
    assert pickle.loads(pickle.dumps(config)) == config


def test_limits_are_fit_to_ship() -> None:
    """Limits are plain values: equal by content, frozen."""
    assert PromptLimits(text=5) == PromptLimits(5)
    with pytest.raises(AttributeError):
        PromptLimits().text = 5  # type: ignore[misc]


def test_a_persona_may_be_a_file(tmp_path: Path) -> None:
    """A `Path` is read once, when the prompt is made; it is a template like any other."""
    file = tmp_path / "persona.md"
    file.write_text("You are {{name}}.\n")
    prompt = SystemPrompt(persona=file)
    file.unlink()
    prompt.variable("name", "Ada")
    assert prompt.render_sync().text == "You are Ada."


def test_a_persona_s_file_must_be_there(tmp_path: Path) -> None:
    """A persona that cannot be read fails the making of the prompt, and names the file."""
    with pytest.raises(UnreadableTextError, match=r"none\.md"):
        SystemPrompt(persona=tmp_path / "none.md")


def test_one_configuration_serves_many_prompts() -> None:
    """A configuration holds no state: two prompts made from one do not meet."""
    config = SystemPromptConfig(persona="P")
    one, other = SystemPrompt(config), SystemPrompt(config)
    one.section("s", "S", order=1)
    assert (one.render_sync().text, other.render_sync().text) == ("P\n\nS", "P")


# Limits in force


def test_a_rendered_prompt_is_held_to_its_limit() -> None:
    """Text and snapshot are each held to the limit of what is rendered, in UTF-8 bytes."""
    prompt = SystemPrompt(limits=PromptLimits(rendered=100))
    prompt.variable("v", lambda context: "ä" * 20)
    registration = prompt.section("s", "{{v}}{{v}}{{v}}", order=1)
    with pytest.raises(PromptTooLargeError, match="rendered prompt") as caught:
        prompt.render_sync()
    assert (caught.value.size, caught.value.limit) == (120, 100)
    registration.replace("{{v}}{{v}}12345678901234567890")
    assert len(prompt.render_sync().text) == 60
    prompt.context("c", "ä" * 50, order=1)
    with pytest.raises(PromptTooLargeError, match="snapshot"):
        prompt.render_sync()
