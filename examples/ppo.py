"""PPO on CartPole-v1, with one optimizer for the actor and another for the critic."""

import math
import random
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from omegaconf import DictConfig
from plotting import plot_metrics
from rich.progress import Progress
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.utils.data import TensorDataset

from optim_hydra import build_lr_scheduler, build_optimizer, log_metrics

LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl")


class Learner:
    """A network, with the optimizer and the schedule that its config node describes."""

    def __init__(self, cfg: DictConfig, name: str, net: nn.Module, steps: int) -> None:
        """Build the optimizer, and a schedule that spans this many of its steps."""
        node = cfg[name].optim
        self.name, self.net = name, net
        self.optimizer = build_optimizer(net, node)
        self.scheduler = build_lr_scheduler(self.optimizer, node, steps)

    @property
    def lr(self) -> float:
        """The current learning rate, which some optimizers keep in a tensor."""
        return float(self.optimizer.param_groups[0]["lr"])

    def step(self, loss: Tensor) -> None:
        """Take one optimizer step down the loss and one step along the schedule."""
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        weights = nn.utils.parameters_to_vector(self.net.parameters())
        if not (loss.isfinite() and weights.isfinite().all()):
            msg = (
                f"{self.name} diverged (loss {loss:.3g}, learning rate {self.lr:.3g}):"
                f" check the optimizer node `{self.name}.optim`"
            )
            raise FloatingPointError(msg)
        self.scheduler.step()


def make_envs(count: int) -> SyncVectorEnv:
    """Make environments that, at an end, show the first state of the next episode."""
    makers = [lambda: gym.make("CartPole-v1")] * count
    return SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)


def make_net(hidden: int, outputs: int, gain: float) -> nn.Sequential:
    """Make a tanh network with orthogonal weights; ``gain`` scales the last layer."""
    first, second = nn.Linear(4, hidden), nn.Linear(hidden, hidden)
    last = nn.Linear(hidden, outputs)
    for layer in (first, second, last):
        nn.init.orthogonal_(layer.weight, gain if layer is last else math.sqrt(2))
        nn.init.zeros_(layer.bias)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), last)


@torch.no_grad()
def rollouts(
    cfg: DictConfig, envs: SyncVectorEnv, actor: nn.Module, critic: nn.Module
) -> Iterator[tuple[TensorDataset, float]]:
    """Play on and on; yield batches, each with the mean return of recent episodes."""
    shape, discount = (cfg.num_steps, cfg.num_envs), cfg.gamma * cfg.gae_lambda
    running, recent = np.zeros(cfg.num_envs), deque[float](maxlen=50)
    observation, _ = envs.reset(seed=cfg.seed)
    while True:
        observations = torch.empty(*shape, observation.shape[-1])
        actions = torch.empty(shape, dtype=torch.long)
        log_probs, rewards, alive, advantages = torch.empty(4, *shape)
        for t in range(cfg.num_steps):
            observations[t] = torch.from_numpy(observation)
            policy = Categorical(logits=actor(observations[t]))
            actions[t] = policy.sample()
            log_probs[t] = policy.log_prob(actions[t])
            step = envs.step(actions[t].numpy())
            observation, reward, terminated, truncated, info = step
            # In units of the horizon, values stay near one, within reach of
            # optimizers that, like Lion, ignore the size of the gradient.
            rewards[t] = torch.from_numpy(reward) * (1 - cfg.gamma)
            # A time limit is no failure: credit what would have come after it.
            for i in np.flatnonzero(truncated & ~terminated):
                final = torch.from_numpy(info["final_obs"][i])
                rewards[t, i] += cfg.gamma * critic(final).item()
            done = terminated | truncated
            alive[t] = torch.from_numpy(~done)
            running += reward
            recent.extend(running[done])
            running[done] = 0.0

        following = torch.from_numpy(observation)
        values = critic(torch.cat([observations, following[None]])).squeeze(-1)
        deltas = rewards + cfg.gamma * alive * values[1:] - values[:-1]
        advantage = torch.zeros(cfg.num_envs)
        for t in reversed(range(cfg.num_steps)):
            advantages[t] = advantage = deltas[t] + discount * alive[t] * advantage
        returns = advantages + values[:-1]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        columns = (observations, actions, log_probs, advantages, returns)
        batch = TensorDataset(*(column.flatten(0, 1) for column in columns))
        yield batch, float(np.mean(recent)) if recent else math.nan


