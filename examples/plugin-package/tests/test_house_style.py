"""What the plugin contributes, for which config. Each test also sees that unloading leaves nothing: `mount` does."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from foreword import InvalidPluginConfigError
from foreword.testing import mount

from acme_house_style import HouseStyle, house_style

pytestmark = pytest.mark.anyio


async def test_without_a_config() -> None:
    """The style is there, in British English, and nothing else."""
    async with mount(house_style) as mounted:
        rendering = await mounted.render()
        assert rendering.text.startswith("# How to write\n\nWrite in British English.")
        assert (rendering.snapshot, list(rendering.tools)) == ("", [])
        assert [(ref.kind, ref.name) for ref in mounted.contributions] == [
            ("variable", "house_language"),
            ("section", "acme-house-style:writing"),
        ]


async def test_another_config() -> None:
    """Language and words to avoid come from the config, and change with it."""
    async with mount(house_style, {"language": "en-US", "avoid": ["utilize", "{{x}}"]}) as mounted:
        text = (await mounted.render()).text
        assert "American English" in text
        assert text.endswith("Never write “utilize”, “{{x}}”.")
        await mounted.update(HouseStyle())
        assert "Never write" not in (await mounted.render()).text


async def test_its_variable_is_there_for_others() -> None:
    """A deployment may use {{house_language}} in texts of its own."""
    async with mount(house_style, persona="You write letters in {{house_language}}.") as mounted:
        assert (await mounted.render()).text.startswith("You write letters in British English.")


async def test_terms(tmp_path: Path) -> None:
    """The list is read at each step, word for word, outside the system text; the tool comes with its guidance."""
    file = tmp_path / "terms.txt"
    file.write_text("current account\n\nfee {{a}}\n", encoding="utf-8")
    async with mount(house_style, {"terms": str(file)}) as mounted:
        first = await mounted.render()
        assert first.snapshot.endswith("Acme's terms:\n- current account\n- fee {{a}}")
        assert [tool.name for tool in first.tools] == ["find_term"]
        assert "look it up with `find_term`" in first.text
        file.write_text("savings account\n", encoding="utf-8")
        second = await mounted.render()
        assert second.snapshot.endswith("- savings account")
        assert second.text == first.text


async def test_guidance_needs_the_tool(tmp_path: Path) -> None:
    """Where a listener takes the tool away, the advice on it goes, too."""
    async with mount(house_style, {"terms": str(tmp_path / "terms.txt")}) as mounted:

        async def without_tools(assembly, context, call_next):
            assembly.tools.drop("find_term")
            return await call_next()

        with mounted.prompt.on_assemble(without_tools):
            assert (await mounted.render()).missing("tool:find_term") is not None


async def test_terms_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is not there does not stop the agent."""
    async with mount(house_style, {"terms": str(tmp_path / "nowhere.txt")}) as mounted:
        assert "cannot be read just now" in (await mounted.render()).snapshot


@pytest.mark.parametrize("config", [{"language": "de"}, {"avoid": "utilize"}, {"tongue": "en-GB"}])
async def test_a_config_that_does_not_fit(config: dict[str, object]) -> None:
    """It is refused before anything is registered, and the error names the key."""
    with pytest.raises(InvalidPluginConfigError, match=next(iter(config))):
        async with mount(house_style, config):
            pass


def test_it_is_offered_by_name() -> None:
    """Installed, the package offers the plugin as `acme-house-style`."""
    (found,) = entry_points(group="foreword.plugins", name="acme-house-style")
    assert found.load() is house_style
