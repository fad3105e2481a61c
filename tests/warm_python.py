"""Run a Python program in a process of its own that has torch loaded already.

Importing torch takes most of the time of a short program. Each process is forked from
one that has imported it and done nothing else; the standard library makes them.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path
from types import ModuleType

__all__ = ["run_warm"]

_LOADED = ["torch._dynamo", "matplotlib.pyplot", "hydra"]
_ENVIRONMENT = {"TORCHDYNAMO_DISABLE": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
_LONGEST = 300


def run_warm(args: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `python *args` (a program, or -c and its text) in a folder."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    before = dict(os.environ)
    os.environ.update(_ENVIRONMENT)
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
    output, errors = cwd / ".stdout", cwd / ".stderr"
    process = context.Process(target=_run, args=(args, cwd, output, errors))
    process.start()
    process.join(_LONGEST)
    if process.exitcode is None:
        process.kill()
        process.join()
    texts = [path.read_text() for path in (output, errors)]
    for path in (output, errors):
        path.unlink()
    return subprocess.CompletedProcess(args, process.exitcode or 0, *texts)


def _run(args: list[str], cwd: Path, output: Path, errors: Path) -> None:
    for number, path in ((1, output), (2, errors)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    os.chdir(cwd)
    program, *rest = args
    try:
        if program == "-c":
            text, *rest = rest
            sys.argv = ["-c", *rest]
            sys.path.insert(0, "")
            sys.modules["__main__"] = main = ModuleType("__main__")
            exec(compile(text, "<string>", "exec"), vars(main))  # noqa: S102
        else:
            sys.argv = [program, *rest]
            sys.path.insert(0, str(Path(program).resolve().parent))
            runpy.run_path(program, run_name="__main__")
    finally:
        # A process that was forked leaves without it.
        atexit._run_exitfuncs()
