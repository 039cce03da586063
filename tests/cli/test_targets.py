"""What can be shown, and how it is found; and what is said when it cannot be."""

import sys
from pathlib import Path

import pytest
from tests.cli.support import piped, run, write

SIMPLE = "from foreword import SystemPrompt\nprompt = SystemPrompt(persona='Here.')\n"


# -- found -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    [
        "target.py:prompt", "./target.py:prompt", "target:prompt", "target.py:build", "target:Holder.prompt",
        "target:Holder.build", "target:build_async", "target:make", "target.py:optional",
    ],
)  # fmt: skip
def test_a_prompt_is_found(tmp_path: Path, typed: str) -> None:
    """A target is a file or a module, and in it a prompt or something to call that gives one, at once or async."""
    write(
        tmp_path,
        """
        from functools import partial
        from foreword import SystemPrompt

        def build(): return SystemPrompt(persona="Here.")
        def optional(root=None, *rest, **more): return build()
        async def build_async(): return build()
        make = partial(lambda text: SystemPrompt(persona=text), "Here.")
        prompt = build()

        class Holder:
            prompt = prompt
            @staticmethod
            def build(): return SystemPrompt(persona="Here.")
        """,
    )
    ran = run("show", typed, folder=tmp_path)
    assert (ran.code, ran.out, ran.err) == (0, "Here.\n", "")


def test_an_async_function_shares_its_loop_with_the_providers(tmp_path: Path) -> None:
    """What an async target opens is used by async providers in the same event loop."""
    target = write(
        tmp_path,
        """
        import asyncio
        from foreword import SystemPrompt

        async def build():
            answer = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(0.01, answer.set_result, "Same loop.")
            prompt = SystemPrompt()
            @prompt.section("s", order=1, timeout=10)
            async def text(): return await answer
            return prompt
        """,
    )
    ran = run("show", f"{target}:build")
    assert (ran.code, ran.out, ran.err) == (0, "Same loop.\n", "")


def test_a_file_imports_its_neighbours(tmp_path: Path) -> None:
    """A file finds what stands beside it before what stands in the current folder; it finds that, too."""
    write(tmp_path / "deep", "TEXT = 'Beside.'", "near_one.py")
    write(tmp_path, "TEXT = 'Not this one.'", "near_one.py")
    write(tmp_path, "TEXT = 'Here.'", "here_one.py")
    write(
        tmp_path / "deep",
        """
        from here_one import TEXT as here
        from near_one import TEXT as near
        from foreword import SystemPrompt
        prompt = SystemPrompt(persona=f"{near} {here}")
        """,
        "importing.py",
    )
    assert run("show", "deep/importing.py:prompt", folder=tmp_path).out == "Beside. Here.\n"


def test_a_file_of_a_package_is_imported_as_such(tmp_path: Path) -> None:
    """In a package's file relative imports work, and its modules exist once."""
    write(tmp_path / "lib" / "pack_one" / "inner", "", "__init__.py")
    write(tmp_path / "lib" / "pack_one", "", "__init__.py")
    write(tmp_path / "lib" / "pack_one", "TEXT = 'Relative.'", "texts.py")
    write(
        tmp_path / "lib" / "pack_one" / "inner",
        """
        import pack_one.texts
        from foreword import SystemPrompt
        from .. import texts
        assert texts is pack_one.texts
        prompt = SystemPrompt(persona=texts.TEXT)
        """,
        "made.py",
    )
    assert run("show", "lib/pack_one/inner/made.py:prompt", folder=tmp_path).out == "Relative.\n"


def test_a_file_may_be_called_like_a_module(tmp_path: Path) -> None:
    """A file whose name is taken by another module is run all the same, and takes nothing from it."""
    for name in ("json.py", "click.py"):
        write(tmp_path / "odd", SIMPLE, name)
        assert run("show", f"odd/{name}:prompt", folder=tmp_path).out == "Here.\n"
    assert hasattr(sys.modules["json"], "dumps")


