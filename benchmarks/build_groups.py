"""Build an optimizer from rules, against torch alone and against a regex loop.

python benchmarks/build_groups.py [--quick] [--json PATH]
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from paired_timing import Pair, run
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from optim_hydra import build_optimizer

Config = dict[str, Any]
LR = 1e-3
MANY = 10_000
TENSORS_PER_BLOCK = 10


class Block(nn.Module):
    """Ten tensors of one number, called as in a transformer."""

    def __init__(self) -> None:
        """Make the five layers."""
        super().__init__()
        self.norm = nn.LayerNorm(1)
        self.attention = nn.ModuleDict({n: nn.Linear(1, 1) for n in ("qkv", "out")})
        self.mlp = nn.ModuleDict({n: nn.Linear(1, 1) for n in ("up", "down")})


class Model(nn.Module):
    """Many tiny tensors, `blocks.17.attention.qkv.weight` and the like."""

    def __init__(self, num_tensors: int) -> None:
        """Make as many blocks as that takes."""
        super().__init__()
        number = num_tensors // TENSORS_PER_BLOCK
        self.blocks = nn.ModuleList(Block() for _ in range(number))


class Vectors(nn.Module):
    """Blocks of one tensor each."""

    def __init__(self, num_tensors: int) -> None:
        """Make the blocks."""
        super().__init__()
        layers = (nn.Linear(1, 1, bias=False) for _ in range(num_tensors))
        self.blocks = nn.ModuleList(nn.ModuleDict({"linear": each}) for each in layers)


# The same split twice, for globs with a module type and for regular expressions.
TEN_RULES = [
    {"pattern": "blocks.17.mlp.up.weight"},
    {"pattern": "blocks.18.norm.bias"},
    {"pattern": "blocks.17.*"},
    {"pattern": "blocks.18.*"},
    {"pattern": "blocks.19.attention.*"},
    {"module_type": "LayerNorm"},
    {"pattern": "*.bias"},
    {"pattern": "*.out.weight"},
    {"pattern": "blocks.*.down.*"},
    {"pattern": "blocks.1*.attention.qkv.weight"},
]
TEN_REGEXES = [
    r"^blocks\.17\.mlp\.up\.weight$",
    r"^blocks\.18\.norm\.bias$",
    r"^blocks\.17\.",
    r"^blocks\.18\.",
    r"^blocks\.19\.attention\.",
    r"\.norm\.",
    r"\.bias$",
    r"\.out\.weight$",
    r"^blocks\..*\.down\.",
    r"^blocks\.1.*\.attention\.qkv\.weight$",
]


def many_rules(number: int) -> list[Config]:
    """Return rules for single tensors, blocks, a module type and the biases."""
    general = [{"module_type": "LayerNorm"}, {"pattern": "*.bias"}]
    blocks = range((number - len(general)) // 2)
    single = [f"blocks.{i}.mlp.up.weight" for i in blocks]
    whole = [f"blocks.{i}.*" for i in blocks]
    return [{"pattern": pattern} for pattern in single + whole] + general


def multiple(index: int) -> float:
    """Return a share of lr for a rule; no two rules have the same."""
    return 1.0 / (2.0 + index)


def with_rules(rules: list[Config]) -> Config:
    """Return a node in which each rule has a learning rate of its own."""
    rules = [{**rule, "lr_mult": multiple(i)} for i, rule in enumerate(rules)]
    return {"lr": LR, "param_groups": rules}


def regex_loop(model: nn.Module, regexes: list[str]) -> Optimizer:
    """Build from the first regular expression found in each name."""
    groups: list[list[Tensor]] = [[] for _ in range(len(regexes) + 1)]
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            for index, regex in enumerate(regexes):
                if re.search(regex, name):
                    groups[index + 1].append(parameter)
                    break
            else:
                groups[0].append(parameter)
    rates = [LR, *(LR * multiple(index) for index in range(len(regexes)))]
    pairs = zip(groups, rates, strict=True)
    return AdamW([{"params": group, "lr": lr} for group, lr in pairs if group])


def torch_alone(model: nn.Module) -> Optimizer:
    """Build without any rule."""
    return AdamW(model.named_parameters(), lr=LR)


def same_groups(first: Optimizer, second: Optimizer) -> bool:
    """Whether two optimizers have the same parameters under the same rates."""
    groups = [
        [(group["lr"], list(map(id, group["params"]))) for group in each.param_groups]
        for each in (first, second)
    ]
    return groups[0] == groups[1]


def make_pairs(is_quick: bool) -> Iterator[Pair]:
    """Yield the pairs; each model is made when its turn comes."""
    sizes = {300: 2, 1_000: 2} if is_quick else {1_000: 21, 10_000: 11, 100_000: 3}
    many = 20 if is_quick else 1_000
    for size, rounds in sizes.items():
        model = Model(size)
        configs = {
            "no rules": with_rules([]),
            "10 rules": with_rules(TEN_RULES),
            "no_decay": {"lr": LR, "no_decay": ["bias", "norm"]},
        }
        if size >= 10 * many:
            configs[f"{many:,} rules"] = with_rules(many_rules(many))
        plain = "AdamW(module.named_parameters())"
        other = functools.partial(torch_alone, model)
        for name, config in configs.items():
            ours = functools.partial(build_optimizer, model, config)
            yield Pair(f"{name}, {size:,} tensors", plain, ours, other, rounds)
        yield from against_regexes(model, size, rounds)
    yield from many_groups(100 if is_quick else 1_000)


def against_regexes(model: nn.Module, size: int, rounds: int) -> Iterator[Pair]:
    """Yield the pair of ten rules and ten regular expressions."""
    ours = functools.partial(build_optimizer, model, with_rules(TEN_RULES))
    loop = functools.partial(regex_loop, model, TEN_REGEXES)
    if not same_groups(ours(), loop()):
        msg = "rules and regular expressions make different groups"
        raise RuntimeError(msg)
    case, wanted = f"10 rules, {size:,} tensors", 0.5 if size >= MANY else None
    yield Pair(case, "loop of 10 regexes", ours, loop, rounds, wanted=wanted)
    for name, (against, make) in FACTORIES.items():
        try:
            factory = make()
        except ModuleNotFoundError:
            print(f"{name} is not installed, or what it imports")  # noqa: T201
            continue
        node = {"lr": LR, "no_decay": ["bias", "norm"]}
        ours = functools.partial(build_optimizer, model, node)
        call = functools.partial(factory, model)
        case = f"no_decay, {size:,} tensors"
        yield Pair(case, against, ours, call, rounds, wanted=wanted)


def of_timm() -> Callable[[nn.Module], Optimizer]:
    """Return timm's factory; timm needs torchvision."""
    make = importlib.import_module("timm.optim").create_optimizer_v2
    return lambda model: make(model, opt="adamw", lr=LR, weight_decay=0.01)


