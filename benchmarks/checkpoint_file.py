"""Save an optimizer into one file, and go on from it, against torch's own way.

python benchmarks/checkpoint_file.py [--quick] [--json PATH]
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from build_groups import Model
from optimizer_state import trained
from paired_timing import Pair, run
from torch.optim import Optimizer

from optim_hydra import load_optimizer_state_dict, optimizer_state_dict


def save_packed(optimizer: Optimizer, path: Path) -> None:
    """Save few large tensors."""
    torch.save(optimizer_state_dict(optimizer, packed=True), path)


def save_plain(optimizer: Optimizer, path: Path) -> None:
    """Save a tensor for each entry."""
    torch.save(optimizer.state_dict(), path)


def load_packed(optimizer: Optimizer, path: Path) -> None:
    """Load what `save_packed` wrote."""
    load_optimizer_state_dict(optimizer, torch.load(path, weights_only=True))


def load_plain(optimizer: Optimizer, path: Path) -> None:
    """Load what `save_plain` wrote."""
    optimizer.load_state_dict(torch.load(path, weights_only=True))


def make_pairs(is_quick: bool) -> Iterator[Pair]:
    """Yield the pairs of saving and loading, for many small tensors."""
    sizes = {20: 2, 100: 2} if is_quick else {100: 21, 1_000: 11, 10_000: 5}
    with TemporaryDirectory() as name:
        packed, plain = Path(name) / "packed.pt", Path(name) / "plain.pt"
        for size, rounds in sizes.items():
            optimizer = trained(Model(size))
            wanted = 0.25 if size in (10_000, 100) else None
            for what, ours, theirs in (
                ("save", save_packed, save_plain),
                ("load", load_packed, load_plain),
            ):
                yield Pair(
                    f"{what} one file, {size:,} tensors",
                    f"torch's {what}, plain state dict",
                    lambda call=ours, own=optimizer: call(own, packed),
                    lambda call=theirs, own=optimizer: call(own, plain),
                    rounds,
                    wanted=wanted if size == max(sizes) else None,
                )


if __name__ == "__main__":
    run(__doc__ or "", make_pairs)
