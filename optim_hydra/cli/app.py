"""Own the command `optim-hydra`: one subcommand a module, imported when it is run."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from .optimizer_commands import commands

__all__ = ["app", "run"]

_OF_THE_COMMAND = ("matplotlib", "plotext", "rich", "ruamel")
app = typer.Typer(
    name="optim-hydra",
    help="Optimizers from Hydra configs: choose, check and sweep them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(commands)
Folder = Annotated[
    Path, typer.Argument(help="Folder of a sweep (hydra.sweep.dir).", exists=True)
]


@app.callback()
def _commands() -> None:
    """Keep `report` a subcommand, whatever the number of commands."""


@app.command()
def report(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders of one or several sweeps.", exists=True),
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="Where to write; the first folder where it is not said."),
    ] = None,
    direction: Annotated[
        str | None, typer.Option(help="minimize or maximize; else as it was started.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="A returned or logged metric that ranks the jobs."),
    ] = None,
) -> None:
    """Make the table and the page of sweeps, also while they run or after a crash."""
    from optim_hydra.sweep.reporting import report_sweep  # noqa: PLC0415

    report_sweep(folders, output, direction=direction, metric=metric)


@app.command(context_settings={"ignore_unknown_options": True})
def resume(
    folder: Folder,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Hydra's launcher settings.")
    ] = None,
) -> None:
    """Run the jobs of a sweep that are missing or failed, with its own command."""
    from optim_hydra.sweep.resuming import resume_sweep  # noqa: PLC0415

    raise typer.Exit(resume_sweep(folder, overrides or []))


def run() -> None:
    """Run the command; an error on purpose is a message, not a trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack some signs
    try:
        app()
    except ModuleNotFoundError as error:
        top = (error.name or "").partition(".")[0]
        extra = "cli" if top in _OF_THE_COMMAND else "sweep"
        typer.echo(f"{error}: pip install 'optim-hydra[{extra}]'", err=True)
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"{where}{error.strerror or error}", err=True)
        sys.exit(1)
    except Exception as error:
        from optim_hydra.errors import OptimHydraError  # noqa: PLC0415 - imports hydra

        if not isinstance(error, OptimHydraError):
            raise
        typer.echo(str(error), err=True)
        sys.exit(1)
