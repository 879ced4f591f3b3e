#!/usr/bin/env python3
"""Real programs for bench/ground-truth --day, with PyTorch: each kind is an ordinary use of a GPU of its own.

usage: programs.py KIND [--size small|medium|large] [--seed N] [--job NAME]

Work is counted in units (a training step, a served batch, ...), which stand still while a process is preempted. Unlike
bench/loads.cu, a program is told when to make its context: PyTorch takes seconds to load, and the GPU shall not see it
before its phase begins. On stdin (<) and stdout (>):

    > loaded                        PyTorch is imported; there is no context yet
    < context [KIND]                make the context, build the model, warm up; KIND replaces the one in argv
    > ready
    < start EPOCH SECONDS [BUSY PAUSE]    work for SECONDS from EPOCH on; random phases with these means
    > end units N start_us A end_us B
    < (stdin closes)                end

--job does nothing: it makes command lines differ as those of real jobs do.
"""
import argparse
import random
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

SIZES = {"small": 0, "medium": 1, "large": 2}


class Block(nn.Module):
    """A transformer layer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None, causal=True):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal and cache is None)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x)))), (k, v)


def serve_llm(size):
    """Language model serving: a prefill, then decoding token by token against a growing cache."""
    width, layers = (1024, 2048, 4096)[size], 8
    blocks = nn.ModuleList([Block(width, width // 128) for _ in range(layers)]).to(torch.bfloat16).eval()
    prompt = torch.randn(8, 512, width, dtype=torch.bfloat16)

    @torch.no_grad()
    def unit():
        x, caches = prompt, []
        for block in blocks:
            x, cache = block(x)
            caches.append(cache)
        x = x[:, -1:]
        for _ in range(24):
            for i, block in enumerate(blocks):
                x, caches[i] = block(x, caches[i])
    return unit


def train_llm(size):
    """Language model training, bf16, AdamW."""
    width = (768, 1024, 2048)[size]
    model = nn.ModuleList([Block(width, width // 64) for _ in range(6)])
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    tokens = torch.randn(8, 512, width)

    def unit():
        with torch.autocast("cuda", torch.bfloat16):
            x = tokens
            for block in model:
                x, _ = block(x)
            loss = (x - tokens.roll(1, 1)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return unit


def train_vision(size):
    """Vision training: a residual network in channels-last half precision."""
    width = (32, 64, 128)[size]

    class Residual(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.a, self.b = nn.Conv2d(inputs, outputs, 3, stride, 1), nn.Conv2d(outputs, outputs, 3, 1, 1)
            self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
            self.skip = nn.Conv2d(inputs, outputs, 1, stride)

        def forward(self, x):
            return F.relu(self.skip(x) + self.norms[1](self.b(F.relu(self.norms[0](self.a(x))))))

    model = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1), Residual(width, width, 1), Residual(width, 2 * width, 2),
                          Residual(2 * width, 4 * width, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(4 * width, 100)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    images = torch.randn(64, 3, 64, 64).to(memory_format=torch.channels_last)
    classes = torch.randint(0, 100, (64,))

    def unit():
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(images), classes)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return unit


def diffuse(size):
    """Image generation: denoising steps of a small UNet with attention at the bottom."""
    width = (64, 96, 128)[size]
    down = nn.ModuleList([nn.Conv2d(4, width, 3, 1, 1), nn.Conv2d(width, 2 * width, 3, 2, 1),
                          nn.Conv2d(2 * width, 4 * width, 3, 2, 1)]).half()
    up = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1),
                        nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.Conv2d(width, 4, 3, 1, 1)]).half()
    middle = Block(4 * width, 4).half()
    noise = torch.randn(4, 4, 128, 128, dtype=torch.float16)

    @torch.no_grad()
    def unit():
        x = noise
        for _ in range(4):
            levels, h = [], x
            for layer in down:
                h = F.silu(layer(h))
                levels.append(h)
            flat = h.flatten(2).transpose(1, 2)
            flat, _ = middle(flat, causal=False)
            h = flat.transpose(1, 2).reshape(h.shape)
            h = F.silu(up[0](h + levels[2]))
            h = F.silu(up[1](h + levels[1]))
            x = x - 0.1 * up[2](h + levels[0])
    return unit


def recommend(size):
    """Recommendation: embedding bags and a small network, training."""
    rows = (2_000_000, 4_000_000, 8_000_000)[size]
    bags = nn.EmbeddingBag(rows, 64, mode="sum", sparse=True)
    head = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizers = [torch.optim.SGD(bags.parameters(), 0.01), torch.optim.SGD(head.parameters(), 0.01)]
    items, offsets = torch.randint(0, rows, (16384 * 32,)), torch.arange(0, 16384 * 32, 32)

    def unit():
        head(bags(items, offsets)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return unit


def attend(size):
    """Long attention: a context of many thousand tokens."""
    length = (8192, 16384, 32768)[size]
    q, k, v = (torch.randn(1, 16, length, 128, dtype=torch.bfloat16) for _ in range(3))

    @torch.no_grad()
    def unit():
        F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return unit


def convolve_graph(size):
    """Graph learning: gathering from neighbours and scattering to them."""
    nodes, edges = (200_000, 400_000, 800_000)[size], 4_000_000
    features, weight = torch.randn(nodes, 64), torch.randn(64, 64)
    source, target = torch.randint(0, nodes, (edges,)), torch.randint(0, nodes, (edges,))

    @torch.no_grad()
    def unit():
        gathered = (features @ weight)[source]
        torch.zeros_like(features).index_add_(0, target, gathered)
    return unit


def simulate_flow(size):
    """Physics: a spectral solver, two-dimensional FFTs there and back."""
    n = (1024, 2048, 4096)[size]
    field = torch.randn(8, n, n, dtype=torch.complex64)
    damping = torch.rand(n, n)

    @torch.no_grad()
    def unit():
        nonlocal field
        field = torch.fft.ifft2(torch.fft.fft2(field) * damping)
        field = field / field.abs().amax().clamp_min(1e-6)
    return unit


def sort_rows(size):
    """Data preparation: sorting and deduplicating keys."""
    keys = torch.randint(0, 1 << 40, ((10_000_000, 20_000_000, 40_000_000)[size],))

    @torch.no_grad()
    def unit():
        torch.unique_consecutive(torch.sort(keys).values)
    return unit


def attract(size):
    """Astronomy: all pairs of bodies, in single precision."""
    bodies = torch.randn((8192, 16384, 24576)[size], 3)

    @torch.no_grad()
    def unit():
        nonlocal bodies
        distance = torch.cdist(bodies, bodies, compute_mode="donot_use_mm_for_euclid_dist")
        force = (distance + 0.1).pow(-3)
        bodies = bodies + 1e-6 * (force @ bodies - force.sum(1, keepdim=True) * bodies)
    return unit


def solve(size):
    """Engineering: dense systems in double precision."""
    n = (2048, 4096, 6144)[size]
    matrix = torch.randn(n, n, dtype=torch.float64)
    matrix = matrix @ matrix.T + n * torch.eye(n, dtype=torch.float64)
    right = torch.randn(n, 64, dtype=torch.float64)

    @torch.no_grad()
    def unit():
        torch.cholesky_solve(right, torch.linalg.cholesky(matrix))
    return unit


def transcribe(size):
    """Speech: convolutions over time and a recurrent network, many small kernels."""
    width = (256, 512, 1024)[size]
    convolution, rnn = nn.Conv1d(80, width, 5, 2, 2), nn.LSTM(width, width, 2, batch_first=True)
    sound = torch.randn(16, 80, 1000)

    @torch.no_grad()
    def unit():
        rnn(F.relu(convolution(sound)).transpose(1, 2))
    return unit


def price_options(size):
    """Finance: Monte Carlo paths, random numbers and special functions."""
    paths = (10_000_000, 20_000_000, 40_000_000)[size]

    @torch.no_grad()
    def unit():
        price = torch.zeros(paths)
        for _ in range(4):
            price = price + 0.01 * torch.randn(paths) - 0.00005
        (torch.exp(price) - 1).clamp_min(0).mean()
    return unit


def play(size):
    """Reinforcement learning: a tiny network stepped thousands of times, bound by launches."""
    network = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 8))
    states = torch.randn((64, 256, 1024)[size], 64)

    @torch.no_grad()
    def unit():
        nonlocal states
        for _ in range(60):
            action = network(states).softmax(-1)
            states = 0.99 * states + 0.01 * action.repeat(1, 8)
    return unit


def aggregate(size):
    """Analytics: scans and grouped sums over wide columns."""
    rows = (20_000_000, 40_000_000, 80_000_000)[size]
    values, groups = torch.rand(rows), torch.randint(0, 1000, (rows,))

    @torch.no_grad()
    def unit():
        torch.zeros(1000).scatter_add_(0, groups[:4_000_000], values[:4_000_000])
        torch.cumsum(values, 0)
        (values > 0.5).sum()
    return unit


def wait(size):
    """A notebook that holds memory and does nothing."""
    held = torch.zeros((1 << 28, 1 << 30, 1 << 31)[size], dtype=torch.uint8)

    def unit():
        time.sleep(0.05)
        assert held is not None
    return unit


KINDS = {f.__name__: f for f in (serve_llm, train_llm, train_vision, diffuse, recommend, attend, convolve_graph,
                                 simulate_flow, sort_rows, attract, solve, transcribe, price_options, play, aggregate,
                                 wait)}


def prepare(kind, size):
    torch.set_default_device("cuda")
    unit = KINDS[kind](SIZES[size])
    for _ in range(3):
        unit()
    torch.cuda.synchronize()
    return unit


def work(unit, start, seconds, busy, pause, chance):
    """Units done, and when that began and ended."""
    time.sleep(max(0.0, start - time.time()))
    begin, units = time.time(), 0
    phase_end = begin + chance.expovariate(1 / busy) if busy else float("inf")
    while (now := time.time()) < start + seconds:
        if now >= phase_end:
            time.sleep(min(chance.expovariate(1 / pause), max(0.0, start + seconds - now)))
            phase_end = time.time() + chance.expovariate(1 / busy)
            continue
        unit()
        torch.cuda.synchronize()
        units += 1
    return units, int(begin * 1e6), int(time.time() * 1e6)


def say(text):
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--size", choices=SIZES, default="medium")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    chance, unit = random.Random(options.seed), None
    say("loaded")
    for line in sys.stdin:
        words = line.split()
        if words[0] == "context":
            unit = prepare(words[1] if len(words) > 1 else options.kind, options.size)
            say("ready")
        elif words[0] == "start":
            busy, pause = map(float, words[3:5]) if len(words) > 3 else (0, 0)
            units, start_us, end_us = work(unit, float(words[1]), float(words[2]), busy, pause, chance)
            say(f"end units {units} start_us {start_us} end_us {end_us}")


if __name__ == "__main__":
    main()
