"""Small real models whose parameters the tests of the groups sort."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, relu, scaled_dot_product_attention

VOCABULARY, LENGTH, WIDTH = 11, 6, 8
NUM_EXPERTS, NUM_BLOCKS = 3, 2


class Attention(nn.Module):
    def __init__(self, *, bias: bool = True) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=bias)
        self.out = nn.Linear(WIDTH, WIDTH, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.out(scaled_dot_product_attention(q, k, v, is_causal=True))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position_embedding = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(NUM_BLOCKS))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token_embedding(tokens)
        x = x + self.position_embedding(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class RMSNorm(nn.Module):
    """Own class, as many models have it: neither torch's nor a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x * x.square().mean(-1, keepdim=True).add(1e-6).rsqrt() * self.weight


class Experts(nn.Module):
    """All experts of a block, stacked: two 3-D parameters and no submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Parameter(0.1 * torch.randn(NUM_EXPERTS, WIDTH, 2 * WIDTH))
        self.w2 = nn.Parameter(0.1 * torch.randn(NUM_EXPERTS, 2 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        hidden = gelu(torch.einsum("btd,edh->bteh", x, self.w1))
        return torch.einsum("bteh,ehd->bted", hidden, self.w2)


class MixtureOfExperts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, NUM_EXPERTS)
        self.experts = Experts()

    def forward(self, x: Tensor) -> Tensor:
        shares = self.router(x).softmax(-1).unsqueeze(-1)
        return (shares * self.experts(x)).sum(-2)


class MoeBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn_norm = RMSNorm()
        self.attention = Attention(bias=False)
        self.mlp_norm = RMSNorm()
        self.moe = MixtureOfExperts()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attn_norm(x))
        return x + self.moe(self.mlp_norm(x))


class Moe(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(MoeBlock() for _ in range(NUM_BLOCKS))
        self.ln_f = RMSNorm()
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token_embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class BasicBlock(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        stride = 1 if inside == outside else 2
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = None
        if stride == 2:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False),
                nn.BatchNorm2d(outside),
            )

    def forward(self, x: Tensor) -> Tensor:
        kept = x if self.downsample is None else self.downsample(x)
        return relu(kept + self.bn2(self.conv2(relu(self.bn1(self.conv1(x))))))


class ResNet(nn.Module):
    """Four stages under torchvision's names, of one, two, one and one block."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.layer1 = nn.Sequential(BasicBlock(4, 4))
        self.layer2 = nn.Sequential(BasicBlock(4, 8), BasicBlock(8, 8))
        self.layer3 = nn.Sequential(BasicBlock(8, 16))
        self.layer4 = nn.Sequential(BasicBlock(16, 32))
        self.fc = nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = relu(self.bn1(self.conv1(images)))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean((-2, -1)))


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.norm = nn.LayerNorm(2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(gelu(self.norm(self.up(x))))


def gpt() -> nn.Module:
    torch.manual_seed(0)
    return Gpt()


def tied() -> nn.Module:
    """Return a GPT whose head reads the very weight of its token embedding."""
    model = gpt()
    model.lm_head.weight = model.token_embedding.weight
    return model


def moe() -> nn.Module:
    torch.manual_seed(0)
    return Moe()


def resnet() -> nn.Module:
    torch.manual_seed(0)
    return ResNet()


def lora() -> nn.Module:
    """Return peft's LoRA on both linear layers of a network; all else is frozen."""
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - takes seconds

    torch.manual_seed(0)
    config = LoraConfig(r=2, target_modules=["up", "down"])
    return get_peft_model(Perceptron(), config)
