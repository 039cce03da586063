"""Every kind of error: a short script that provokes it, what it tells, and that it survives a process border.

`PROVOKED` holds, for each kind, a script of at most five lines as a user would write it. What its message must hold is
listed beside it: who is to blame, where, and what to do.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import foreword
from foreword import (
    EntryRef,
    ForewordError,
    ListenerError,
    MissingContextValueError,
    ProviderFailedError,
    SystemPrompt,
    errors,
)

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"


@dataclass(frozen=True)
class Case:
    """One way to go wrong."""

    script: str
    error: str  # the class
    builtin: type[Exception]  # what a plain `except` may catch it as
    culprit: tuple[str, ...]
    place: str
    way_out: str

    def lines(self) -> list[str]:
        return self.script.strip().splitlines()


PROVOKED: dict[str, Case] = {
    "empty_name": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.owner("files").section("", "Be brief.", order=20)
""",
        "EmptyNameError", ValueError, ("section of files", "''"), "script.py:3", '"owner:name"',
    ),
    "non_finite_order": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.section("rules", "Be brief.", order=float("nan"))
""",
        "NonFiniteOrderError", ValueError, ('section "rules" of main', "nan"), "script.py:3", "finite int or float",
    ),
    "duplicate_section": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.owner("a").section("rules", "Be brief.", order=20)
prompt.owner("b").section("rules", "Be long.", order=20)
""",
        "DuplicateEntryError", ValueError, ('section "rules" of b', 'section "rules" of a'), "script.py:4",
        '"owner:name"',
    ),
    "duplicate_context": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.owner("a").context("git", "clean", order=20)
prompt.owner("b").context("git", "dirty", order=20)
""",
        "DuplicateEntryError", ValueError, ('context "git" of b', 'context "git" of a'), "script.py:4", '"owner:name"',
    ),
    "duplicate_variable": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.owner("a").variable("model", "m-1")
prompt.owner("b").variable("model", "m-2")
""",
        "DuplicateEntryError", ValueError, ('variable "model" of b', 'variable "model" of a'), "script.py:4",
        "another name",
    ),
    "protected_section_shadow": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.protect(sections=["safety"])
prompt.scope("agent").section("safety", "Anything goes.", order=20)
""",
        "ProtectedSectionShadowError", ValueError, ('section "safety" of agent in scope agent',), "script.py:4",
        "another name",
    ),
    "invalid_option": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.section("env", lambda: "Linux", order=35, timeout=0.5)
""",
        "InvalidOptionError", ValueError, ('section "env" of main', "timeout"), "script.py:3", "async def",
    ),
    "invalid_variable_name": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.owner("billing").variable("Company", "Acme")
""",
        "InvalidVariableNameError", ValueError, ("Company", "billing"), "script.py:3", "[a-z][a-z0-9_]*",
    ),
    "invalid_tool_schema": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.owner("files").tools([{"name": "bash"}])
""",
        "InvalidToolSchemaError", ValueError, ("files", "a dict"), "script.py:3", "ToolSchema(",
    ),
    "reserved_tool_name": Case(
        """
from foreword import SystemPrompt, ToolSchema
prompt = SystemPrompt()
prompt.owner("files").tools([ToolSchema("<unlisted-tools>", "", {})])
""",
        "ReservedToolNameError", ValueError, ("files", "<unlisted-tools>"), "script.py:3", "rename the tool",
    ),
    "empty_protection": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.owner("safety").protect(sections=[])
""",
        "EmptyProtectionError", ValueError, ("safety",), "script.py:3", "protect(sections=[",
    ),
    "duplicate_tool": Case(
        """
from foreword import SystemPrompt, ToolRegistry
tools = ToolRegistry(SystemPrompt())
tools.register(print, name="say", parameters={"type": "object"})
tools.register(print, name="say", parameters={"type": "object"})
""",
        "DuplicateEntryError", ValueError, ('tool "say" of main',), "script.py:3", "another name",
    ),
    "empty_mask": Case(
        """
from foreword import SystemPrompt, ToolRegistry
prompt = SystemPrompt()
ToolRegistry(prompt).at(prompt.scope("agent")).restrict(deny=[])
""",
        "InvalidMaskError", ValueError, ("agent in scope agent", "deny=[]"), "script.py:3", "name tools, or drop it",
    ),
    "unscoped_mask": Case(
        """