def update(
    cfg: DictConfig, actor: Learner, critic: Learner, batch: TensorDataset
) -> Tensor:
    """Fit both networks to the batch; return the means of the ``LOSSES``."""
    history: list[Tensor] = []
    for _ in range(cfg.num_epochs):
        for rows in torch.randperm(len(batch)).chunk(cfg.num_minibatches):
            observations, actions, log_probs, advantages, returns = batch[rows]
            # The critic goes first: advantages it spoils must not blame the actor.
            errors = critic.net(observations).squeeze(-1) - returns
            value_loss = errors.square().mean()
            critic.step(value_loss)

            policy = Categorical(logits=actor.net(observations))
            log_ratio = policy.log_prob(actions) - log_probs
            ratio = log_ratio.exp()
            clipped = ratio.clamp(1 - cfg.clip_ratio, 1 + cfg.clip_ratio)
            gain = torch.min(ratio * advantages, clipped * advantages)
            policy_loss, entropy = -gain.mean(), policy.entropy().mean()
            actor.step(policy_loss - cfg.entropy_coef * entropy)
            kl = (ratio - 1 - log_ratio).mean()
            history.append(torch.stack([policy_loss, value_loss, entropy, kl]).detach())
        if cfg.target_kl is not None and history[-1][-1] > cfg.target_kl:
            break
    return torch.stack(history).mean(0)


@torch.no_grad()
def evaluate(actor: nn.Module, episodes: int, seed: int) -> float:
    """Return the mean return of the greedy policy, one episode per environment."""
    returns, running = np.zeros(episodes), np.ones(episodes, dtype=bool)
    with closing(make_envs(episodes)) as envs:
        observation, _ = envs.reset(seed=seed)
        while running.any():
            action = actor(torch.from_numpy(observation)).argmax(-1)
            observation, reward, terminated, truncated, _ = envs.step(action.numpy())
            returns += reward * running
            running &= ~(terminated | truncated)
    return float(returns.mean())


def train(cfg: DictConfig, output_dir: Path) -> float:
    """Train the agent, leave metrics and a plot, and return the mean greedy return."""
    torch.set_num_threads(1)  # Threads only slow down networks as small as these.
    for set_seed in (random.seed, np.random.seed, torch.manual_seed):
        set_seed(cfg.seed)
    updates = math.ceil(cfg.total_env_steps / (cfg.num_envs * cfg.num_steps))
    steps = updates * cfg.num_epochs * cfg.num_minibatches
    actor = Learner(cfg, "actor", make_net(cfg.hidden_size, 2, gain=0.01), steps)
    critic = Learner(cfg, "critic", make_net(cfg.hidden_size, 1, gain=1.0), steps)
    with (
        closing(make_envs(cfg.num_envs)) as envs,
        Progress(disable=not cfg.progress) as progress,
    ):
        task = progress.add_task("training", total=updates)
        batches = rollouts(cfg, envs, actor.net, critic.net)
        for number in range(1, updates + 1):
            batch, mean_return = next(batches)
            losses = update(cfg, actor, critic, batch)
            rates = (actor.lr, critic.lr)
            row = {"mean_return": mean_return}
            row |= dict(zip(("lr.actor", "lr.critic"), rates, strict=True))
            row |= dict(zip(LOSSES, losses.tolist(), strict=True))
            env_steps = number * cfg.num_envs * cfg.num_steps
            log_metrics(env_steps, row, folder=output_dir)
            status = "return {:.0f}  actor lr {:.1e}  critic lr {:.1e}"
            description = status.format(mean_return, *rates)
            progress.update(task, advance=1, description=description)
    plot_metrics(output_dir, "PPO on CartPole-v1", "environment steps", ["mean_return"])
    return evaluate(actor.net, cfg.eval_episodes, seed=cfg.seed + 10_000)
