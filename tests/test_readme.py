"""Everything in the README runs: files, snippets, commands, tables."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
from importlib.metadata import version
from pathlib import Path

import hydra
import pytest
import yaml

import optim_hydra
from optim_hydra import OptimConfig, OptimHydraError, build_optimizer
from optim_hydra.renamed_keys import RENAMED_KEYS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FENCES = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
# Appended to a command, so that it is quick; it is otherwise run as it stands.
QUICK = {
    "actor_critic.py": (
        "num_envs=2 num_steps=32 total_env_steps=128 num_epochs=1 eval_episodes=1"
    ),
    "sft.py": (
        "num_steps=40 eval_interval=40 model.width=16"
        " data.num_bytes=20000 data.sequence_length=16"
    ),
}
QUICK["muon_transformer.py"] = QUICK["sft.py"]


def files() -> dict[str, str]:
    """Return the files that the README shows, by the path in their first line."""
    texts = [text for _, text in FENCES if re.match(r"# \S+\.(py|yaml)\n", text)]
    return {text.partition("\n")[0][2:]: text for text in texts}


def commands() -> list[str]:
    lines = [
        line for kind, text in FENCES if kind == "bash" for line in text.splitlines()
    ]
    return [line for line in lines if line.startswith("python ")]


def snippets() -> list[str]:
    shown = files().values()
    return [text for kind, text in FENCES if kind == "python" and text not in shown]


def rows_after(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading."""
    section = README.split(f"## {heading}\n", 1)[1]
    lines = section[section.index("|---") :].splitlines()[1:]
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return table


def test_the_readme_has_what_is_tested_here() -> None:
    groups = {
        "my_sgd",
        "my_groups",
        "my_lookahead",
        "lora_plus",
        "four_times_as_wide",
    }
    expected = {
        "train.py",
        "conf/config.yaml",
        *(f"conf/optim/{g}.yaml" for g in groups),
    }
    assert set(files()) == expected
    assert len(commands()) >= 20
    assert len(snippets()) >= 6


@pytest.mark.parametrize("command", commands())
def test_a_command_runs(command: str, tmp_path: Path, run_fresh, run_python) -> None:
    for name, text in files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    _, program, *args = shlex.split(command)
    name = Path(program).name
    if name in QUICK:
        program, args = str(ROOT / program), [*args, *QUICK[name].split()]
        args.append("progress=false")
    # Workers of a launcher start from the program's own process.
    run = run_fresh if "joblib" in command else run_python
    result = run(program, *args)
    assert result.returncode == 0, result.stderr
    if name in QUICK:
        assert list(tmp_path.rglob("learning_curve.png"))


def cli_commands() -> list[str]:
    section = README.split("## Choosing and checking")[1].split("## Speed")[0]
    return re.findall("^optim-hydra .*", section, re.MULTILINE)


@pytest.mark.parametrize("command", cli_commands())
def test_a_command_of_ours_runs(command: str, tmp_path: Path, run_python) -> None:
    for name in ("conf", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    start = "from optim_hydra.cli.app import run; run()"
    result = run_python("-c", start, *shlex.split(command)[1:])
    assert result.returncode == 0, result.stderr
    assert result.stdout or "schema" in command


@pytest.mark.parametrize("snippet", snippets(), ids=lambda text: text.splitlines()[0])
def test_a_snippet_runs(snippet: str, run_python) -> None:
    result = run_python("-c", snippet)
    assert result.returncode == 0, result.stderr


def test_the_migration_snippet_prints_new_keys(run_python) -> None:
    snippet = next(text for text in snippets() if "print(migrate(" in text)
    assert run_python("-c", snippet).stdout == (
        "['++critic.optim.clip_grad=1.0']\n"
        "{'critic': {'optim': {'lr_scheduler_type': 'cosine'}}}\n"
    )


def test_the_key_table_lists_every_field_with_its_default() -> None:
    table = {row[0].strip("`"): row[1].strip("`") for row in rows_after("Keys")}
    fields = {f.name: f for f in dataclasses.fields(OptimConfig) if f.name[0] != "_"}
    assert list(table) == list(fields)
    defaults = OptimConfig()
    for name, text in table.items():
        default = getattr(defaults, name)
        default = list(default) if isinstance(default, tuple) else default
        if dataclasses.is_dataclass(default):
            default = dataclasses.asdict(default)
        assert yaml.safe_load(text) == default


@pytest.mark.parametrize(
    "row", rows_after("Errors, and what to type"), ids=lambda row: row[0]
)
def test_the_error_table_says_what_is_said(row: list[str], module) -> None:
    typed, message = row[0].strip("`"), row[1]

    def compose_and_build() -> None:
        cfg = optim_hydra.compose("actor_critic", [typed])
        build_optimizer(module, cfg.critic.optim)

    with (
        hydra.initialize(version_base=None),
        pytest.raises(OptimHydraError) as caught,
    ):
        compose_and_build()
    expected = message.replace("torch 2.13.0", f"torch {version('torch')}")
    assert str(caught.value) == expected


def test_the_table_of_renamed_keys_is_the_librarys() -> None:
    table = [[cell.strip("`") for cell in row] for row in rows_after("Renamed keys")]
    assert table == [[k.old, k.new, k.removed_in] for k in RENAMED_KEYS.values()]


def test_the_groups_listed_are_the_groups_shipped() -> None:
    section = README.split("Groups in `conf/optim`: ")[1].split(";")[0]
    listed = re.findall(r"`(\w+)`", section)
    assert listed == sorted(path.stem for path in (ROOT / "conf/optim").glob("*.yaml"))


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
