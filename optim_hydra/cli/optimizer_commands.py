"""Declare the subcommands about optimizers; each is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["commands"]

commands = typer.Typer()

Config = Annotated[
    Path, typer.Argument(help="Primary config of an app, such as conf/sft.yaml.")
]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="As on the app's command line.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        help="Dotted path of the model's class or function, and its arguments:"
        " torch.nn.Linear:4,2. For one node: actor.optim=torch.nn.Linear:4,2.",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(min=1, help="Optimizer steps in all, if the trainer gives them."),
]


@commands.command()
def check(  # noqa: PLR0913, PLR0917 - one for each option
    config: Config,
    overrides: Overrides = None,
    model: Models = None,
    world_size: Annotated[
        int, typer.Option(min=1, help="Ranks that FSDP2 shards over.")
    ] = 1,
    steps: Steps = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """Check the optimizer nodes of an app's config; all problems at once.

    With --model it also says which parameters are in which group, and what
    memory the optimizer's state takes. Nothing is trained, and no accelerator is
    needed.
    """
    from rich.console import Console  # noqa: PLC0415

    from optim_hydra.cli.check import check_config  # noqa: PLC0415
    from optim_hydra.cli.check_output import json_text, print_checked  # noqa: PLC0415
    from optim_hydra.errors import Problems  # noqa: PLC0415

    checked = check_config(
        config, overrides or [], models=model or (), world_size=world_size, steps=steps
    )
    if as_json:
        typer.echo(json_text(checked))
    else:
        print_checked(checked, Console())
    if checked.problems:
        typer.echo(str(Problems("", checked.problems).error()), err=True)
        raise typer.Exit(1)


@commands.command("list")
def list_(
    pattern: Annotated[
        str,
        typer.Argument(
            help="Of names (*adam*), packages (schedulefree) or paths (torch.*)."
        ),
    ] = "*",
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """List the optimizers that are installed here, by package.

    With the bytes of state that one keeps for each parameter (float32), and what
    it needs of the training loop.
    """
    from rich.console import Console  # noqa: PLC0415

    from optim_hydra.cli.listing import list_optimizers  # noqa: PLC0415

    list_optimizers(pattern, Console(), as_json=as_json)


@commands.command()
def show(
    target: Annotated[
        str, typer.Argument(help="A class: torch.optim.AdamW, or AdamW.")
    ],
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """Show what one optimizer takes and needs, and the YAML to start with."""
    from rich.console import Console  # noqa: PLC0415

    from optim_hydra.cli.show import show_target  # noqa: PLC0415

    show_target(target, Console(), as_json=as_json)


@commands.command()
def plot(  # noqa: PLR0913, PLR0917 - one for each option
    config: Config,
    overrides: Overrides = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="PNG to write; else in the terminal."),
    ] = None,
    model: Models = None,
    steps: Steps = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """Draw the learning rates over the run; with --model, those of each group."""
    from rich.console import Console  # noqa: PLC0415

    from optim_hydra.cli.plot import plot_config  # noqa: PLC0415

    plot_config(
        config,
        overrides or [],
        Console(),
        output=output,
        models=model or (),
        steps=steps,
        as_json=as_json,
    )


@commands.command()
def schema(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it.")
    ] = None,
) -> None:
    """Print the JSON Schema of the files in conf/optim, for editors.

    An editor with the YAML language server reads it where a file begins with
    "# yaml-language-server: $schema=../optim.schema.json", a path from that file.
    """
    from optim_hydra.cli.schema import schema_text  # noqa: PLC0415

    if output is None:
        typer.echo(schema_text(), nl=False)
    else:
        output.write_text(schema_text())


@commands.command()
def migrate(
    paths: Annotated[
        list[Path], typer.Argument(help="Files, and folders to search for them.")
    ],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="Convert keys of verl, torchtitan, transformers, megatron or veomni"
            " too.",
        ),
    ] = "",
    check: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--check", help="Change nothing; status 1 if it would.")
    ] = False,
) -> None:
    """Rewrite renamed keys in YAML files, scripts, Python and Markdown.

    Only in optimizer nodes and overrides of them; everything else stays byte for byte.
    What it can't decide it lists with file and line, and the status is then 1.
    """
    from optim_hydra.cli.migrate import migrate_files  # noqa: PLC0415

    if not migrate_files(paths, source, check=check):
        raise typer.Exit(1)
