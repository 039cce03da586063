"""Reading a deployment file: every fault at once, each at its place, and nothing is run."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import pytest
from tests.compose.support import Folder, places

from foreword.compose import DeploymentError, read_deployment
from foreword.prompt.config import PromptLimits
from foreword.wire.request import ModelConfig

WHOLE = """
system_prompt: {persona: {file: personas/acme.md}, section_ties: name, tool_order: [refund, "<unlisted-tools>"]}
variables: {company: Acme}
plugins:
  - {id: billing, use: acme-billing, config: {currency: EUR, key: "${env:BILLING_KEY}"}}
  - {id: legal,   use: acme_legal.prompts:legal, disabled: true}
sections:
  growth:upsell: {enabled: false, why: "legal, until 2027-01"}
  acme-billing:rules: {order: 40}
  tone: {text: Be brief.}
  style: {text: {file: style.md}}
  rules: {file: style.md}
agents:
  support: {model: "openai:gpt-5", labels: {tenant: acme}}
  researcher:
    persona: You look things up.
    tools: {allow: ["mcp__orders__*"], deny: [refund]}
    model: {use: "deepseek:deepseek-chat", settings: {temperature: 0.2, stop: ["$${"]}}
log: {store: "${env:FOREWORD_LOG:-sqlite:var/foreword.db}"}
"""

WHOLE_TOML = """
[system_prompt]
persona = {file = "personas/acme.md"}
section_ties = "name"
tool_order = ["refund", "<unlisted-tools>"]
[variables]
company = "Acme"
[[plugins]]
id = "billing"
use = "acme-billing"
config = {currency = "EUR", key = "${env:BILLING_KEY}"}
[[plugins]]
id = "legal"
use = "acme_legal.prompts:legal"
disabled = true
[sections]
"growth:upsell" = {enabled = false, why = "legal, until 2027-01"}
"acme-billing:rules" = {order = 40}
tone = {text = "Be brief."}
style = {text = {file = "style.md"}}
rules = {file = "style.md"}
[agents]
support = {model = "openai:gpt-5", labels = {tenant = "acme"}}
[agents.researcher]
persona = "You look things up."
tools = {allow = ["mcp__orders__*"], deny = ["refund"]}
model = {use = "deepseek:deepseek-chat", settings = {temperature = 0.2, stop = ["$${"]}}
[log]
store = "${env:FOREWORD_LOG:-sqlite:var/foreword.db}"
"""


@pytest.mark.parametrize(("text", "name"), [(WHOLE, "foreword.yaml"), (WHOLE, "other.yml"), (WHOLE_TOML, "a.toml")])
def test_the_whole_file(folder: Folder, text: str, name: str) -> None:
    """Every key of the file is read, from YAML and TOML alike; files relative to the one that names them."""
    folder.write("personas/acme.md", "\ufeffYou work for {{company}}.\r\n")
    folder.write("style.md", "Write plainly.\n")
    deployment = folder.read(text, name, {"BILLING_KEY": "k"})
    config = deployment.system_prompt
    assert (config.persona, config.section_ties) == ("You work for {{company}}.", "name")
    assert config.tool_order == ("refund", "<unlisted-tools>")
    assert deployment.variables == {"company": "Acme"}
    billing, legal = deployment.plugins
    assert (billing.id, billing.use, billing.disabled) == ("billing", "acme-billing", False)
    assert billing.config == {"currency": "EUR", "key": "${env:BILLING_KEY}"}
    assert (legal.use, legal.disabled) == ("acme_legal.prompts:legal", True)
    assert not deployment.sections["growth:upsell"].enabled
    assert deployment.sections["growth:upsell"].why == "legal, until 2027-01"
    assert deployment.sections["acme-billing:rules"].order == 40
    texts = [deployment.sections[name].text for name in ("tone", "style", "rules")]
    assert texts == ["Be brief.", "Write plainly.", "Write plainly."]
    assert deployment.agents["support"].persona is None
    researcher = deployment.agents["researcher"]
    assert (researcher.persona, researcher.allow) == ("You look things up.", ("mcp__orders__*",))
    assert researcher.deny == ("refund",)
    assert deployment.agents["support"].model == ModelConfig("openai", "gpt-5")
    assert deployment.agents["support"].labels == {"tenant": "acme"}
    assert researcher.model == ModelConfig("deepseek", "deepseek-chat", {"temperature": 0.2, "stop": ["${"]})
    assert researcher.labels == {}
    assert deployment.log.store == "${env:FOREWORD_LOG:-sqlite:var/foreword.db}"


def test_least_file(folder: Folder) -> None:
    """Only the version is required; everything else has its default."""
    deployment = folder.read("")
    assert (deployment.plugins, dict(deployment.agents), dict(deployment.sections)) == ((), {}, {})
    assert folder.read("variables:\nplugins:\nagents:\nsections:\nsystem_prompt:\n").plugins == ()


def test_reading_runs_nothing(folder: Folder) -> None:
    """Reading imports no module that the file names, also one that is there."""
    folder.plugins()
    before = set(sys.modules)
    folder.read("plugins: [{id: a, use: 'plugs:billing'}, {id: b, use: 'nowhere.at.all:x'}, {id: c, use: no-such}]")
    assert not (folder.path / "mark").exists()
    assert "plugs" not in set(sys.modules) - before


def test_values_are_frozen_and_pickle(folder: Folder) -> None:
    """A deployment cannot be changed, and goes through pickle."""
    folder.write("personas/acme.md", "x")
    folder.write("style.md", "x")
    deployment = folder.read(WHOLE, environment={"BILLING_KEY": "k"})
    with pytest.raises(TypeError):
        deployment.variables["company"] = "Other"  # type: ignore[index]
    with pytest.raises(TypeError):
        deployment.plugins[0].config["currency"] = "USD"  # type: ignore[index, call-overload]
    with pytest.raises(AttributeError):
        deployment.plugins = ()  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(deployment)) == deployment


# -- many faults -------------------------------------------------------------------------------------------------------

TEN = """
system_promt: {}
system_prompt: {persona: {file: nowhere.md}, tool_order: [bash, bash]}
variables:
  Company: Acme
  port: 8080
