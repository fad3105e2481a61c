"""Run programs of this folder one after another, each on a number of processes.

`python worlds.py FOLDER saving_runs@2 loading_runs@3`. All processes are forked from
this one, since importing torch takes longer than what most of them do.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import socket
import sys
import traceback
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch._dynamo  # noqa: F401 - each process would import it at its first step

import two_processes  # noqa: F401 - as above

FORK = multiprocessing.get_context("fork")
TIMEOUT = 120


def main(folder: Path, *steps: str) -> None:
    """Run the programs; the first that fails is the last."""
    for step in steps:
        program, _, number = step.partition("@")
        (folder / step).mkdir()
        _run(program, folder / step, int(number))


def _run(program: str, folder: Path, num_processes: int) -> None:
    os.environ["WORLD_SIZE"] = str(num_processes)
    os.environ["MASTER_PORT"] = _free_port()
    processes = [
        FORK.Process(target=_be, args=(program, folder, rank))
        for rank in range(num_processes)
    ]
    for process in processes:
        process.start()
    try:
        _wait_for(processes, program)
    finally:
        for process in processes:
            process.kill()


def _wait_for(processes: list[BaseProcess], program: str) -> None:
    running = {process.sentinel: process for process in processes}
    while running:
        ended = wait(list(running), TIMEOUT)
        if not ended:
            sys.exit(f"{program} has not ended after {TIMEOUT} s")
        for sentinel in ended:
            process = running.pop(sentinel)
            process.join()
            if process.exitcode != 0:
                sys.exit(f"{process.name} of {program} ended with {process.exitcode}")


def _be(program: str, folder: Path, rank: int) -> None:
    """Be one process of a program, which ends it."""
    os.environ["RANK"] = str(rank)
    path = Path(__file__).with_name(f"{program}.py")
    sys.argv = [str(path), str(folder)]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except BaseException:  # noqa: BLE001 - it is shown, and all end in one way
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)


def _free_port() -> str:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