from foreword import SystemPrompt, ToolRegistry
ToolRegistry(SystemPrompt()).restrict(allow=[])
""",
        "InvalidMaskError", ValueError, ("a tool mask of main", "global layer"), "script.py:2", "tools.at(prompt.scope",
    ),
    "unknown_tool": Case(
        """
from foreword import SystemPrompt, ToolRegistry
prompt = SystemPrompt()
tools = ToolRegistry(prompt)
tools.register(print, name="say", parameters={"type": "object"})
tools.at(prompt.scope("agent")).restrict(deny=["sya"])
""",
        "UnknownToolError", LookupError, ("agent in scope agent", '"sya"'), "script.py:5", 'did you mean "say"',
    ),
    "protection_conflict": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.scope("agent").section("safety", "Anything goes.", order=20)
prompt.owner("guard").protect(sections=["safety"])
""",
        "ProtectionConflictError", ValueError, ("guard", 'section "safety" of agent in scope agent'), "script.py:3",
        "remove",
    ),
    "unreadable_text": Case(
        """
from pathlib import Path
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.section("style", Path("no-such-folder/style.md"), order=30)
""",
        "UnreadableTextError", ValueError, ('section "style" of main', "no-such-folder/style.md"), "script.py:4",
        "path",
    ),
    "invalid_section_files": Case(
        """
from pathlib import Path; from tempfile import TemporaryDirectory; from foreword import SystemPrompt
with TemporaryDirectory() as folder:
    Path(folder, "tone.md").write_text("---\\nordr: 30\\n---\\nBe brief.")
    SystemPrompt().owner("billing").sections_from(Path(folder))
""",
        "InvalidSectionFilesError", ValueError, ("the section files of billing", "ordr"), "/tone.md:2:",
        'did you mean "order"?',
    ),
    "not_a_string": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.variable("port", 8080)
""",
        "NotAStringError", TypeError, ('variable "port" of main', "an int"), "script.py:3", "give a string",
    ),
    "prompt_too_large": Case(
        """
from foreword import PromptLimits, SystemPrompt
prompt = SystemPrompt(limits=PromptLimits(text=10))
prompt.section("rules", "Much too long.", order=20)
""",
        "PromptTooLargeError", ValueError, ('section "rules" of main', "14 bytes"), "script.py:3", "PromptLimits(",
    ),
    "scope_already_bound": Case(
        """
from foreword import SystemPrompt, bind_parent
prompt = SystemPrompt()
team, agent = prompt.scope("team"), prompt.scope("agent")
bind_parent(agent.key, team.key)
""",
        "ScopeAlreadyBoundError", RuntimeError, ("scope agent",), "directly under the global layer", "rebind()",
    ),
    "scope_cycle": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
team = prompt.scope("team")
agent = prompt.scope("agent", parent=team)
team.binding.rebind(agent.key)
""",
        "ScopeCycleError", ValueError, ("scope team", "agent"), "below agent", "choose a parent",
    ),
    "inactive_context": Case(
        """
from foreword import SystemPrompt
view = SystemPrompt().scope("agent").owner("git")
view.close()
view.section("git", "clean", order=40)
""",
        "InactiveContextError", RuntimeError, ("owner git", "closed"), "scope agent", "make a new one",
    ),
    "tool_order_duplicate": Case(
        """
from foreword import SystemPrompt
SystemPrompt(tool_order=["bash", "bash", "<unlisted-tools>"])
""",
        "InvalidConfigError", ValueError, ('"bash"',), "tool_order:", "more than once",
    ),
    "tool_order_missing_rest": Case(
        """
from foreword import SystemPrompt
SystemPrompt(tool_order=["bash"])
""",
        "InvalidConfigError", ValueError, ('"<unlisted-tools>"',), "tool_order:", "must contain",
    ),
    "invalid_config": Case(
        """
from foreword import SystemPrompt
SystemPrompt(personna="You are a pirate.", section_ties="size")
""",
        "InvalidConfigError", ValueError, ("2 faults", "'size'"), "personna:", 'did you mean "persona"?',
    ),
    "multiple_complete_sections": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.owner("a").section("one", "1", order=20, complete=True)
