"""`optim-hydra migrate` changes whole files or nothing, and says all at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from optim_hydra.cli.app import app
from optim_hydra.errors import WrongObjectError
from optim_hydra.migrating.paths import migrate_paths

Migrate = Callable[..., Result]
OLD, NEW = "optim:\n  grad_clip: 1.0\n", "optim:\n  clip_grad: 1.0\n"


@pytest.fixture
def migrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Migrate:
    """Run the command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, ["migrate", *map(str, args)])


def test_a_diff_is_printed_and_the_file_is_rewritten(migrate: Migrate) -> None:
    file = Path("conf.yaml")
    file.write_text(OLD)
    result = migrate(file)
    assert (result.exit_code, file.read_text()) == (0, NEW)
    assert result.stdout == (
        "--- conf.yaml\n"
        "+++ conf.yaml\n"
        "@@ -1,2 +1,2 @@\n"
        " optim:\n"
        "-  grad_clip: 1.0\n"
        "+  clip_grad: 1.0\n"
    )
    assert result.stderr == "changed 1 file\n"
    again = migrate(file)
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr == "changed 0 files\n"


def test_check_changes_nothing_and_fails(migrate: Migrate) -> None:
    file = Path("conf.yaml")
    file.write_text(OLD)
    result = migrate("--check", file)
    assert (result.exit_code, file.read_text()) == (1, OLD)
    assert "+  clip_grad: 1.0\n" in result.stdout
    assert result.stderr == "would change 1 file\n"
    file.write_text(NEW)
    assert migrate("--check", file).exit_code == 0


def test_what_a_program_does_without_its_flags_is_told(migrate: Migrate) -> None:
    file = Path("run.sh")
    file.write_text("python run.py --learning_rate 5e-5 --num_train_epochs 3\n")
    result = migrate("--from", "transformers", file)
    assert file.read_text() == "python run.py optim.lr=5e-5 --num_train_epochs 3\n"
    assert result.stderr == (
        "without a flag transformers has its own: optim: {lr: 5e-05, weight_decay: 0.0,"
        " clip_grad: 1.0, lr_scheduler_type: linear}\n"
        "changed 1 file\n"
    )
    assert migrate("--from", "transformers", file).stderr == "changed 0 files\n"


def test_everything_is_told_at_once_and_the_rest_is_done(migrate: Migrate) -> None:
    Path("a.yaml").write_text("optim: [\n")
    Path("b.yaml").write_bytes(b"optim: {grad_clip: 1.0} # \xe9\n")
    Path("c.yaml").write_text("optim: {grad_clip: 1.0, clip_grad: 2.0}\n")
    Path("d.yaml").write_text(OLD)
    Path("e.sh").write_text("echo\npython x.py optim.min_lr=1e-6\n")
    Path("f.sh").write_bytes(b"optim.grad_clip=1\0\n")
    result = migrate(".")
    assert result.exit_code == 1
    assert Path("d.yaml").read_text() == NEW
    assert result.stderr == (
        "5 to decide:\n"
        "  a.yaml:2: the file is no YAML: expected the node content, but found"
        " '<stream end>'\n"
        "  b.yaml: it is not UTF-8 (byte 26); it is left as it was\n"
        "  c.yaml:1: optim.grad_clip: grad_clip: 1.0 and clip_grad: 2.0 are one key"
        " with two values: keep one of them\n"
        "  e.sh:2: optim.min_lr: min_lr is a key of Megatron: write min_lr_ratio, a"
        " share of lr, where min_lr is an absolute rate (or let --from megatron convert"
        " it)\n"
        "  f.sh: it is no text; it is left as it was\n"
        "changed 1 file\n"
    )


@pytest.mark.parametrize("name", ["a.py", "a.sh", "a.md", "Makefile", "a.yaml"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n", "\n\x0c\n", "\n  "])
def test_ends_of_files_stay(migrate: Migrate, name: str, end: str) -> None:
    texts = {
        "a.py": 'a = 1\n\x0c\nx = ["optim.KEY=1"]',
        "a.md": "# Run\n\n`optim.KEY=1`",
        "a.yaml": "a: 1\noptim: {KEY: 1}",
    }
    text = texts.get(name, "run:\n\tpython x.py optim.KEY=1") + end
    if name == "a.yaml" and "\x0c" in text:
        text = text.replace("\x0c", "")  # no character of YAML
    Path(name).write_text(text.replace("KEY", "grad_clip"), newline="")
    assert migrate(name).exit_code == 0
    expected = text.replace("KEY", "clip_grad").encode()
    assert Path(name).read_bytes() == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"optim:\r\n  grad_clip: 1.0\r\n", b"optim:\r\n  clip_grad: 1.0\r\n"),
        (
            b"\xef\xbb\xbfoptim: {grad_clip: 1}\n",
            b"\xef\xbb\xbfoptim: {clip_grad: 1}\n",
        ),
        (b"optim: {grad_clip: 1}", b"optim: {clip_grad: 1}"),
        (
            "ä: 😀\noptim: {grad_clip: 1} # é\n".encode(),
            "ä: 😀\noptim: {clip_grad: 1} # é\n".encode(),
        ),
        (
            b"optim:\r\n  lr: 1\r\n  warmup_style: null",
            b"optim:\r\n  lr: 1",
        ),
        (b"", b""),
        (b"\n", b"\n"),
    ],
)
def test_bytes_stay(migrate: Migrate, before: bytes, after: bytes) -> None:
    file = Path("conf.yaml")
    file.write_bytes(before)
    assert migrate(file).exit_code == 0
    assert file.read_bytes() == after


