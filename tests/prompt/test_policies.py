"""Plain providers in threads, last good answers, and a deployment's last word on a name."""

from __future__ import annotations

import threading

import pytest

from foreword import (
    AssembleContext,
    ContextKey,
    DuplicateEntryError,
    ForewordError,
    InvalidOptionError,
    ProviderFailedError,
    SystemPrompt,
)

TENANT = ContextKey("tenant", str)


def test_a_plain_provider_that_hangs_in_a_thread_is_left_behind_and_listed_until_it_ends() -> None:
    """With `thread=True` a plain function may time out; it is stuck as long as its thread goes on."""
    go, gone = threading.Event(), threading.Event()

    def slow() -> str:
        go.wait()
        gone.set()
        return "late"

    prompt = SystemPrompt(persona="P")
    prompt.section("slow", slow, order=1, thread=True, timeout=0.05, on_error="skip")
    assert prompt.render_sync().text == "P"
    assert [ref.name for ref in prompt.stuck] == ["slow"]
    go.set()
    assert gone.wait(10)


def test_a_thread_is_for_plain_functions_only() -> None:
    """A static value needs no thread, and an option without effect is refused."""
    with pytest.raises(ForewordError) as refused:
        SystemPrompt().section("static", "text", order=1, thread=True)
    assert refused.value.kind == "invalid_option"


def test_a_last_good_answer_never_crosses_from_one_tenant_to_another() -> None:
    """A failing provider gives its last good text to the tenant that had it, and fails for any other."""
    down = False

    def account(context: AssembleContext) -> str:
        if down:
            raise OSError("the server is down")
        return f"account of {context[TENANT]}"

    prompt = SystemPrompt()
    prompt.section("account", account, order=1, on_error="last_good", last_good_by=(TENANT,))
    acme = AssembleContext({TENANT: "acme"})
    assert prompt.render_sync(acme).text == "account of acme"
    down = True
    rendering = prompt.render_sync(acme)
    assert rendering.text == "account of acme"
    assert [event.action for event in rendering.trace.about("account")] == ["reused"]
    with pytest.raises(ProviderFailedError):
        prompt.render_sync(AssembleContext({TENANT: "globex"}))


def test_with_no_key_named_only_assemblies_without_values_reuse_an_answer() -> None:
    """An option left out must not let one caller's text reach another."""
    answers = iter(["good"])
    prompt = SystemPrompt()
    prompt.section("s", lambda: next(answers), order=1, on_error="last_good")
    assert prompt.render_sync().text == "good"
    assert prompt.render_sync().text == "good"
    with pytest.raises(ProviderFailedError):
        prompt.render_sync(AssembleContext({TENANT: "acme"}))


def test_a_value_that_cannot_be_hashed_tells_no_answers_apart() -> None:
    """It may change while an answer is kept under it; the error names the key, which may hold such a value or not."""
    key = ContextKey("anything", object)
    prompt = SystemPrompt()
    prompt.section("s", lambda: "fine", order=1, on_error="last_good", last_good_by=[key])
    assert prompt.render_sync(AssembleContext({key: ("a",)})).text == "fine"
    with pytest.raises(ProviderFailedError, match=r"told apart by ContextKey\('anything', object\).*give one that"):
        prompt.render_sync(AssembleContext({key: ["a"]}))


def test_an_override_says_something() -> None:
    """One that changes nothing is a slip, and so is a word in the place of `enabled`; a second one is told of the first."""
    prompt = SystemPrompt()
    with pytest.raises(InvalidOptionError, match="says nothing; give enabled=False"):
        prompt.override("tone", why="to be sure")
    with pytest.raises(InvalidOptionError, match="True or False"):
        prompt.override("tone", enabled="no")  # type: ignore[arg-type]
    prompt.override("tone", order=5)
    with pytest.raises(DuplicateEntryError, match="say in one of them all that is to be changed"):
        prompt.override("tone", enabled=False)


def test_an_override_has_the_last_word_in_every_scope_and_gives_back_what_was() -> None:
    """A deployment may reorder, reword or disable a name after shadows are merged; closed, it leaves no trace."""
    prompt = SystemPrompt(persona="P")
    prompt.section("a", "A", order=1)
    prompt.section("b", "B", order=2)
    scope = prompt.scope("agent")
    scope.section("a", "own A", order=1)
    with prompt.override("a", order=3, text="X"):
        assert prompt.render_sync().text == scope.render_sync().text == "P\n\nB\n\nX"
    with prompt.override("a", enabled=False, why="legal"):
        rendering = scope.render_sync()
        assert rendering.text == "P\n\nB"
        missing = rendering.missing("a")
        assert missing is not None
        assert missing.reason == "disabled"
        assert "legal" in str(missing)
    assert scope.render_sync().text == "P\n\nown A\n\nB"


def test_a_protected_name_takes_no_override_whichever_comes_first() -> None:
    """A protection and an override of one section cannot both stand."""
    prompt = SystemPrompt()
    prompt.section("safety", "S", order=1)
    with prompt.protect(sections=["safety"]), pytest.raises(ForewordError) as refused:
        prompt.override("safety", enabled=False)
    assert refused.value.kind == "protected_override"
    prompt.override("safety", order=5)
    with pytest.raises(ForewordError) as refused:
        prompt.protect(sections=["safety"])
    assert refused.value.kind == "protected_override"
