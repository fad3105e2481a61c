"""Random modules with ties and frozen parameters, and random rules for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import nn

# All widths are 4, so that parameters of different modules can be tied.
LEAVES = {
    "Linear": lambda: nn.Linear(4, 4),
    "LayerNorm": lambda: nn.LayerNorm(4),
    "Embedding": lambda: nn.Embedding(4, 4),
    "Conv1d": lambda: nn.Conv1d(4, 4, 1),
    "scalar": lambda: nn.Parameter(torch.ones(())),
    "vector": lambda: nn.Parameter(torch.ones(4)),
    "matrix": lambda: nn.Parameter(torch.ones(4, 4)),
}
TYPES = ["Linear", "LayerNorm", "Embedding", "Conv1d", "_ConvNd", "Nest", "Module"]
INDEX = st.integers(0, 30)
FACTORS = st.sampled_from([0.25, 0.5, 1.0, 2.0])  # multiply without rounding
TREES = st.recursive(
    st.sampled_from(list(LEAVES)),
    lambda children: st.lists(children, min_size=1, max_size=4),
    max_leaves=8,
)
MATCHERS = [
    {"pattern"},
    {"module_type"},
    {"ndim"},
    {"min_ndim"},
    {"pattern", "min_ndim"},
    {"module_type", "ndim"},
]
VALUES = [
    {"freeze"},
    {"lr"},
    {"lr_mult"},
    {"weight_decay"},
    {"weight_decay_mult"},
    {"optimizer"},
    {"optimizer", "lr"},
    {"optimizer", "lr_mult", "weight_decay"},
]


class Nest(nn.Module):
    """A module of leaves, bare parameters and nests, called after what they are."""

    def __init__(self, tree: list[Any]) -> None:
        super().__init__()
        for index, item in enumerate(tree):
            if isinstance(item, list):
                setattr(self, f"nest{index}", Nest(item))
            else:
                setattr(self, f"{item.lower()}{index}", LEAVES[item]())


@dataclass(frozen=True)
class Place:
    """Where a parameter stands; a tied one stands in several places."""

    owner: nn.Module
    name: str
    parameter: nn.Parameter


def places(model: nn.Module) -> list[Place]:
    return [
        Place(model.get_submodule(name.rpartition(".")[0]), name, parameter)
        for name, parameter in model.named_parameters(remove_duplicate=False)
    ]


@dataclass(frozen=True)
class Plan:
    """What a model is made from, so that it can be made again."""

    tree: list[Any]
    ties: list[tuple[int, int]]
    frozen: list[int]

    def model(self) -> nn.Module:
        torch.manual_seed(0)
        model = Nest(self.tree)
        for first, second in self.ties:
            found = places(model)
            kept = found[first % len(found)].parameter
            alike = [
                place
                for place in found
                if place.parameter.shape == kept.shape and place.parameter is not kept
            ]
            if alike:
                replaced = alike[second % len(alike)]
                setattr(replaced.owner, replaced.name.rpartition(".")[2], kept)
        parameters = list(model.parameters())
        for index in self.frozen:
            parameters[index % len(parameters)].requires_grad_(False)
        return model


@st.composite
def patterns(draw: st.DrawFn, names: list[str]) -> str:
    """Replace a segment of a name, all before or all after it, by a star, or none."""
    segments = draw(st.sampled_from(names)).split(".")
    at = draw(st.integers(0, len(segments) - 1))
    ways = [
        segments,
        [*segments[:at], "*", *segments[at + 1 :]],
        ["*", *segments[at + 1 :]],
        [*segments[:at], "*"],
        [*segments[:at], f"{segments[at][:3]}*", *segments[at + 1 :]],
    ]
    return ".".join(draw(st.sampled_from(ways)))


@st.composite
def rules(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    ways = {
        "pattern": patterns(names),
        "module_type": st.sampled_from(TYPES),
        "ndim": st.integers(0, 3),
        "min_ndim": st.integers(0, 3),
        "freeze": st.just(True),
        "lr": st.just(0.125),
        "lr_mult": FACTORS,
        "weight_decay": st.sampled_from([0.0, 0.25]),
        "weight_decay_mult": FACTORS,
        "optimizer": st.sampled_from(["AdamW", "SGD"]),
    }
    keys = draw(st.sampled_from(MATCHERS)) | draw(st.sampled_from(VALUES))
    return {**{key: draw(ways[key]) for key in sorted(keys)}, "expect": 0}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Plan, dict[str, Any]]:
    """Draw a model's plan and the node of its optimizer."""
    plan = Plan(
        draw(st.lists(TREES, min_size=2, max_size=4)),
        draw(st.lists(st.tuples(INDEX, INDEX), max_size=4)),
        draw(st.lists(INDEX, max_size=3)),
    )
    names = [place.name for place in places(plan.model())]
    config = {
        "optimizer": draw(st.sampled_from(["AdamW", "SGD"])),
        "lr": 0.25,
        "weight_decay": draw(st.sampled_from([0.0, 0.25, 0.5])),
        "no_decay": draw(st.sampled_from([[], ["1d"]])),
        "param_groups": draw(st.lists(rules(names), max_size=5)),
    }
    return plan, config
