"""A small byte-level transformer, trained on the source of the standard library.

The text is whatever Python runs this file, so there is nothing to download. The
optimizer and its schedule come from one node of the configuration alone: no line below
knows which optimizer that is.
"""

import math
import sysconfig
from pathlib import Path
from typing import NamedTuple

import torch
from omegaconf import DictConfig
from plotting import plot_metrics
from rich.progress import Progress
from torch import Tensor, nn
from torch.nn import functional

from optim_hydra import (
    assignment_report,
    build_lr_scheduler,
    build_optimizer,
    log_metrics,
)
from optim_hydra.report import AssignmentReport

VOCABULARY = 256
VALIDATION_FRACTION = 0.05
VALIDATION_WINDOWS = 256


class Block(nn.Module):
    """Causal self-attention, then an MLP, each on a normalised residual stream."""

    def __init__(self, width: int, num_heads: int) -> None:
        """Make a block of ``num_heads`` heads that share ``width`` channels."""
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map activations of shape (batch, time, width) to the same shape."""
        qkv = self.qkv(self.attention_norm(x)).unflatten(-1, (3, self.num_heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        x = x + self.attention_out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class LanguageModel(nn.Module):
    """A pre-norm, decoder-only transformer over bytes."""

    def __init__(
        self, num_layers: int, num_heads: int, width: int, sequence_length: int
    ) -> None:
        """Make a model that sees at most ``sequence_length`` bytes of context."""
        super().__init__()
        self.sequence_length = sequence_length
        self.token_embedding = nn.Embedding(VOCABULARY, width)
        self.position_embedding = nn.Embedding(sequence_length, width)
        self.blocks = nn.Sequential(
            *(Block(width, num_heads) for _ in range(num_layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        # So small a model learns more slowly from PyTorch's unit-variance default.
        for embedding in (self.token_embedding, self.position_embedding):
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map bytes of shape (batch, time) to logits for each next byte."""
        positions = self.position_embedding.weight[: tokens.shape[1]]
        x = self.token_embedding(tokens) + positions
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits

    def loss(self, windows: Tensor) -> Tensor:
        """Return the mean cross-entropy, in nats per byte, of the shifted windows."""
        logits = self(windows[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())

    @torch.no_grad()
    def generate(
        self, prompt: bytes, num_bytes: int, temperature: float, rng: torch.Generator
    ) -> bytes:
        """Return ``prompt`` followed by ``num_bytes`` sampled bytes."""
        tokens = torch.tensor([list(prompt)])
        for _ in range(num_bytes):
            logits = self(tokens[:, -self.sequence_length :])[:, -1]
            probabilities = functional.softmax(logits / temperature, dim=-1)
            sampled = torch.multinomial(probabilities, 1, generator=rng)
            tokens = torch.cat((tokens, sampled), dim=1)
        return bytes(tokens[0].tolist())


class Trained(NamedTuple):
    """The final validation loss, in nats per byte, and the optimizer's groups."""

    val_loss: float
    assignment: AssignmentReport


def load_text(num_bytes: int) -> tuple[Tensor, Tensor]:
    """Return the training and the held-out bytes of the standard library."""
    # Top-level modules only: site-packages lies below the same folder.
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    text = b"".join(path.read_bytes() for path in paths)[:num_bytes]
    tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    num_train = len(tokens) - int(len(tokens) * VALIDATION_FRACTION)
    return tokens[:num_train], tokens[num_train:]


def take_windows(tokens: Tensor, starts: Tensor, length: int) -> Tensor:
    """Cut one window of ``length`` inputs and their targets at each start."""
    return tokens[starts[:, None] + torch.arange(length + 1)]


@torch.no_grad()
def evaluate(model: LanguageModel, windows: Tensor, batch_size: int) -> float:
    """Return the mean loss over ``windows``."""
    losses = [model.loss(batch) * len(batch) for batch in windows.split(batch_size)]
    return float(torch.stack(losses).sum()) / len(windows)


def require_finite(loss: float, step: int) -> None:
    """Stop a run that has diverged."""
    if not math.isfinite(loss):
        msg = (
            f"the loss is {loss} at step {step}: training diverged under the settings"
            " of the optimizer node (try a lower `lr` or a smaller `clip_grad`)"
        )
        raise FloatingPointError(msg)


def train(cfg: DictConfig, optim: DictConfig, output_dir: Path) -> Trained:
    """Train a model as ``cfg`` says, with the optimizer that ``optim`` describes.

    Writes ``metrics.csv``, ``learning_curve.png`` and ``sample.txt`` to ``output_dir``.
    """
    torch.set_num_threads(1)  # Products this small gain nothing from more threads.
    torch.manual_seed(cfg.seed)
    rng = torch.Generator().manual_seed(cfg.seed)
    length, batch_size = cfg.data.sequence_length, cfg.data.batch_size
    train_tokens, val_tokens = load_text(cfg.data.num_bytes)
    last_start = len(train_tokens) - length - 1
    val_starts = torch.linspace(0, len(val_tokens) - length - 1, VALIDATION_WINDOWS)
    val_windows = take_windows(val_tokens, val_starts.long(), length)

    model = LanguageModel(**cfg.model, sequence_length=length)
    optimizer = build_optimizer(model, optim)
    assignment = assignment_report(optimizer)
    scheduler = build_lr_scheduler(optimizer, optim, total_training_steps=cfg.num_steps)

    with Progress(disable=not cfg.progress) as progress:
        task = progress.add_task("training", total=cfg.num_steps)
        for step in range(1, cfg.num_steps + 1):
            starts = torch.randint(last_start + 1, (batch_size,), generator=rng)
            loss = model.loss(take_windows(train_tokens, starts, length))
            require_finite(loss.item(), step)
            optimizer.zero_grad()
            loss.backward()
            # Read before the scheduler moves on: the rate this step was taken with.
            lr = float(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()

            val_loss = None
            if step % cfg.eval_interval == 0 or step == cfg.num_steps:
                val_loss = evaluate(model, val_windows, batch_size)
                require_finite(val_loss, step)
            row = {"train_loss": loss, "val_loss": val_loss, "lr.optim": lr}
            log_metrics(step, row, folder=output_dir)
            status = f"loss {loss.item():.3f}  lr {lr:.2e}"
            progress.update(task, advance=1, description=status)

    title = f"validation loss {val_loss:.3f} nats per byte"
    plot_metrics(output_dir, title, "step", ["train_loss", "val_loss"])
    sample = model.generate(b"def ", num_bytes=200, temperature=0.8, rng=rng)
    (output_dir / "sample.txt").write_bytes(sample + b"\n")
    return Trained(val_loss, assignment)
