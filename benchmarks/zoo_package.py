"""Try every class of one package, each in a process of its own.

python benchmarks/zoo_package.py IMPL [NAME ...]

Each line of the output is what became of one class, as JSON. A class that ends its
process or hangs is a line too.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import sys
import warnings
from dataclasses import asdict
from importlib import metadata
from multiprocessing.connection import Connection
from typing import Any

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # torchao compiles a kernel for each shape

import torch
import torch._dynamo  # a second that every process would spend at its first optimizer
from torch.optim import Optimizer
from zoo_trials import Found, try_class

from optim_hydra.missing import optimizer_names

TIMEOUT_S = 120
CONTEXT = multiprocessing.get_context("fork")


def main(impl: str, names: list[str]) -> None:
    """Import a package, and try its classes."""
    # What packages print is no line of the output.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        module = importlib.import_module(impl)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code runs here
        _write(output, {"impl": impl, "failure": f"{type(error).__name__}: {error}"})
        return
    _without_compiling(module)
    names = names or optimizer_names(module)
    _write(output, {"impl": impl, "version": _version(impl), "names": names})
    for name in names:
        _write(output, asdict(_in_a_process(getattr(module, name), impl, name)))


def _in_a_process(cls: type[Optimizer], impl: str, name: str) -> Found:
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_work, args=(cls, impl, name, sender))
    process.start()
    sender.close()
    found = Found(name)
    try:
        if receiver.poll(TIMEOUT_S):
            found = receiver.recv()
        else:
            found.broken = f"not done after {TIMEOUT_S} s"
    except EOFError:
        process.join()
        found.broken = f"its process ended with exit code {process.exitcode}"
    process.kill()
    process.join()
    return found


def _work(cls: type[Optimizer], impl: str, name: str, sender: Connection) -> None:
    sender.send(try_class(cls, impl, name))


def _without_compiling(module: Any) -> None:
    """Switch heavyball's compiler off: minutes for each class, and none fits here."""
    if module.__name__ == "heavyball":
        module.utils.compile_mode = None


def _version(impl: str) -> str:
    top = impl.partition(".")[0]
    return metadata.version(metadata.packages_distributions()[top][0])


def _write(output: Any, line: dict[str, Any]) -> None:
    output.write(json.dumps(line) + "\n")
    output.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
