"""The JSON Schema says of a file what the library says of it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from omegaconf import OmegaConf
from typer.testing import CliRunner

from optim_hydra import OptimConfig, ParamGroupConfig
from optim_hydra.checking import read_config
from optim_hydra.cli.app import app
from optim_hydra.cli.schema import schema_text
from optim_hydra.errors import Problems
from optim_hydra.json_schema import node_schema
from optim_hydra.node import read_node
from optim_hydra.renamed_keys import RENAMED_KEYS

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "conf/optim.schema.json"
GROUPS = sorted((ROOT / "conf/optim").glob("*.yaml"))
README = (ROOT / "README.md").read_text()
VALIDATOR = jsonschema.Draft7Validator(node_schema())


def test_the_shipped_schema_is_current_and_is_a_schema() -> None:
    # After a change: optim-hydra schema -o conf/optim.schema.json
    assert SHIPPED.read_text() == schema_text()
    jsonschema.Draft7Validator.check_schema(node_schema())


def test_the_command_prints_and_writes_it(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["schema"]).stdout == schema_text()
    file = tmp_path / "optim.schema.json"
    assert CliRunner().invoke(app, ["schema", "-o", str(file)]).stdout == ""
    assert file.read_text() == schema_text()


def test_the_shipped_groups_validate_and_name_the_schema() -> None:
    assert GROUPS
    for file in GROUPS:
        first = file.read_text().partition("\n")[0]
        assert first == "# yaml-language-server: $schema=../optim.schema.json"
        assert (file.parent / first.partition("$schema=")[2]).resolve() == SHIPPED
        # Hydra reads numbers as YAML 1.2 does; PyYAML takes 1e-3 for text.
        loaded = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
        for content in (loaded, yaml.safe_load(file.read_text())):
            VALIDATOR.validate(content)


def test_groups_of_the_readme_validate() -> None:
    texts = re.findall(
        r"^# conf/optim/\S+\n(.*?)^```", README, re.MULTILINE | re.DOTALL
    )
    assert len(texts) >= 5
    for text in texts:
        VALIDATOR.validate(yaml.safe_load(text))


def test_every_field_is_described_and_has_its_default() -> None:
    schema = node_schema()
    for cls, described in (
        (OptimConfig, schema["properties"]),
        (ParamGroupConfig, schema["definitions"]["rule"]["properties"]),
    ):
        names = [f.name for f in dataclasses.fields(cls) if f.name[0] != "_"]
        assert [name for name in described if name in names] == names
        assert all(described[name]["description"] for name in names)
    assert schema["properties"]["lr"]["default"] == 1e-3
    assert schema["properties"]["betas"]["default"] == [0.9, 0.999]
    assert "wsd" in schema["properties"]["lr_scheduler_type"]["anyOf"][0]["enum"]


RIGHT: list[dict[str, Any]] = [
    {},
    {"lr": 0, "weight_decay": "1e-2", "betas": [0, 0.5, 0.9], "eps": None},
    {"lr": "???", "betas": "${..betas}", "total_training_steps": "${steps}"},
    {"lr": "${oc.env:LR,0.1}", "strict": "${strict}", "param_groups": "${rules}"},
    {"betas": ["${beta1}", 0.9], "no_decay": "${roles}", "layer_decay": "${layers}"},
    {"override_optimizer_config": None, "clip_grad": 0.5, "eps": 0},
    {"override_optimizer_config": {"momentum": 0.9, "nested": {"a": [1]}}},
    {"lr_warmup_steps": None, "total_training_steps": 1e3},
    {"lr_warmup_steps": -1, "lr_warmup_steps_ratio": 1.0},
    {"param_groups": [{"pattern": "a.*", "lr": 1e-3, "betas": None, "expect": 0}]},
    {"param_groups": [{"role": ["bias", "norm"], "freeze": True}, {"role": "head"}]},
    {"param_groups": [{"regex": r"\.bias$", "optimizer": "SGD", "lr_mult": "2"}]},
    {"layer_decay": {"factor": 0.5, "layers": ["a.*"]}, "no_decay": ["1d"]},
    {"layer_decay": None},
    {"implementation": "fused", "on_resume": "strict", "lr_scheduler_type": "wsd"},
]
WRONG: list[dict[str, Any]] = [
    {"lrr": 1e-3},
    {"min_lr": 1e-5},
    {"lr": -1},
    {"lr": None},
    {"lr": "fast"},
    {"lr": True},
    {"betas": [0.9]},
    {"betas": [0.9, 1.0]},
    {"betas": 0.9},
    {"clip_grad": 0},
    {"eps": -1e-8},
    {"weight_decay": [0.1]},
    {"optimizer": ""},
    {"optimizer": None},
    {"override_optimizer_config": [1]},
    {"override_optimizer_config": {"_target_": "os.system"}},
    {"implementation": "fast"},
    {"lr_warmup_steps": 1.5},
    {"lr_warmup_steps": -2},
    {"total_training_steps": 0},
    {"total_training_steps": None},
    {"lr_warmup_steps_ratio": 10},
    {"lr_decay_style": "steep"},
    {"num_cycles": 0},
    {"strict": "yes"},
    {"no_decay": "bias"},
    {"no_decay": ["biases"]},
    {"param_groups": [{"lr": 1e-3}]},
    {"param_groups": [{"pattern": "a", "clip_grad": 1}]},
    {"param_groups": [{"pattern": "a", "lr_mult": -1}]},
    {"param_groups": {"pattern": "a"}},
    {"param_groups": ["a"]},
    {"layer_decay": {"factor": 1.5}},
    {"layer_decay": {"factors": 0.5}},
    {"layer_decay": 0.5},
    {"on_resume": "never"},
]


# What the references above lead to.
AROUND = {
    "betas": [0.9, 0.99],
    "steps": 100,
    "strict": False,
    "rules": [{"ndim": 1, "lr": 0.5}],
    "beta1": 0.5,
    "roles": ["bias"],
    "layers": {"factor": 0.5},
}


def problems_of(content: dict[str, Any]) -> list[str]:
    """Return what the library says of a node in a config."""
    problems = Problems("")
    config = OmegaConf.create({**AROUND, "optim": content})
    read_config(read_node(config.optim), problems, allow_open=True)
    return list(map(str, problems.found))


def test_what_the_library_accepts_validates() -> None:
    for content in RIGHT:
        assert [error.message for error in VALIDATOR.iter_errors(content)] == []
        assert problems_of(content) == []


def test_what_the_library_refuses_does_not_validate() -> None:
    for content in WRONG:
        assert list(VALIDATOR.iter_errors(content)), content
        assert problems_of(content), content


def test_old_keys_are_marked_and_checked_as_the_new_ones() -> None:
    properties = node_schema()["properties"]
    for old, renamed in RENAMED_KEYS.items():
        text = f"{old} is now {renamed.new}; the old key is removed in 1.0.0"
        assert properties[old]["deprecationMessage"] == text
        assert properties[old]["deprecated"] is True
    assert VALIDATOR.is_valid({"grad_clip": 1.0, "warmup_style": None})
    assert not VALIDATOR.is_valid({"grad_clip": -1.0})
    assert not VALIDATOR.is_valid({"warmup_steps_ratio": 10})


def test_the_file_is_plain_json() -> None:
    assert json.loads(SHIPPED.read_text()) == node_schema()