prompt.owner("b").section("two", "2", order=20, complete=True)
prompt.render_sync()
""",
        "MultipleCompleteSectionsError", ValueError, ('section "one" of a', 'section "two" of b'), "script.py:4",
        "when=",
    ),
    "tool_order_unknown": Case(
        """
from foreword import SystemPrompt, ToolSchema
prompt = SystemPrompt(tool_order=["bahs", "<unlisted-tools>"])
prompt.tools([ToolSchema("bash", "", {})])
prompt.render_sync()
""",
        "UnknownToolOrderError", ValueError, ('"bahs"',), "tool_order", 'did you mean "bash"?',
    ),
    "provider_failed": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
view = prompt.scope("agent").owner("git")
view.section("git", lambda: 1 / 0, order=40)
view.render_sync()
""",
        "ProviderFailedError", RuntimeError, ('section "git" of git in scope agent', "ZeroDivisionError"),
        "script.py:4", 'on_error="skip"',
    ),
    "listener_error": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
async def forgetful(assembly, context, call_next): await call_next()
prompt.owner("audit").on_assemble(forgetful)
prompt.render_sync()
""",
        "ListenerError", RuntimeError, ('listener "forgetful" of audit', "None"), "script.py:4", "return the assembly",
    ),
    "running_loop": Case(
        """
import asyncio; from foreword import SystemPrompt
prompt = SystemPrompt()
@prompt.section("env", order=35)
async def env(): return "Linux"
asyncio.run(called_inside(prompt.render_sync))
""",
        "RunningLoopError", RuntimeError, ('section "env" of main', "asyncio"), "script.py:3", "await prompt.render(",
    ),
    "cancelled": Case(
        """
from foreword import AssembleContext, CancelToken, SystemPrompt
token = CancelToken()
token.cancel("the turn ended")
SystemPrompt().render_sync(AssembleContext(signal=token))
""",
        "AssemblyCancelledError", RuntimeError, ("the turn ended",), "assembly", "CancelToken",
    ),
    "malformed_reference": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.section("hi", "Hi {{ name }}!", order=20)
prompt.render_sync()
""",
        "MalformedReferenceError", ValueError, ('section "hi" of main', "{{ name }}"), "line 1, column 4",
        "without blanks: {{name}}",
    ),
    "unknown_variable": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt(persona="You run on {{modle}}.")
prompt.variable("model", "m-1")
prompt.render_sync()
""",
        "UnknownVariableError", ValueError, ('section "deployment:persona" of main', "{{modle}}"),
        "line 1, column 12", 'did you mean "model"?',
    ),
    "valueless_variable": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt(persona="You run on {{model}}.")
prompt.variable("model", None)
prompt.render_sync()
""",
        "ValuelessVariableError", ValueError, ('section "deployment:persona" of main', "{{model}}"),
        "line 1, column 12", "return a string",
    ),
    "lone_surrogate": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.section("hi", "Hi \\ud83d!", order=20)
prompt.render_sync()
""",
        "LoneSurrogateError", ValueError, ('section "hi" of main', "U+D83D"), "line 1, column 4", "repair the text",
    ),
    # models
    "invalid_model": Case(
        """
from foreword.wire.request import ModelConfig
ModelConfig.parse("gpt-5")
""",
        "InvalidModelError", ValueError, ('"gpt-5"',), "names no model", "write provider:model",
    ),
    "unknown_provider": Case(
        """
from foreword.agent.models import ModelAdapters; from foreword.testing import ScriptedModel
ModelAdapters(ScriptedModel(name="openai")).get("opnai")
""",
        "UnknownProviderError", LookupError, ('"opnai"',), "provider", 'did you mean "openai"?',
    ),
    "duplicate_adapter": Case(
        """
from foreword.agent.models import ModelAdapters; from foreword.testing import ScriptedModel
adapters = ModelAdapters(ScriptedModel())
adapters.register(ScriptedModel())
""",
        "DuplicateAdapterError", ValueError, ('"scripted" of main', "script.py:2"), "script.py:3",
        "close that registration first",
    ),
    "invalid_model_setting": Case(
        """
from foreword.wire.openai_chat import body; from foreword.wire.request import ModelConfig, ModelRequest
body(ModelRequest("", (), (), ModelConfig("openai", "gpt-5", {"temperature": "hot"})))
""",
        "InvalidModelSettingError", ValueError, ("temperature", "'hot'"), "openai:gpt-5", "give a number",
    ),
    "invalid_tool_name": Case(
        """