def test_imports_are_possible_in_providers(tmp_path: Path) -> None:
    """What a provider imports late is found where the file's own imports are."""
    write(tmp_path / "deep", "TEXT = 'Late.'", "late_one.py")
    write(
        tmp_path / "deep",
        """
        from foreword import SystemPrompt
        prompt = SystemPrompt()
        @prompt.section("s", order=1)
        def text():
            import late_one
            return late_one.TEXT
        """,
        "lazy.py",
    )
    assert run("show", "deep/lazy.py:prompt", folder=tmp_path).out == "Late.\n"


def test_the_import_path_is_left_as_it_was(tmp_path: Path) -> None:
    """The command leaves no folder on the import path of whoever runs it in his own process."""
    before = sys.path.copy()
    run("show", f"{write(tmp_path, SIMPLE)}:prompt")
    run("show", f"{write(tmp_path, '1 / 0')}:prompt")
    assert sys.path == before


# -- not found, or not working -----------------------------------------------------------------------------------------

BROKEN = """
    import sys
    from foreword import SystemPrompt

    prompt = SystemPrompt(persona="Here.")
    text = "no prompt"

    def needs(root, *, other): ...
    def nothing(): ...
    def zero(): return 1 / 0
    def silent(): raise RuntimeError
    def leaves(): sys.exit("enough")
    def twice():
        prompt = SystemPrompt()
        prompt.section("a:b", "x", order=1)
        prompt.section("a:b", "y", order=2)
    def unknown():
        prompt = SystemPrompt(persona="Hi {{nmae}}.")
        prompt.variable("name", "x")
        return prompt
    def providers():
        prompt = SystemPrompt()
        @prompt.section("a:b", order=1)
        async def first(): raise ValueError("bad")
        @prompt.context("c:d", order=1)
        def second(): return {}["key"]
        return prompt
    def listener():
        prompt = SystemPrompt()
        async def breaks(assembly, context, call_next): raise ValueError("bad")
        prompt.on_assemble(breaks)
        return prompt
    def exits():
        prompt = SystemPrompt()
        prompt.section("a:b", lambda: sys.exit(7), order=1)
        return prompt
    def library():
        import json
        return json.loads("{")
    async def later(): return 1 / 0
    class Property:
        @property
        def prompt(self): return 1 / 0
    holder = Property()
    number = 5
"""

FAULTS = {
    "broken.py": 'error: "broken.py" does not say which object to show; name what is in it, as in module:name',
    ":prompt": 'error: ":prompt" does not say which object to show',
    "broken.py:": "does not say which object to show",
    "missing.py:prompt": 'error: there is no file "missing.py" (looked for ',
    "gone/:prompt": 'error: there is no file "gone/"',
    "missing_one:prompt": 'error: there is no module "missing_one" here (',
    "missing_one.inner:prompt": 'error: there is no module "missing_one" here (',
    "broken.py:promtp": 'error: "broken.py" has no "promtp"; did you mean "prompt"? known names: ',
    "broken.py:prompt.nothing": 'error: "broken.py" has no "prompt.nothing"',
    "broken.py:text": "error: broken.py:text gives a str; show takes a SystemPrompt, or a function that returns one",
    "broken.py:number": "error: broken.py:number gives an int; show takes a SystemPrompt",
    "broken.py:nothing": "error: broken.py:nothing gives None; show takes a SystemPrompt",
    "broken.py:needs": "error: broken.py:needs needs arguments (root, other); give a function that can be called without",
    "broken.py:zero": "error: broken.py:9: ZeroDivisionError: division by zero, while calling broken.py:zero; --trace",
    "broken.py:silent": "error: broken.py:10: RuntimeError, while calling",
    "broken.py:leaves": "error: broken.py:11: the code left with sys.exit('enough') while calling",
    "broken.py:twice": 'error: broken.py:15: section "a:b" of main (broken.py:15) is already registered in this layer, by',
    "broken.py:unknown": 'error: unknown prompt variable "{{nmae}}" in section "deployment:persona" of main',
    "broken.py:providers": "error: 2 providers of the prompt failed:",
    "broken.py:listener": "raised ValueError: bad",
    "broken.py:exits": "the code left with sys.exit(7) while rendering broken.py:exits",
    "broken.py:library": "error: broken.py:38: JSONDecodeError: Expecting property name",
    "broken.py:later": "error: broken.py:39: ZeroDivisionError: division by zero, while making and rendering",
    "broken.py:holder.prompt": "error: broken.py:42: ZeroDivisionError: division by zero, while looking up",
    "syntax.py:prompt": "error: syntax.py:2: SyntaxError: ",
    "syntax:prompt": "error: syntax.py:2: SyntaxError: ",
    "importing.py:prompt": "error: importing.py:1: ModuleNotFoundError: No module named 'missing_one', while running",
    "importing:prompt": "error: importing.py:1: ModuleNotFoundError: No module named 'missing_one', while importing",
    "binary.py:prompt": "SyntaxError: ",
}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    write(tmp_path, BROKEN.removeprefix("\n"), "broken.py")
    write(tmp_path, "x = 1\ndef f(:\n", "syntax.py")
    write(tmp_path, "import missing_one\n", "importing.py")
    (tmp_path / "binary.py").write_bytes(b"\x00\xff")
    return tmp_path


