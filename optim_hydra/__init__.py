"""Configure any PyTorch optimizer for any module from Hydra, and check it first.

Importing this package makes its plugins and resolvers known to Hydra. Every name is
imported when it is first used, so that a program's help does not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from optim_hydra.registration import announce as _announce
from optim_hydra.version import __version__ as __version__

if TYPE_CHECKING:
    from optim_hydra.app import compose as compose
    from optim_hydra.app import main as main
    from optim_hydra.builder import build_optimizer as build_optimizer
    from optim_hydra.checkpoint import optimizer_state_dict as optimizer_state_dict
    from optim_hydra.clipping import grad_norm as grad_norm
    from optim_hydra.container import OptimizersContainer as OptimizersContainer
    from optim_hydra.convert import convert_config as convert_config
    from optim_hydra.errors import ConfigError as ConfigError
    from optim_hydra.errors import OptimHydraError as OptimHydraError
    from optim_hydra.export import (
        export_optimizer_state_dict as export_optimizer_state_dict,
    )
    from optim_hydra.factory import build as build
    from optim_hydra.lr_scheduler import build_lr_scheduler as build_lr_scheduler
    from optim_hydra.migration import migrate as migrate
    from optim_hydra.override_text import migrate_overrides as migrate_overrides
    from optim_hydra.parts import build_optimizers as build_optimizers
    from optim_hydra.registry import register_builder as register_builder
    from optim_hydra.registry import register_optimizer as register_optimizer
    from optim_hydra.registry import registered_optimizers as registered_optimizers
    from optim_hydra.report import assignment_report as assignment_report
    from optim_hydra.resume import (
        load_optimizer_state_dict as load_optimizer_state_dict,
    )
    from optim_hydra.schedule import register_schedule as register_schedule
    from optim_hydra.schema import ActorCriticConfig as ActorCriticConfig
    from optim_hydra.schema import OptimConfig as OptimConfig
    from optim_hydra.schema_groups import ParamGroupConfig as ParamGroupConfig
    from optim_hydra.sweep.metrics import log_metrics as log_metrics
    from optim_hydra.sweep.plain_results import plain_result as plain_result
    from optim_hydra.validation import validate as validate

__all__ = [
    "ActorCriticConfig",
    "ConfigError",
    "OptimConfig",
    "OptimHydraError",
    "OptimizersContainer",
    "ParamGroupConfig",
    "assignment_report",
    "build",
    "build_lr_scheduler",
    "build_optimizer",
    "build_optimizers",
    "compose",
    "convert_config",
    "export_optimizer_state_dict",
    "grad_norm",
    "load_optimizer_state_dict",
    "log_metrics",
    "main",
    "migrate",
    "migrate_overrides",
    "optimizer_state_dict",
    "plain_result",
    "register_builder",
    "register_optimizer",
    "register_schedule",
    "registered_optimizers",
    "validate",
]

_LAZY = {
    "ActorCriticConfig": "schema",
    "ConfigError": "errors",
    "OptimConfig": "schema",
    "OptimHydraError": "errors",
    "OptimizersContainer": "container",
    "ParamGroupConfig": "schema_groups",
    "assignment_report": "report",
    "build": "factory",
    "build_lr_scheduler": "lr_scheduler",
    "build_optimizer": "builder",
    "build_optimizers": "parts",
    "compose": "app",
    "convert_config": "convert",
    "export_optimizer_state_dict": "export",
    "grad_norm": "clipping",
    "load_optimizer_state_dict": "resume",
    "log_metrics": "sweep.metrics",
    "main": "app",
    "migrate": "migration",
    "migrate_overrides": "override_text",
    "optimizer_state_dict": "checkpoint",
    "plain_result": "sweep.plain_results",
    "register_builder": "registry",
    "register_optimizer": "registry",
    "register_schedule": "schedule",
    "registered_optimizers": "registry",
    "validate": "validation",
}

_announce()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = found  # the next time it is there
    return found