from foreword import SystemPrompt, ToolSchema; from foreword.wire.openai_chat import request
prompt = SystemPrompt()
prompt.tools([ToolSchema("files.read", "Reads a file.", {})])
request(prompt.render_sync(), [], config="openai:gpt-5")
""",
        "InvalidToolNameError", ValueError, ('tool "files.read" of main', "openai"), "script.py:3", "rename the tool",
    ),
    "tool_name_collision": Case(
        """
from foreword import SystemPrompt, ToolSchema; from foreword.wire.openai_chat import request
prompt = SystemPrompt()
prompt.owner("web").tools([ToolSchema("search", "The web.", {})])
prompt.owner("files").tools([ToolSchema("search", "Files.", {})])
request(prompt.render_sync(), [], config="openai:gpt-5")
""",
        "ToolNameCollisionError", ValueError, ('"search" of web', '"search" of files'), "script.py:4", "rename one",
    ),
    "misplaced_instructions": Case(
        """
from foreword import SystemPrompt; from foreword.wire.openai_chat import request
request(SystemPrompt().render_sync(), [{"role": "system", "content": "Be brief."}], config="openai:gpt-5")
""",
        "MisplacedInstructionsError", ValueError, ("the role system",), "message 0", "register that text as a section",
    ),
    "api_key": Case(
        """
from foreword.agent.models.openai import OpenAIAdapter
OpenAIAdapter(api_key="sk-1234\\n")
""",
        "ApiKeyError", ValueError, ("openai",), "a line break", "copy it anew",
    ),
    "missing_extra": Case(
        """
import sys; from unittest.mock import patch
gone = {"openai": None, "foreword.agent.models.openai_client": None}
with patch.dict(sys.modules, gone):
    del sys.modules["foreword.agent.models.openai_client"]
    import foreword.agent.models.openai_client
""",
        "MissingExtraError", ImportError, ("the package openai",), "chat completions", 'pip install "foreword[openai]"',
    ),
    "script_ended": Case(
        """
import anyio; from foreword.testing import ScriptedModel; from foreword.wire.request import ModelConfig, ModelRequest
async def ask(): await anext(ScriptedModel().stream(ModelRequest("", (), (), ModelConfig("scripted", "any"))))
anyio.run(ask)
""",
        "ScriptEndedError", AssertionError, ('scripted model "scripted"',), "answer 1", "add a step",
    ),
    "model_failed": Case(
        """
from foreword.errors import ModelFailedError
raise ModelFailedError("openai:gpt-5", "It is busy.", "overloaded", 529, True, 2.0)
""",
        "ModelFailedError", RuntimeError, ("openai:gpt-5", "It is busy."), "HTTP 529", "may succeed later",
    ),
    # kinds that the contract names without a word of their own
    "timeout": Case(
        """
import anyio; from foreword import SystemPrompt
prompt = SystemPrompt()
@prompt.section("env", order=35, timeout=0.01)
async def env(): await anyio.sleep(60)
prompt.render_sync()
""",
        "ProviderTimeoutError", TimeoutError, ("0.01 s",), "timeout", "cancelled",
    ),
    "missing_context_value": Case(
        """
from foreword import AssembleContext, ContextKey
TENANT = ContextKey("tenant", str)
AssembleContext()[TENANT]
""",
        "MissingContextValueError", KeyError, ('the key "tenant"',), "context", "context.get(KEY, default)",
    ),
    "unknown_entry": Case(
        """
from foreword import SystemPrompt
prompt = SystemPrompt()
prompt.section("tone", "Be brief.", order=30)
prompt.assemble_sync().sections.swap("tune", text="Be long.")
""",
        "UnknownEntryError", LookupError, ('section "tune"',), "in this assembly", 'did you mean "tone"?',
    ),
    "not_json": Case(
        """
