"""Own the drop-ins for Hydra's `main` and `compose`.

They hand migrated overrides to Hydra and otherwise stay out of the way.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from optim_hydra.declared import DECLARED, Declared
from optim_hydra.errors import MigrationError
from optim_hydra.journal import JOURNAL
from optim_hydra.override_text import migrate_overrides
from optim_hydra.registration import register

__all__ = ["asked_version", "compose", "main"]

log = logging.getLogger(__name__)
TaskFunction = Callable[[Any], Any]
_PROGRESS = "optim_hydra.sweep.progress"


def main(
    config_path: str | None = None,
    config_name: str | None = None,
    version_base: str | None = None,
) -> Callable[[TaskFunction], Callable[..., Any]]:
    """Use in place of `hydra.main`: old keys work on the command line too.

    The optimizer nodes of each job are checked before its function runs, and what
    the program declared holds in every launcher's workers. Arguments are Hydra's own.

    Raises:
        ConfigError: When the program runs: values of a job's nodes can't be used.

    """

    def decorate(task: TaskFunction) -> Callable[..., Any]:
        declared = Declared()  # travels with the job to a launcher's worker

        @functools.wraps(task)
        def checked(config: DictConfig) -> Any:
            return _run_job(task, config, declared)

        run = hydra.main(
            config_path=config_path,
            config_name=config_name,
            **asked_version(version_base),
        )(checked)

        @functools.wraps(task)
        def decorated(cfg_passthrough: DictConfig | None = None) -> Any:
            if cfg_passthrough is not None:
                return task(cfg_passthrough)
            register()
            vars(declared).update(vars(Declared()))
            declared.adopt(DECLARED)
            typed = sys.argv
            sys.argv = [typed[0], *_migrate_command_line(typed[1:])]
            try:
                result = run()
            finally:
                sys.argv = typed
            _exit_if_failed()
            return result

        return decorated

    return decorate


def compose(
    config_name: str | None = None,
    overrides: list[str] | None = None,
    return_hydra_config: bool = False,  # noqa: FBT002 - Hydra's signature
    strict: bool | None = None,
) -> DictConfig:
    """Use in place of `hydra.compose`: old keys work in `overrides` too.

    The nodes are not checked: `validate` does it, and building.

    Raises:
        MigrationError: Old keys can't be carried over.
        ConfigError: An override puts text where an optimizer node was.

    Example:
        >>> import hydra
        >>> with hydra.initialize(version_base=None):
        ...     config = compose(overrides=["+optim@critic.optim=sgd"])
        >>> config.critic.optim.optimizer
        'SGD'

    """
    from optim_hydra.validation import check_mounts  # noqa: PLC0415 - help needs it not

    register()
    migrated = migrate_overrides(overrides or [])
    config = hydra.compose(
        config_name=config_name,
        overrides=migrated,
        return_hydra_config=return_hydra_config,
        **({} if strict is None else {"strict": strict}),  # Hydra 1.4 has it no more
    )
    check_mounts(config, migrated)
    return config


def _run_job(task: TaskFunction, config: DictConfig, declared: Declared) -> Any:
    """Check a job's nodes, run it, and name the nodes that it did not use.

    A worker imports this function, while it gets the task itself as a copy: only
    here are the module's own objects at hand.
    """
    # A program that only shows its help or config need not wait for these.
    from optim_hydra.sweep.jobs import (  # noqa: PLC0415
        done_before,
        exits_as_failures,
        sent_back,
    )
    from optim_hydra.validation import (  # noqa: PLC0415
        check_mounts,
        unused_nodes,
        validate,
    )

    DECLARED.adopt(declared)
    before = done_before()
    if before is not None:
        return before.result
    overrides = _typed() if HydraConfig.initialized() else []
    check_mounts(config, overrides)
    validate(config)
    JOURNAL.clear()
    with exits_as_failures():
        result = task(config)
    result = sent_back(result)
    for sentence in unused_nodes(config, overrides):
        log.warning(sentence)
    return result


def _exit_if_failed() -> None:
    """End the program with 1 where a sweeper took failed jobs in its stride."""
    progress = sys.modules.get("optim_hydra.sweep.progress")
    if progress is not None and progress.count_failed():
        sys.exit(1)


def _typed() -> list[str]:
    """Return the job's overrides as texts; what they refer to is not ours."""
    overrides = HydraConfig.get().overrides.task
    texts: Any = OmegaConf.to_container(overrides, resolve=False)
    return list(map(str, texts))


def _migrate_command_line(typed: list[str]) -> list[str]:
    """Migrate what was typed, or leave the program as Hydra leaves it: no traceback."""
    try:
        return migrate_overrides(typed)
    except MigrationError as error:
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            raise
        hint = "Set the environment variable HYDRA_FULL_ERROR=1 for a stack trace."
        sys.exit(f"{error}\n\n{hint}")


def asked_version(version_base: str | None = None) -> dict[str, Any]:
    """Pass `version_base` on to the Hydra versions that ask for it."""
    is_old = tuple(map(int, hydra.__version__.split(".")[:2])) < (1, 4)
    return {"version_base": version_base} if is_old or version_base else {}
