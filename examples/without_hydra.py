"""Use the library from plain Python: no Hydra program, no YAML file."""

import torch
from torch import nn

from optim_hydra import OptimConfig, build_lr_scheduler, build_optimizer

config = OptimConfig(
    optimizer="SGD",
    override_optimizer_config={"momentum": 0.9, "nesterov": True},
    lr=0.05,
    lr_scheduler_type="cosine",
    lr_warmup_steps=10,
    total_training_steps=200,
)
torch.manual_seed(0)
model, inputs = nn.Linear(4, 1), torch.randn(64, 4)
targets = inputs @ torch.tensor([[1.0], [2.0], [3.0], [4.0]])
optimizer = build_optimizer(model, config)
scheduler = build_lr_scheduler(optimizer, config)
for _ in range(200):
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(f"loss {loss.item():.1e}, weights {model.weight.data[0].tolist()}")