from foreword import freeze
freeze({"properties": {"tags": {"a", "b"}}})
""",
        "NotJsonError", ValueError, ("a set",), ".properties.tags", "list",
    ),
}  # fmt: skip

DUE = """
empty_name non_finite_order duplicate_section duplicate_context protected_section_shadow invalid_option prompt_too_large
invalid_variable_name duplicate_variable invalid_tool_schema reserved_tool_name empty_protection protection_conflict
scope_already_bound scope_cycle tool_order_duplicate tool_order_missing_rest invalid_config multiple_complete_sections
tool_order_unknown provider_failed listener_error malformed_reference unknown_variable valueless_variable lone_surrogate
not_a_string running_loop unreadable_text inactive_context cancelled
"""


async def called_inside(function: Any) -> None:
    """Call something where a loop is running."""
    function()


def provoked(kind: str) -> ForewordError:
    """Run the script of a kind and give the error back."""
    code = compile(PROVOKED[kind].script.lstrip(), "script.py", "exec", dont_inherit=True)
    with pytest.raises(ForewordError) as caught:
        exec(code, {"__name__": "script", "called_inside": called_inside})
    error: Any = caught.value
    if kind == "timeout":  # the provider's own error, as code that asks why finds it
        error = error.__cause__
    return error  # type: ignore[no-any-return]


def test_every_kind_is_provoked() -> None:
    """Each kind of error that the contract names has its script."""
    assert set(DUE.split()) <= set(PROVOKED)


@pytest.mark.parametrize("kind", PROVOKED)
def test_a_few_lines_provoke_it(kind: str) -> None:
    """A script of at most five lines ends in an error of this kind and class."""
    case = PROVOKED[kind]
    assert len(case.lines()) <= 5
    error = provoked(kind)
    assert error.kind == kind
    assert type(error) is getattr(foreword, case.error)


@pytest.mark.parametrize("kind", PROVOKED)
def test_a_plain_except_catches_it(kind: str) -> None:
    """Each error derives from the builtin that fits, beside `ForewordError`."""
    error = provoked(kind)
    assert isinstance(error, PROVOKED[kind].builtin)
    assert isinstance(error, ForewordError)


@pytest.mark.parametrize("kind", PROVOKED)
def test_the_message_names_the_culprit(kind: str) -> None:
    """The message tells who or what is to blame, by name and owner."""
    message = str(provoked(kind))
    for part in PROVOKED[kind].culprit:
        assert part in message


@pytest.mark.parametrize("kind", PROVOKED)
def test_the_message_names_the_place(kind: str) -> None:
    """The message tells where: file and line, place in a text, field, path, or scope."""
    assert PROVOKED[kind].place in str(provoked(kind))


@pytest.mark.parametrize("kind", PROVOKED)
def test_the_message_names_a_way_out(kind: str) -> None:
    """The message tells what to do about it."""
    assert PROVOKED[kind].way_out in str(provoked(kind))


@pytest.mark.parametrize("kind", PROVOKED)
def test_the_message_reads_well(kind: str) -> None:
    """Messages are plain text: printable lines, no object addresses, no wrong article, no empty line, none too long."""
    lines = str(provoked(kind)).split("\n")
    for line in lines:
        assert line.strip()
        assert line.isprintable()
        assert " at 0x" not in line
        assert "not a None" not in line
        assert not any(f" a {word}" in line for word in ("int ", "int;", "int,", "async", "object", "empty"))
    assert len(lines[0]) < 400


def state(error: BaseException) -> dict[str, Any]:
    """All that a handler can read of an error."""
    attributes = {name: getattr(error, name, None) for name in dir(error) if not name.startswith("_")}
    return {name: value for name, value in attributes.items() if not callable(value)}


@pytest.mark.parametrize("kind", PROVOKED)
def test_it_survives_pickling(kind: str) -> None:
    """Pickled and copied, an error has the same text and the same attributes, and holds nothing that cannot be
    pickled."""
    error = provoked(kind)
    error.add_note("noted")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert state(twin) == state(error)
        assert len(state(twin)) > 2
        assert twin.__notes__ == ["noted"]


def test_every_error_is_catchable_as_a_builtin() -> None:
    """Every class of error that stands for a kind derives from a builtin other than `Exception`."""
    classes = [value for name in foreword.__all__ if isinstance(value := getattr(foreword, name), type)]
    kinds = [each for each in classes if issubclass(each, ForewordError) and not is_abstract(each)]
    assert len(kinds) > 25
    for each in kinds:
        builtins = [base for base in each.__mro__ if base.__module__ == "builtins"]
        assert builtins[0] not in (Exception, BaseException, object), each


def is_abstract(error: type[ForewordError]) -> bool:
    """Whether it only groups other classes."""
    return error is ForewordError or ("kind" not in vars(error) and bool(error.__subclasses__()))


# The reference


def rows() -> list[list[str]]:
    """The rows of the tables of the reference that are about a class: kinds, class, builtin."""
    lines = [line.split(" | ") for line in REFERENCE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return [[cell.strip("| ") for cell in line] for line in lines if len(line) == 5]


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name.endswith("Error")])
def test_every_error_is_in_the_reference(name: str) -> None:
    """docs/reference/errors.md has a row for each error, with its kind and builtin, or names it as a base of others."""
    error = getattr(errors, name)
    found = {row[0]: row[2] for row in rows() if row[1] == f"`{name}`"}
    kind = vars(error).get("kind")
    if is_abstract(error):
        assert found or name in REFERENCE.read_text(encoding="utf-8")
        return
    builtin = next(base.__name__ for base in error.__mro__ if base.__module__ == "builtins")
    assert set(found.values()) == {f"`{builtin}`"}, f"docs/reference/errors.md has no row for {name}, or a wrong one"
    assert kind is None or any(f"`{kind}`" in kinds for kinds in found), f"it does not name the kind {kind}"


@pytest.mark.parametrize("kind", PROVOKED)
def test_every_provoked_kind_is_in_the_reference(kind: str) -> None:
    """Also where a class has several kinds, each of them is in its row."""
    assert any(f"`{kind}`" in row[0] and row[1] == f"`{PROVOKED[kind].error}`" for row in rows())


def test_the_reference_knows_no_other_errors() -> None:
    """No row is about a class that is not there."""
    assert {row[1].strip("`") for row in rows()} <= set(errors.__all__)


# How entries are named


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        (EntryRef("section", "rules", "main"), 'section "rules" of main'),
        (EntryRef("section", "rules", "main", "agent"), 'section "rules" of main in scope agent'),
        (
            EntryRef("context", "git", "vcs", "agent", "vcs/git.py:12"),
            'context "git" of vcs in scope agent (vcs/git.py:12)',
        ),
    ],
)
def test_how_an_entry_is_named(ref: EntryRef, text: str) -> None:
    """A reference reads as kind, name, owner, scope and place, as far as there are any."""
    assert str(ref) == text
    assert pickle.loads(pickle.dumps(ref)) == ref


@pytest.mark.parametrize("name", ["x" * 10_000, "a\nb", "a\x1b[31mb", "a\u202eb"], ids=ascii)
def test_odd_names_keep_messages_readable(name: str) -> None:
    """A name that is very long, or holds what a terminal would obey, does not make a message unreadable."""
    prompt = SystemPrompt()
    prompt.owner(f"o{name}").section(name, "{{nobody}}", order=1)
    with pytest.raises(ForewordError) as caught:
        prompt.render_sync()
    lines = str(caught.value).split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
    assert len(lines[0]) < 500


def test_a_misspelt_name_is_guessed_among_many() -> None:
    """The nearest of many names is suggested, though only some are listed."""
    prompt = SystemPrompt(persona="{{zebar}}")
    for at in range(300):
        prompt.variable(f"name_{at}", "x")
    prompt.variable("zebra", "x")
    with pytest.raises(ForewordError, match=r'did you mean "zebra"\?.* and 281 more'):
        prompt.render_sync()


# Chains


def test_causes_are_kept() -> None:
    """What somebody else's code raised stays the cause: of a listener's error, and of a provider's failure."""
    prompt = SystemPrompt()

    async def raising(assembly: Any, context: Any, call_next: Any) -> Any:
        raise OSError("disk")

    with prompt.on_assemble(raising), pytest.raises(ListenerError) as listener:
        prompt.render_sync()
    assert isinstance(listener.value.__cause__, OSError)
    prompt.section("s", lambda context: context[foreword.ContextKey("k", str)], order=1)
    with pytest.raises(ProviderFailedError) as provider:
        prompt.render_sync()
    assert isinstance(provider.value.__cause__, MissingContextValueError)


def test_one_clause_catches_all() -> None:
    """`ForewordError` is the base of every error of ours, and has a kind itself."""
    for kind in PROVOKED:
        assert isinstance(provoked(kind), ForewordError)
    assert ForewordError.kind == "error"