@pytest.mark.parametrize(("typed", "expected"), FAULTS.items(), ids=list(FAULTS))
def test_what_is_wrong_is_told_in_one_paragraph(broken: Path, typed: str, expected: str) -> None:
    """An error is one paragraph on stderr that names the place in the user's code, without a traceback; exit code 2."""
    ran = run("show", typed, folder=broken)
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err
    assert ran.err.startswith("error: ")
    assert "\n\n" not in ran.err
    assert "Traceback" not in ran.err
    assert "foreword/cli" not in ran.err


def test_failing_providers_are_found_in_their_files(broken: Path) -> None:
    """Besides what failed and where it was registered, the lines that raised are told."""
    assert run("show", "broken.py:providers", folder=broken).err.endswith("\nraised at broken.py:23, broken.py:25\n")
    assert run("show", "broken.py:listener", folder=broken).err.endswith("\nraised at broken.py:29\n")


@pytest.mark.parametrize("typed", ["broken.py:zero", "broken.py:providers", "missing.py:prompt"])
def test_traceback_is_given_when_asked_for(broken: Path, typed: str) -> None:
    """With `--traceback` the traceback goes first; the paragraph stays the last word."""
    without, ran = run("show", typed, folder=broken), run("show", typed, "--traceback", folder=broken)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Traceback (most recent call last):") or "Traceback (most recent call last):" in ran.err
    assert ran.err.endswith(without.err)


def test_wrong_usage_is_told_in_one_paragraph(tmp_path: Path) -> None:
    """A command line that cannot be understood exits with 2 and says where the help is."""
    for arguments in (
        ["shwo"],
        ["show", "a:b", "--anotate"],
        ["show", "a:b", "c"],
        ["show", "a:b", "--scope"],
    ):
        ran = run(*arguments, folder=tmp_path)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error: ")
        assert ran.err.count("\n") == 1
        assert "--help" in ran.err


def test_a_lone_surrogate_in_a_target_is_no_crash(tmp_path: Path) -> None:
    """A target that is no UTF-8 is an unknown file like any other."""
    done = piped("show", "\udcff.py:prompt", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(rb'error: there is no file "\udcff.py"')


@pytest.mark.parametrize("command", [("show",), ("tokens",), ("explain", "x")])
def test_a_word_that_is_no_session(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Where there is no log, whoever typed the bare name of a module is told what it was taken for."""
    write(tmp_path, "prompt = None", "shop.py")
    name, *rest = command
    ran = run(name, "shop", *rest, folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert '"shop" is taken for a session of a log' in ran.err
    assert "for a SystemPrompt write module:name" in ran.err
    assert "is taken for" not in run(name, "last", *rest, folder=tmp_path).err
