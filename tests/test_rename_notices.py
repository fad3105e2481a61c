"""A warning about an old key names its line, and comes once."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from optim_hydra.rename_notices import warn_renamed
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.yaml_lines import place_of_key

TEXT = """\
# of a project
base: &base
  grad_clip: 1.0
actor: {optim: {lr: 1.0, warmup_style: cosine}}
critic:
  optim:
    <<: *base
    'warmup_style': cosine
heads:
  - optim: {lr: 1.0}
  - optim:
      <<: [*base]
      lr_scheduler: linear
ref:
  optim: *base
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT)
    return str(path)


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("actor.optim.warmup_style", (4, 26)),
        ("critic.optim.warmup_style", (8, 5)),
        ("critic.optim.grad_clip", (3, 3)),
        ("heads[1].optim.lr_scheduler", (13, 7)),
        ("heads[1].optim.grad_clip", (3, 3)),
        ("ref.optim.grad_clip", (3, 3)),
        ("mounted.at.base.grad_clip", (3, 3)),
        ("heads[5].optim.grad_clip", (0, 0)),
        ("heads.optim.grad_clip", (0, 0)),
        ("nowhere", (0, 0)),
    ],
)
def test_the_place_of_a_key(file: str, key: str, place: tuple[int, int]) -> None:
    assert place_of_key(file, key) == place


def test_what_is_no_file_of_yaml_has_no_lines(file: str, tmp_path: Path) -> None:
    assert place_of_key("command line", "optim.grad_clip") == (0, 0)
    assert place_of_key(str(tmp_path), "optim.grad_clip") == (0, 0)
    Path(file).write_bytes(b"a: [\xff")
    assert place_of_key(file, "a") == (0, 0)
    Path(file).write_text("a: [")
    assert place_of_key(file, "a") == (0, 0)


def shown(key: str, where: str) -> list[str]:
    """Return the warnings about a key, with their lines."""
    with pytest.MonkeyPatch.context() as patch:
        found: list[str] = []
        patch.setattr(
            warnings,
            "warn_explicit",
            lambda text, _, name, line: found.append(
                f"{Path(name).name}:{line}: {text}"
            ),
        )
        renamed = RENAMED_KEYS[key.rpartition(".")[2]]
        warn_renamed(renamed, key, 1.0, where)
    return [text.partition(" (since")[0] for text in found]


def test_a_key_is_told_once_per_line_and_context(file: str) -> None:
    with warnings.catch_warnings():
        told = shown("critic.optim.grad_clip", file)
        assert told == ["config.yaml:3: critic.optim.grad_clip is now clip_grad"]
        assert shown("ref.optim.grad_clip", file) == []  # the same line
        with warnings.catch_warnings():
            assert shown("critic.optim.grad_clip", file) == told
        assert shown("critic.optim.grad_clip", file) == []  # as before
        typed = shown("ref.optim.grad_clip", "command line")
        assert typed == ["command line:1: ref.optim.grad_clip is now clip_grad"]
        assert shown("ref.optim.grad_clip", "command line") == []