def of_pytorch_optimizer() -> Callable[[nn.Module], Optimizer]:
    """Return pytorch_optimizer's factory."""
    make = importlib.import_module("pytorch_optimizer").create_optimizer
    return lambda model: make(model, "adamw", lr=LR, weight_decay=0.01)


FACTORIES = {
    "timm": ("timm.optim.create_optimizer_v2", of_timm),
    "pytorch_optimizer": ("pytorch_optimizer's factory", of_pytorch_optimizer),
}


def many_groups(size: int) -> Iterator[Pair]:
    """Yield the pairs in which each tensor is a group by itself."""
    model = Vectors(size)
    named = list(model.named_parameters())
    pairs = [(p, LR * multiple(i)) for i, (_, p) in enumerate(named)]
    rules = with_rules([{"pattern": name} for name, _ in named])
    decay = {"lr": LR, "layer_decay": {"factor": 0.999}}

    def dicts() -> list[Config]:
        return [{"params": [parameter], "lr": lr} for parameter, lr in pairs]

    def alone() -> Optimizer:
        return AdamW(dicts(), lr=LR)

    cases = {
        "group dicts": lambda: build_optimizer(dicts(), {"lr": LR}),
        "one rule each": lambda: build_optimizer(model, rules),
        "layer decay": lambda: build_optimizer(model, decay),
    }
    for name, call in cases.items():
        if len(call().param_groups) != size:
            msg = f"{name}: the groups are not {size}"
            raise RuntimeError(msg)
        case = f"{size:,} groups of {size:,} tensors, {name}"
        wanted = 0.05 if size > MANY // 20 else None
        yield Pair(case, "AdamW(list of groups)", call, alone, 9, wanted=wanted)


if __name__ == "__main__":
    run(__doc__ or "", make_pairs)