plugins:
  - {id: a, use: x}
  - {id: a, use: y, grants: [section]}
  - {id: c, use: "a:b:c"}
agents: {r: {tools: {deny: []}}}
sections: {tone: {enabled: off}}
"""

TEN_TOML = """
system_promt = {}
system_prompt = {persona = {file = "nowhere.md"}, tool_order = ["bash", "bash"]}
variables = {Company = "Acme", port = 8080}
plugins = [{id = "a", use = "x"}, {id = "a", use = "y", grants = ["section"]}, {id = "c", use = "a:b:c"}]
agents = {r = {tools = {deny = []}}}
sections = {tone = {enabled = "off"}}
"""

TEN_PLACES = [
    (2, "system_promt"),
    (3, "system_prompt.persona.file"),
    (3, "system_prompt.tool_order"),
    (5, "variables.Company"),
    (6, "variables.port"),
    (9, "plugins[1].id"),
    (9, "plugins[1].grants"),
    (10, "plugins[2].use"),
    (11, "agents.r.tools.deny"),
    (12, "sections.tone.enabled"),
]


def test_ten_faults(folder: Folder) -> None:
    """A file with ten faults reports ten, each with file, line and path, in the order of the file."""
    faults = folder.read_faults(TEN)
    assert places(faults) == TEN_PLACES
    assert {fault.file for fault in faults} == {str(folder.path / "foreword.yaml")}


def test_ten_faults_in_toml(folder: Folder) -> None:
    """The same in TOML, whose reader gives no lines: each with file and path, in the order of the file."""
    faults = folder.read_faults(TEN_TOML, "foreword.toml")
    assert places(faults) == [(None, path) for _, path in TEN_PLACES]


def test_the_error_lists_them(folder: Folder) -> None:
    """The error tells the number of faults, then each on a line of its own; it is a ValueError and survives pickling."""
    file = folder.deployment(TEN)
    with pytest.raises(ValueError, match="the deployment has 10 faults:") as caught:
        read_deployment(file)
    error = caught.value
    assert isinstance(error, DeploymentError)
    assert error.kind == "invalid_deployment"
    assert f"\n  {file}:9: plugins[1].id: " in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_yaml_faults_and_others_at_once(folder: Folder) -> None:
    """What the YAML reader refuses is told with what is wrong elsewhere, and nothing is told twice."""
    faults = folder.read_faults("variables: {zip: 010, a: 1, a: x}\nplugins:\n  - {use: !x y}\nnonsense: 1\n")
    assert places(faults) == [
        (2, "variables.zip"),
        (2, "variables.a"),
        (2, "variables.a"),
        (4, "plugins[0].id"),
        (4, "plugins[0].use"),
        (5, "nonsense"),
    ]


def test_a_fault_of_the_syntax(folder: Folder) -> None:
    """Where the syntax breaks, only that is told, with line and column."""
    fault = folder.only_fault("variables: {a: [\nplugins: x\n")
    assert fault.line is not None
    assert "this is no YAML" in fault.message
    fault = folder.only_fault("a = [1,\nb = ", "foreword.toml")
    assert fault.line == 3
    assert "this is no TOML" in fault.message


def test_a_thousand_faults(folder: Folder) -> None:
    """A file with more faults than anybody reads is told the first of them, and that there are more."""
    faults = folder.read_faults("variables:\n" + "".join(f"  v{n}: {n}\n" for n in range(5000)))
    assert len(faults) < 300
    assert any("more faults" in fault.message for fault in faults)


# -- single faults -----------------------------------------------------------------------------------------------------

WRONG = {
    "plugin: []": ("plugin", 'did you mean "plugins"?'),
    "systemprompt: {}": ("systemprompt", 'did you mean "system_prompt"?'),
    "presets: {}": ("presets", "not supported yet"),
    "log: {}": ("log.store", "is missing"),
    "log: sqlite:a.db": ("log", "must be what is said of the log, not a string"),
    "log: {store: ''}": ("log.store", "must be a store"),
    "log: {store: a.db}": ("log.store", "given as sqlite:PATH"),
    "log: {store: 'postgres://u:p@h/d'}": ("log.store", "given as sqlite:PATH"),
    "log: {store: 'sqlite:a.db', keep: 30}": ("log.keep", "must be a time as in 30d"),
    "log: {store: 'sqlite:a.db', keep: 30 days}": ("log.keep", "must be a time as in 30d"),
    "log: {store: 'sqlite:a.db', keep: 0d}": ("log.keep", "must be a time as in 30d"),
    "log: {store: 'sqlite:a.db', content: some}": ("log.content", "must be full or masked or digests"),
    "log: {store: '${env:NO}'}": ("log.store", "NO is not set"),
    "log: {stor: 'sqlite:a.db', store: 'sqlite:a.db'}": ("log.stor", 'did you mean "store"?'),
    "before: x": ("before", "not supported yet"),
    "plugins: [{id: a, use: b, remove: true}]": ("plugins[0].remove", "not supported yet"),
    "plugins: [{id: a, use: b, after: c}]": ("plugins[0].after", "not supported yet"),
    "plugins: [{id: a, use: b, grants: []}]": ("plugins[0].grants", "not supported yet"),
    "agents: {a: {model: x}}": ("agents.a.model", "write provider:model"),
    "agents: {a: {model: 5}}": ("agents.a.model", "must be a model, as in openai:gpt-5, or {use: …, settings: {…}}"),
    "agents: {a: {model: {}}}": ("agents.a.model.use", "is missing"),
    "agents: {a: {model: {use: 'openai:'}}}": ("agents.a.model.use", "write provider:model"),
    "agents: {a: {model: {use: 'a:b', temperature: 0}}}": ("agents.a.model.temperature", "is no key of a model"),
    "agents: {a: {model: {use: 'a:b', settings: [x]}}}": ("agents.a.model.settings", "must be a mapping"),
    "agents: {a: {model: 'openai:${env:HOME}'}}": ("agents.a.model", "secrets belong"),
    "agents: {a: {labels: [x]}}": ("agents.a.labels", "must be a mapping"),
    "agents: {a: {labels: {tenant: 7}}}": ("agents.a.labels.tenant", "put it in quotes"),
    "agents: {a: {preset: x}}": ("agents.a.preset", "not supported yet"),
    "agents: {a: {delegates: []}}": ("agents.a.delegates", "not supported yet"),
    "plugins: {a: b}": ("plugins", "must be a list of plugins, not a mapping"),
    "plugins: [x]": ("plugins[0]", "must be a plugin's entry, not a string"),
    "plugins: [{use: b}]": ("plugins[0].id", "is missing"),
    "plugins: [{id: a}]": ("plugins[0].use", "is missing"),
    "plugins: [{id: 1, use: b}]": ("plugins[0].id", "quotes"),
    "plugins: [{id: '', use: b}]": ("plugins[0].id", "must be a name"),
    "plugins: [{id: 'a b', use: b}]": ("plugins[0].id", "without blanks"),
    "plugins: [{id: a, use: ''}]": ("plugins[0].use", "entry point"),
    "plugins: [{id: a, use: 'b:'}]": ("plugins[0].use", "package.module:name"),
    "plugins: [{id: a, use: './b.py:x'}]": ("plugins[0].use", "package.module:name"),
    "plugins: [{id: a, use: b, config: [1]}]": ("plugins[0].config", "must be a mapping, not a list"),
    "plugins: [{id: a, use: b, disabled: yes}]": ("plugins[0].disabled", "words like others"),
    "plugins: [{id: a, use: b, konfig: {}}]": ("plugins[0].konfig", 'did you mean "config"?'),
    "variables: [a]": ("variables", "must be a mapping"),
    "variables: {a: true}": ("variables.a", "put it in quotes"),
    "variables: {a: 1.5}": ("variables.a", "put it in quotes"),
    "variables: {a: }": ("variables.a", "must be a string, not nothing"),
    "variables: {a-b: x}": ("variables.a-b", "lower-case"),
    "variables: {'': x}": ('variables[""]', "lower-case"),
    "system_prompt: {persona: 5}": ("system_prompt.persona", "a text or {file: PATH}"),
    "system_prompt: {persona: {fil: x, file: x}}": ("system_prompt.persona.fil", 'did you mean "file"?'),
    "system_prompt: {persona: {}}": ("system_prompt.persona.file", "is missing"),
    "system_prompt: {persona: {file: .}}": ("system_prompt.persona.file", "is no plain file"),
    "system_prompt: {persona: {file: no.md}}": ("system_prompt.persona.file", "is not there; paths are relative to"),
    "system_prompt: {persona: {file: bad.md}}": ("system_prompt.persona.file", "not UTF-8"),
    "system_prompt: {persona: {file: \"a\\x01b\"}}": ("system_prompt.persona.file", "is not there"),
    "system_prompt: {include_harness_identity: maybe}": ("system_prompt.include_harness_identity", "true or false"),
    "system_prompt: {identity: x, include_harness_identity: false}": ("system_prompt.identity", "drop one"),
    "system_prompt: {section_ties: size}": ("system_prompt.section_ties", "registration or name"),
    "system_prompt: {tool_order: [a]}": ("system_prompt.tool_order", '"<unlisted-tools>"'),
    "system_prompt: {toolOrder: [a]}": ("system_prompt.toolOrder", '"<unlisted-tools>"'),
    "system_prompt: {tool_order: [1, '<unlisted-tools>']}": ("system_prompt.tool_order[0]", "quotes"),
    "system_prompt: {tool_order: null, toolOrder: null}": ("system_prompt.toolOrder", "same field"),
    "system_prompt: {limits: {text: 0}}": ("system_prompt.limits.text", "must be a positive whole number, not 0"),
    "system_prompt: {limits: {value: -1.5}}": ("system_prompt.limits.value", "must be a positive whole number, not -1.5"),
    "system_prompt: {limits: {text: [3]}}": ("system_prompt.limits.text", "must be a positive whole number, not a list"),
    "system_prompt: {limits: {txt: 9}}": ("system_prompt.limits.txt", 'did you mean "text"?'),
    "system_prompt: {limits: {text: 4}, persona: Hello}": ("system_prompt.persona", "5 bytes"),
    "system_prompt: {limits: {text: 4}, persona: {file: long.md}}": ("system_prompt.persona", "limit of 4"),
    "system_prompt: {limits: {text: 12}, persona: {file: long.md}}": ("system_prompt.persona", "has 13 bytes"),
    "system_prompt: {limits: {value: 4}}\nvariables: {a: Hello}": ("variables.a", "5 bytes"),
    "system_prompt: {personna: x}": ("system_prompt.personna", 'did you mean "persona"?'),
    "agents: {a: {tools: {}}}": ("agents.a.tools", "effect; give allow or deny"),
    "agents: {a: {tools: {allow: bash}}}": ("agents.a.tools.allow", "must be a list"),
    "agents: {a: {tools: {allow: [1]}}}": ("agents.a.tools.allow[0]", "name of a tool"),
    "agents: {a: {tools: {allowed: [], deny: [x]}}}": ("agents.a.tools.allowed", 'did you mean "allow"?'),
    "agents: {a: {persona: {file: no.md}}}": ("agents.a.persona.file", "is not there"),
    "agents: [a]": ("agents", "must be a mapping of agents"),
    "sections: {a: {why: because}}": ("sections.a", "effect"),
    "sections: {a: }": ("sections.a", "not nothing"),
    "sections: {a: {order: first}}": ("sections.a.order", "must be a number"),
    "sections: {a: {order: true}}": ("sections.a.order", "must be a number, not true or false"),
    "sections: {a: {text: x, file: y}}": ("sections.a.file", "drop one"),
    "sections: {a: {file: no.md}}": ("sections.a.file", "is not there"),
    "sections: {a: {text: {file: no.md}}}": ("sections.a.text.file", "is not there"),
    "sections: {a: {enabledd: false, order: 1}}": ("sections.a.enabledd", 'did you mean "enabled"?'),
    "variables: {a: '${env:HOME}'}": ("variables.a", "secrets belong in a plugin's config"),
    "system_prompt: {persona: 'x ${env:HOME}'}": ("system_prompt.persona", "secrets belong"),
    "agents: {a: {persona: '${env:HOME}'}}": ("agents.a.persona", "secrets belong"),
    "sections: {a: {text: '${env:HOME}'}}": ("sections.a.text", "secrets belong"),
    "sections: {a: {enabled: false, why: '${env:HOME}'}}": ("sections.a.why", "secrets belong"),
    "plugins: [{id: '${env:HOME}', use: b}]": ("plugins[0].id", "secrets belong"),
    "plugins: [{id: a, use: b, config: {k: '${env:NO}'}}]": ("plugins[0].config.k", "NO is not set"),
    "plugins: [{id: a, use: b, config: {k: [{j: '${env:NO}'}]}}]": ("plugins[0].config.k[0].j", "NO is not set"),
    "plugins: [{id: a, use: b, config: {k: '${HOME}'}}]": ("plugins[0].config.k", 'write "$${"'),
    "plugins: [{id: a, use: b, config: {k: 'a ${env:1X} b'}}]": ("plugins[0].config.k", "character 3"),
    "plugins: [{id: a, use: b, config: {k: '${env:X:default}'}}]": ("plugins[0].config.k", "begins no expression"),
    "plugins: [{id: a, use: b, config: {k: '${env:X'}}]": ("plugins[0].config.k", "begins no expression"),
    "variables: {a: 'costs ${x}'}": ("variables.a", 'write "$${"'),
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_one_fault(folder: Folder, text: str) -> None:
    """Each mistake is one fault, at its path, that says what to do."""
    folder.write("bad.md", b"ab\xff")
    folder.write("long.md", "much too long")
    path, words = WRONG[text]
    fault = folder.only_fault(text, environment={"HOME": "/home"})
    assert fault.path == path
    assert words in fault.message
    assert fault.line == (3 if "\n" in text else 2)


@pytest.mark.parametrize("version", ["2", "'1'", "true", "1.0", "[1]", "", "one"])
def test_the_version(folder: Folder, version: str) -> None:
    """The first key is the version 1, nothing that looks like it."""
    with pytest.raises(DeploymentError) as caught:
        read_deployment(folder.write("foreword.yaml", f"foreword: {version}\n"))
    assert [fault.path for fault in caught.value.faults] == ["foreword"]
    with pytest.raises(DeploymentError, match="foreword: is missing"):
        read_deployment(folder.write("foreword.yaml", "variables: {}\n"))


@pytest.mark.parametrize("text", ["", "# only a comment\n", "[]", "word", "- foreword: 1"])
def test_no_mapping(folder: Folder, text: str) -> None:
    """A file that is empty, or no mapping, is told how to begin."""
    with pytest.raises(DeploymentError, match="begin it with the line: foreword: 1") as caught:
        read_deployment(folder.write("foreword.yaml", text))
    assert len(caught.value.faults) == 1


@pytest.mark.parametrize(
    ("text", "path"),
    [("[variables]\na = 2026-11-30", "variables.a"), ("[variables]\na = 12:30:00", "variables.a"),
     ("[sections.a]\norder = inf", "sections.a.order"), ("[sections.a]\norder = nan", "sections.a.order"),
     ("plugins = [{id = 'a', use = 'b', config = {n = 9007199254740993}}]", "plugins[0].config.n"),
     ("plugins = [{id = 'a', use = 'b', config = {n = 2026-11-30T12:00:00}}]", "plugins[0].config.n")],
)  # fmt: skip
def test_what_toml_has_beyond_json(folder: Folder, text: str, path: str) -> None:
    """Dates, infinities and huge integers are faults in TOML."""
    assert folder.only_fault(text, "foreword.toml").path == path


def test_deep_toml(folder: Folder) -> None:
    """TOML that is nested deeper than 64, or than Python reads, is a fault."""
    deep = "plugins = [{id = 'a', use = 'b', config = {k = %s}}]"
    assert "64 deep" in folder.only_fault(deep % ("[" * 70 + "]" * 70), "foreword.toml").message
    faults = folder.read_faults(deep % ("[" * 50_000 + "]" * 50_000), "foreword.toml")
    assert len(faults) == 1


def test_bytes_of_toml(folder: Folder) -> None:
    """Invalid UTF-8 and NULs in TOML are faults with their line."""
    for text, line in ((b"foreword = 1\na = '\xff'\n", 2), (b"foreword = 1\na = '\0'\n", 2)):
        with pytest.raises(DeploymentError) as caught:
            read_deployment(folder.write("foreword.toml", text))
        assert [fault.line for fault in caught.value.faults] == [line]


# -- the file itself ---------------------------------------------------------------------------------------------------


def test_files_that_cannot_be_read(folder: Folder, tmp_path: Path) -> None:
    """A file that is not there, no plain file, too large, or no deployment by its name is one fault each."""
    os.mkfifo(tmp_path / "pipe.yaml")
    folder.write("large.yaml", b"#" * (1024 * 1024 + 1))
    folder.write("notes.txt", "foreword: 1")
    cases = {"no.yaml": "is not there", ".": "by its name", "pipe.yaml": "no plain file", "large.yaml": "1,048,576"}
    for name, words in {**cases, "notes.txt": "by its name"}.items():
        with pytest.raises(DeploymentError, match=words) as caught:
            read_deployment(tmp_path / name)
        (fault,) = caught.value.faults
        assert fault.message.startswith(("is ", "has "))
        assert caught.value.__cause__ is None


def test_a_version_of_another_time(folder: Folder) -> None:
    """A number that is not the one number that it may be is told without calling it one."""
    with pytest.raises(DeploymentError) as caught:
        read_deployment(folder.write("foreword.yaml", "foreword: 2\n"))
    assert [fault.message for fault in caught.value.faults] == ["must be 1"]


def test_a_missing_file_names_those_that_are_there(folder: Folder) -> None:
    """Where another deployment file is there, it is named; else the command that writes one."""
    with pytest.raises(DeploymentError, match="foreword init"):
        read_deployment(folder.path / "foreword.yaml")
    folder.write("foreword.toml", "foreword = 1")
    with pytest.raises(DeploymentError, match=r"holds foreword\.toml"):
        read_deployment(folder.path / "foreword.yaml")


def test_names_are_told_as_given(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults name the file as the caller did."""
    monkeypatch.chdir(folder.path)
    folder.write("conf/foreword.yaml", "foreword: 2\n")
    with pytest.raises(DeploymentError, match=r"\n  conf/foreword\.yaml:1: foreword: "):
        read_deployment("conf/foreword.yaml")


def test_limits_are_read(folder: Folder) -> None:
    """Limits are set one by one; the others keep their defaults."""
    limits = folder.read("system_prompt: {limits: {text: 10}}").system_prompt.limits
    assert limits == PromptLimits(text=10)


def test_both_spellings(folder: Folder) -> None:
    """The seeds' spelling of a field is taken, too."""
    config = folder.read(
        "system_prompt: {includeRuntimeContext: false, includeHarnessIdentity: false, toolOrder: ['<unlisted-tools>']}"
    ).system_prompt
    assert (config.include_runtime_context, config.include_harness_identity) == (False, False)
    assert config.tool_order == ("<unlisted-tools>",)


def test_plain_dollars(folder: Folder) -> None:
    """`$${` is a plain `${`, everywhere; other dollars are what they are."""
    deployment = folder.read("variables: {a: '$${env:X} $5 $$ {x}'}\nsections: {b: {text: '$${y}'}}\n")
    assert deployment.variables["a"] == "${env:X} $5 $$ {x}"
    assert deployment.sections["b"].text == "${y}"