def test_inserted_lines_end_as_the_others(migrate: Migrate) -> None:
    file = Path("conf.yaml")
    file.write_bytes(b"optim:\r\n  decay_type: cosine\r\n  lr: 1\r\n")
    assert migrate(file, "--from", "torchtitan").exit_code == 0
    assert file.read_bytes() == (
        b"optim:\r\n  lr_scheduler_type: cosine\r\n  zero_indexed_step: false\r\n"
        b"  lr: 1\r\n"
    )


def test_mode_and_link_stay(migrate: Migrate) -> None:
    Path("run.sh").write_text("python x.py optim.grad_clip=1\n")
    Path("run.sh").chmod(0o750)
    Path("link.sh").symlink_to("run.sh")
    assert migrate("link.sh").exit_code == 0
    assert Path("link.sh").is_symlink()
    assert Path("run.sh").read_text() == "python x.py optim.clip_grad=1\n"
    assert Path("run.sh").stat().st_mode & 0o777 == 0o750
    assert sorted(p.name for p in Path().iterdir()) == ["link.sh", "run.sh"]


def test_a_file_that_cannot_be_written_is_named(
    migrate: Migrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.yaml").write_text(OLD)
    Path("b.yaml").write_text(OLD)
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if target.name == "a.yaml":
            raise PermissionError(13, "Permission denied")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    result = migrate("a.yaml", "b.yaml")
    assert result.exit_code == 1
    assert (Path("a.yaml").read_text(), Path("b.yaml").read_text()) == (OLD, NEW)
    assert sorted(p.name for p in Path().iterdir()) == ["a.yaml", "b.yaml"]
    assert result.stderr == (
        "1 to decide:\n"
        "  a.yaml: it can't be written: Permission denied; it is left as it was\n"
        "changed 1 file\n"
    )


def test_what_is_no_file_or_cannot_be_listed_is_named(
    migrate: Migrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo("pipe.sh")
    Path("conf").mkdir()
    Path("a.yaml").write_text(OLD)
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if str(path).endswith("conf"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = migrate("pipe.sh", ".")
    assert result.exit_code == 1
    assert result.stderr == (
        "2 to decide:\n"
        "  conf: the folder can't be read: Permission denied\n"
        "  pipe.sh: it is no file; it is left as it was\n"
        "changed 1 file\n"
    )


def test_what_is_searched(migrate: Migrate) -> None:
    kept = [".git/a.yaml", ".hidden.yaml", "notes.txt", "node_modules/a.yaml"]
    taken = ["conf/a.yaml", "conf/b.yml", "deep/er/c.yaml"]
    for name in (*kept, *taken):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(OLD)
    assert migrate(".", "conf").stderr == "changed 3 files\n"
    assert all(Path(name).read_text() == OLD for name in kept)
    assert all(Path(name).read_text() == NEW for name in taken)
    assert migrate(".git/a.yaml").stderr == "changed 1 file\n"


@pytest.mark.parametrize(
    ("paths", "source", "message"),
    [
        (["a.yaml", "b.yaml", "."], "", "there is no a.yaml, no b.yaml"),
        (["."], "verls", "no source 'verls': did you mean verl?"),
        (
            ["."],
            "jax",
            "no source 'jax': there are verl, torchtitan, transformers, megatron,"
            " veomni",
        ),
    ],
)
def test_a_wrong_call_is_told_before_anything_is_read(
    migrate: Migrate, paths: list[str], source: str, message: str
) -> None:
    Path("conf.yaml").write_text(OLD)
    with pytest.raises(WrongObjectError) as caught:
        migrate_paths(map(Path, paths), source=source)
    assert str(caught.value) == message
    assert Path("conf.yaml").read_text() == OLD
