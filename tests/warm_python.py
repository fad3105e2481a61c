"""Run programs in processes that need not import torch first.

A program started from here is a process of its own, forked from one that has imported
the packages but nothing of this library. Run as a program, this file is that process.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Warm"]

# torch imports the second one when it makes an optimizer.
PACKAGES = [
    "torch",
    "torch._dynamo",
    "hydra.main",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "rich.progress",
]
SECONDS = 300


class Warm:
    """Python, with packages imported already."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TORCHDYNAMO_DISABLE": "1"},
            text=True,
        )

    def run(
        self, folder: Path, args: list[str], cwd: Path, env: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run `python *args`; what it writes is kept in files of the folder."""
        if args[0].startswith("-") and args[0] != "-c":
            msg = f"{args[0]} is for an interpreter that starts: use run_fresh"
            raise ValueError(msg)
        files = [str(folder / name) for name in ("stdout", "stderr")]
        order = {"args": args, "cwd": str(cwd), "env": env, "files": files}
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        written = [Path(file).read_text() for file in files]
        return subprocess.CompletedProcess(args, status, *written)

    def close(self) -> None:
        """End the process that the others are forked from."""
        self._server.communicate()


def _serve() -> dict[str, Any]:
    """Fork for each order that is read, and return it in the new process."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            order: dict[str, Any] = json.loads(line)
            return order
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    sys.exit()


def _become(order: dict[str, Any]) -> None:
    """Take over what a process is started with, and run its program."""
    signal.alarm(SECONDS)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, file in enumerate(order["files"], start=1):
        os.dup2(os.open(file, flags), number)

    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in paths if path not in sys.path[1:]]

    module = sys.modules["__main__"] = ModuleType("__main__")
    program, *arguments = order["args"]
    if program == "-c":
        code, *arguments = arguments
        file, sys.path[0] = "<string>", ""
    else:
        code = Path(program).read_bytes()
        file, sys.path[0] = program, str(Path(program).resolve().parent)
        module.__file__ = program
    sys.argv = [program, *arguments]
    exec(compile(code, file, "exec"), vars(module))  # noqa: S102 - what Python does


if __name__ == "__main__":
    for package in PACKAGES:
        importlib.import_module(package)
    gc.freeze()  # So that the collections of a fork don't touch, and copy, all that.
    _become(_serve())
