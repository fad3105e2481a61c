"""Own Hydra's launcher `optim_local`: jobs forked from a process that has torch.

Importing torch takes longer than a short training. Here one process imports it for the
whole sweep (the standard library's forkserver, which never touches CUDA), and each job
is a fork of that process, with its own memory and its own end.
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import (
    JobReturn,
    JobStatus,
    configure_log,
    filter_overrides,
    run_job,
    setup_globals,
)
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from optim_hydra.errors import ConfigError, OptimHydraError, Problem
from optim_hydra.value_checks import Count, Refused

__all__ = ["ForkedJobs", "JobEndedError", "MissingPackageError"]

log = logging.getLogger(__name__)
_PRELOADED = ["torch", "torch._dynamo", "hydra", "optim_hydra", "optim_hydra.container"]


class JobEndedError(OptimHydraError, RuntimeError):
    """The process of a job ended, or could not send back what the job returned."""


class MissingPackageError(OptimHydraError, ImportError):
    """A package of the extra `sweep` is not installed."""


class ForkedJobs(Launcher):
    """Run jobs on this machine, `n_jobs` at a time, each in a process of its own."""

    def __init__(self, n_jobs: int | None = None) -> None:
        """Take what `hydra.launcher` says.

        Args:
            n_jobs: Jobs at a time; None or -1: as many as there are cores. Each gets
                its share of the cores as torch's threads, unless OMP_NUM_THREADS is
                set.

        Raises:
            ConfigError: It is no such number.

        """
        try:
            number = Count(low=1, null=True, also=(-1,))(n_jobs)
        except Refused as refused:
            key = "hydra.launcher.n_jobs"
            raise ConfigError([Problem(str(refused), key, ConfigError)]) from refused
        all_cores = len(os.sched_getaffinity(0))
        self.num_jobs = all_cores if number in (None, -1) else int(number)
        self._running: set[Any] = set()

    def setup(
        self,
        *,
        hydra_context: HydraContext,
        task_function: TaskFunction,
        config: DictConfig,
    ) -> None:
        """Keep what every job gets."""
        self.config = config
        self._common = (hydra_context, config, task_function)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs, and return what came of each, in their order.

        Raises:
            MissingPackageError: cloudpickle is not installed.

        """
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        log.info("Launching %d jobs, %d at a time", len(job_overrides), self.num_jobs)
        for index, overrides in enumerate(job_overrides, start=initial_job_idx):
            log.info("\t#%d : %s", index, " ".join(filter_overrides(overrides)))
        common = _cloudpickle().dumps((*self._common, Singleton.get_state()))
        with _main_left_alone(), ThreadPoolExecutor(self.num_jobs) as threads:
            futures = [
                threads.submit(self._run, common, list(overrides), index)
                for index, overrides in enumerate(job_overrides, start=initial_job_idx)
            ]
            try:
                return [future.result() for future in futures]
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                for process in list(self._running):
                    process.terminate()
                raise

    def _run(self, common: bytes, overrides: list[str], index: int) -> JobReturn:
        """Run one job in a new process and wait for it."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        receiver, sender = context.Pipe(duplex=False)
        num_threads = max(len(os.sched_getaffinity(0)) // self.num_jobs, 1)
        args = (sender, common, overrides, index, num_threads)
        process = context.Process(target=_work, args=args)
        self._running.add(process)
        process.start()
        sender.close()
        try:
            sent = receiver.recv_bytes()
        except EOFError:
            process.join()
            sent = None
        process.join()
        self._running.discard(process)
        if sent is not None:
            returned: JobReturn = _cloudpickle().loads(sent)
            return returned
        error = JobEndedError(f"the process of job {index} {_ended(process.exitcode)}")
        return JobReturn(overrides, status=JobStatus.FAILED, _return_value=error)


def _cloudpickle() -> Any:
    try:
        return importlib.import_module("cloudpickle")
    except ModuleNotFoundError as error:
        what = "hydra/launcher=optim_local needs cloudpickle:"
        msg = f"{what} pip install 'optim-hydra[sweep]'"
        raise MissingPackageError(msg) from error


def _ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with the status {code} before the job did"
    return f"was ended by {signal.Signals(-code).name}"


def _work(
    sender: Connection,
    common: bytes,
    overrides: list[str],
    index: int,
    num_threads: int,
) -> None:
    """Run one job in this process and send what it returns."""
    import torch  # noqa: PLC0415 - preloaded, and not imported by who asks for help

    threading.Thread(target=_end_with_parent, daemon=True).start()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(num_threads)
    hydra_context, config, task_function, singletons = _cloudpickle().loads(common)
    setup_globals()
    Singleton.set_state(singletons)
    job = hydra_context.config_loader.load_sweep_config(config, overrides)
    with open_dict(job):
        job.hydra.job.id = f"{job.hydra.job.name}_{index}"
        job.hydra.job.num = index
    HydraConfig.instance().set_config(job)
    returned = run_job(
        hydra_context=hydra_context,
        config=job,
        task_function=task_function,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )
    sender.send_bytes(_packed(returned, index))


def _packed(returned: JobReturn, index: int) -> bytes:
    try:
        packed: bytes = _cloudpickle().dumps(returned)
    except Exception as error:  # noqa: BLE001 - whatever a program returns or raises
        what = f"what job {index} returned can't be sent: {error}"
        returned.status, returned._return_value = JobStatus.FAILED, JobEndedError(what)
        packed = _cloudpickle().dumps(returned)
    return packed


def _end_with_parent() -> None:
    """End this process when the one that started the sweep has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _main_left_alone() -> Iterator[None]:
    """Keep new processes from running the program's file, to have its `__main__`.

    The task function travels by value, and the file may end with a bare `main()`.
    """
    names = vars(sys.modules["__main__"])
    kept: dict[str, Any] = {
        name: names[name] for name in ("__file__", "__spec__") if name in names
    }
    names.pop("__file__", None)
    names["__spec__"] = None
    try:
        yield
    finally:
        names.update(kept)
