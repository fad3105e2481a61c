"""Make an optimizer of ten parameters from a config node, against other ways to do it.

Peers that are not installed are left out: pip install hydra-zen jsonargparse

python benchmarks/node_to_optimizer.py [--quick] [--json PATH]
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hydra
from fixed_rule import build_by_fixed_rule
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from paired_timing import Pair, run
from torch import nn
from torch.optim import AdamW, Optimizer

from optim_hydra import build_optimizer, compose

# What the group adamw sets, for those that call the class with it.
FIELDS = {"lr": 1e-3, "weight_decay": 0.01, "betas": [0.9, 0.999], "eps": 1e-8}
APP = "defaults: [optim@actor.optim: adamw]\n"


def composed() -> DictConfig:
    """Return the node of a program's config."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "app.yaml").write_text(APP)
        with hydra.initialize_config_dir(folder, version_base=None):
            node: DictConfig = compose("app").actor.optim
    return node


def by_instantiate(module: nn.Module) -> Callable[[], Optimizer]:
    """Return a call of Hydra's own, as its users write it."""
    config = {"_target_": "torch.optim.AdamW", "_partial_": True, **FIELDS}
    node = OmegaConf.create(config)
    return lambda: instantiate(node)(module.parameters())


def by_hydra_zen(module: nn.Module) -> Callable[[], Optimizer]:
    """Return a call of hydra-zen."""
    zen = importlib.import_module("hydra_zen")
    node = zen.builds(AdamW, zen_partial=True, **FIELDS)
    return lambda: zen.instantiate(node)(module.parameters())


def by_jsonargparse(module: nn.Module) -> Callable[[], Optimizer]:
    """Return a call of jsonargparse, which LightningCLI is made of."""
    parser = importlib.import_module("jsonargparse").ArgumentParser(exit_on_error=False)
    parser.add_argument("--optim", type=Callable[[Any], Optimizer])
    arguments = {**FIELDS, "betas": tuple(FIELDS["betas"])}  # type: ignore[arg-type]
    given = {"class_path": "torch.optim.AdamW", "init_args": arguments}
    config = parser.parse_object({"optim": given})
    return lambda: parser.instantiate_classes(config).optim(module.parameters())


def by_rule(module: nn.Module) -> Callable[[], Optimizer]:
    """Return a call of the rule that verl has, on values that were read."""
    fields = {key: FIELDS[key] for key in ("lr", "weight_decay", "betas")}
    return lambda: build_by_fixed_rule(
        module.parameters(), "torch.optim", "AdamW", fields, {"eps": 1e-8}
    )


def by_hand(module: nn.Module) -> Callable[[], Optimizer]:
    """Return a call of the class."""
    return lambda: AdamW(module.parameters(), lr=1e-3, weight_decay=0.01)


PEERS = {
    "hydra": ("hydra.utils.instantiate", by_instantiate, 0.05),
    "hydra_zen": ("hydra_zen.instantiate", by_hydra_zen, 0.05),
    "jsonargparse": ("jsonargparse", by_jsonargparse, None),
    "verl": ("verl's rule, nothing read or checked", by_rule, None),
    "torch": ("the class by hand", by_hand, None),
}
OURS = ("verl", "torch")


def make_pairs(is_quick: bool) -> Iterator[Pair]:
    """Yield a pair for each peer."""
    module = nn.ModuleList(nn.Linear(2, 2) for _ in range(5))
    ours = functools.partial(build_optimizer, module, composed())
    for name, (against, make, wanted) in PEERS.items():
        if name in OURS or importlib.util.find_spec(name):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Hydra, about every class called
                call = make(module)
                call()
            rounds, calls = (2, 2) if is_quick else (51, 20)
            yield Pair("node to optimizer", against, ours, call, rounds, calls, wanted)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=r"hydra.utils.instantiate\(\) resolved")
    run(__doc__ or "", make_pairs)
