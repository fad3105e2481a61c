"""Start programs with the library, against Hydra alone: CPU seconds of the processes.

The two programs have the same keys; bare, the nodes are YAML without a schema.

python benchmarks/startup.py [--quick] [--json PATH]
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from omegaconf import OmegaConf
from paired_timing import Pair, children_time, run

NODES = {"actor": "adamw", "critic": "sgd"}
APP = "defaults: [optim@actor.optim: adamw, optim@critic.optim: sgd, _self_]\nseed: 1\n"
PROGRAM = """\
import {module}

@{module}.main({arguments}config_path="{folder}", config_name="app")
def main(cfg): ...

main()
"""
WITH_TORCH = "import torch\n"


def write_programs(folder: Path) -> None:
    """Write a program with the library, and the same without."""
    for name, module in (("ours", "optim_hydra"), ("bare", "hydra")):
        (folder / name / "optim").mkdir(parents=True)
        (folder / name / "app.yaml").write_text(APP)
        arguments = "version_base=None, " if name == "bare" else ""
        program = PROGRAM.format(module=module, arguments=arguments, folder=name)
        (folder / f"{name}.py").write_text(program)
    (folder / "with_torch.py").write_text(WITH_TORCH + program)
    shown = start("ours.py", "--cfg", "job", folder=folder)
    config = OmegaConf.create(shown)
    for module, group in NODES.items():
        node = config[module].optim
        keys = [key for key in node if not str(key).startswith("_")]
        text = OmegaConf.to_yaml(OmegaConf.masked_copy(node, keys))
        target = f"_target_: torch.optim.{node.optimizer}\n"
        (folder / "bare/optim" / f"{group}.yaml").write_text(target + text)


def start(*command: str, folder: Path) -> str:
    """Run Python with a command, and return what it prints."""
    # Bytecode is written once, as an installed package has it.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, *command],
        cwd=folder,
        env=kept,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def make_pairs(is_quick: bool) -> Iterator[Pair]:
    """Yield the pairs; each call is a process from start to end."""
    rounds = 2 if is_quick else 21
    job = ("--cfg", "job")
    cases = [
        ("import optim_hydra", "import hydra", 1.1),
        ("--cfg job", "the same of bare Hydra", 1.1),
        ("--cfg job", "bare Hydra that imports torch", None),
        ("--help", "the same of bare Hydra", None),
    ]
    commands = [
        (("-c", "import optim_hydra"), ("-c", "import hydra")),
        (("ours.py", *job), ("bare.py", *job)),
        (("ours.py", *job), ("with_torch.py", *job)),
        (("ours.py", "--help"), ("bare.py", "--help")),
    ]
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_programs(folder)
        for case, pair in zip(cases, commands, strict=True):
            ours, other = (functools.partial(start, *c, folder=folder) for c in pair)
            what, against, wanted = case
            yield Pair(what, against, ours, other, rounds, 1, wanted, children_time)


if __name__ == "__main__":
    run(__doc__ or "", make_pairs)
