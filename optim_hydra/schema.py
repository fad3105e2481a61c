"""Own the dataclasses that stand behind every optimizer node, and their checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from optim_hydra.errors import Problems, UnknownKeyError
from optim_hydra.field_checks import CHECKS, instead_of
from optim_hydra.schema_groups import check_rules
from optim_hydra.schema_layers import LayerDecayConfig, check_layer_decay
from optim_hydra.value_checks import Refused, is_open

__all__ = [
    "ActorCriticConfig",
    "ModuleConfig",
    "OptimConfig",
    "check_fields",
    "config_of",
]

TARGET = "${optim_target:${.optimizer_impl},${.optimizer}}"
FULL_KEY = "${optim_full_key:}"


def _open_dict() -> Any:
    # The struct flag is off on this child alone: `node.override_optimizer_config.k=1`
    # works without `+`, wherever the node is mounted, and `node.lrr=1` still fails.
    return DictConfig({}, flags={"struct": False})


def _open_list() -> Any:
    # As _open_dict, for the rules in it.
    return ListConfig([], flags={"struct": False})


_OPEN_ENDED = (
    "override_optimizer_config",
    "override_lr_scheduler_config",
    "param_groups",
)


@dataclass(slots=True, kw_only=True)
class OptimConfig:
    """Describe one optimizer with its schedule; mount it anywhere in a config.

    Values are checked when an instance is made and when an optimizer is built from
    a node; `???` and `${...}` are left for Hydra to fill.

    Raises:
        ConfigError: Values are of the wrong kind or out of range; all are listed.

    Example:
        >>> OptimConfig(lr="3e-4", betas=[0, 0.95]).betas
        (0.0, 0.95)
        >>> OptimConfig(lr=-1.0)
        Traceback (most recent call last):
        optim_hydra.errors.ConfigError: -1.0 is not a finite float >= 0 @ lr

    """

    _target_: str = TARGET
    """Set by the library: what `hydra.utils.instantiate` calls for this class."""
    _recursive_: bool = False
    """Set by the library: nothing below the node is instantiated by Hydra."""
    _full_key_: str = field(default=FULL_KEY, repr=False, compare=False)
    """Set by the library: where the node stands, for errors away from the config."""

    optimizer: str = "AdamW"
    """Class name (`_AdamW` too), registered short name, or dotted path."""
    optimizer_impl: str = "torch.optim"
    """Module that has the class, such as `torchao.optim`."""
    override_optimizer_config: dict[str, Any] | None = field(default_factory=_open_dict)
    """Further constructor arguments; null means none."""
    lr: float = 1e-3
    """Learning rate, >= 0."""
    weight_decay: float = 0.01
    """>= 0; what it means is up to the class (AdamW decouples it, Adam does not)."""
    betas: tuple[float, ...] = (0.9, 0.999)
    """Each in [0, 1); as many as the class's own default has."""
    eps: float | None = None
    """>= 0; null takes the class's own."""
    clip_grad: float | None = None
    """Largest gradient norm over all parameters, > 0, applied before each step."""
    implementation: str | None = None
    """fastest, foreach, fused or for-loop; null leaves it to the class."""
    compile_step: bool = False
    """Whether torch.compile compiles the step; lr is a tensor then."""
    step_in_backward: bool = False
    """Update each parameter in backward(), and free its gradient there."""

    lr_scheduler_type: str = "constant"
    """A registered schedule, such as constant, linear, cosine, wsd or your own; or the
    dotted path of a class, such as torch.optim.lr_scheduler.StepLR."""
    override_lr_scheduler_config: dict[str, Any] | None = field(
        default_factory=_open_dict
    )
    """Constructor arguments of a scheduler class; null means none."""
    lr_warmup_steps: int | None = -1
    """Steps; -1 or null takes the ratio; 0 is no warmup, even if a ratio is set."""
    lr_warmup_steps_ratio: float = 0.0
    """Share of `total_training_steps`, in [0, 1]."""
    lr_warmup_init_ratio: float = 0.0
    """Factor at the first warmup step, in [0, 1]."""
    total_training_steps: int = -1
    """Optimizer steps in all, warmup included; -1: the trainer gives it."""
    min_lr_ratio: float | None = None
    """Floor as a share of lr, in [0, 1]; null means 0."""
    num_cycles: float = 0.5
    """Cosine waves after the warmup, > 0: 0.5 is one way down; or restarts, from 1."""
    lr_decay_steps_ratio: float = 0.1
    """Share of all steps in which `wsd` decays, in [0, 1]."""
    lr_decay_style: str = "linear"
    """How `wsd` decays: linear, cosine, sqrt or exponential."""
    lr_decay_power: float = 1.0
    """Exponent of `polynomial`, > 0: 1 is linear."""
    zero_indexed_step: bool = True
    """Warmup factor k/W at step k (as verl); false: (k+1)/W (as torchtitan)."""

    param_groups: list[Any] = field(default_factory=_open_list)
    """Rules for some of the parameters, each a `ParamGroupConfig`; first match wins."""
    no_decay: list[str] = field(default_factory=list)
    """Of bias, norm, embedding, 1d: those get weight_decay 0."""
    layer_decay: LayerDecayConfig | None = field(default_factory=LayerDecayConfig)
    """Multiplies lr layer by layer: `{factor: 0.75, layers: [...]}`."""

    on_resume: str = "config"
    """Whose settings a resumed run has: config, checkpoint, or strict (equal ones)."""
    strict: bool = True
    """False: values that the class or schedule does not take only warn (sweeps)."""

    def __post_init__(self) -> None:
        """Check and convert the values; open references stay as they are."""
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in _OPEN_ENDED:
            if isinstance(given[name], (DictConfig, ListConfig)):
                del given[name]  # the open default, see _open_dict
        problems = Problems("" if is_open(self._full_key_) else self._full_key_)
        for name, value in check_fields(given, problems).items():
            setattr(self, name, value)
        problems.raise_if_any()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data, for YAML or JSON; the library's own are out.

        `convert_config` is the way back, also in later versions.

        Example:
            >>> OptimConfig(lr=3e-4).to_dict()["betas"]
            [0.9, 0.999]

        """
        names = [f.name for f in dataclasses.fields(self) if f.name[0] != "_"]
        return {name: _plain(getattr(self, name)) for name in names}


def _plain(value: Any) -> Any:
    """Return plain data, with lists for tuples and references as text."""
    if isinstance(value, (DictConfig, ListConfig)):
        return OmegaConf.to_container(value, resolve=False)
    if isinstance(value, LayerDecayConfig):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


@dataclass(slots=True, kw_only=True)
class ModuleConfig:
    """Hold the optimizer node of one module."""

    optim: OptimConfig = field(default_factory=OptimConfig)


@dataclass(slots=True, kw_only=True)
class ActorCriticConfig:
    """Hold the ready-made pair of optimizer nodes, `actor.optim` and `critic.optim`."""

    actor: ModuleConfig = field(default_factory=ModuleConfig)
    critic: ModuleConfig = field(default_factory=ModuleConfig)


_DEFAULTS = {f.name: f.default for f in dataclasses.fields(OptimConfig)}
_FACTORIES: dict[str, Callable[[], Any]] = {
    "override_optimizer_config": dict,
    "override_lr_scheduler_config": dict,
    "param_groups": list,
    "no_decay": list,
    "layer_decay": LayerDecayConfig,
}


def config_of(checked: Mapping[str, Any]) -> OptimConfig:
    """Return the config of checked values, with defaults for the other fields."""
    optim = OptimConfig.__new__(OptimConfig)  # without checking all of them again
    for name, default in _DEFAULTS.items():
        if name in checked:
            setattr(optim, name, checked[name])
        else:
            setattr(optim, name, _FACTORIES[name]() if name in _FACTORIES else default)
    return optim


def check_fields(given: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Return the given fields checked and converted, and note what is wrong.

    Args:
        given: Plain values by field name; `???` and `${...}` pass unchecked.
        problems: Where every wrong value and unknown key is noted.

    """
    result: dict[str, Any] = {}
    for name, value in given.items():
        rule, default = CHECKS.get(name), _DEFAULTS.get(name)
        if rule is not None and type(value) is type(default) and value == default:
            result[name] = value  # most are
        elif rule is None:
            what = f"no field {name}{instead_of(name)}"
            if isinstance(value, Mapping) and "optim" in value:
                what = f"{name} has a node of its own: give it (config.{name}.optim),"
                what += " or all of them to build_optimizers"
            problems.add(what, name, UnknownKeyError)
        elif is_open(value):
            result[name] = value
        elif name == "param_groups":
            result[name] = check_rules(value, CHECKS, name, problems)
        elif name == "layer_decay":
            result[name] = check_layer_decay(value, name, problems)
        else:
            try:
                result[name] = rule(value)
            except Refused as refused:
                problems.add(str(refused), name + refused.index)
    return result
