# SPDX-License-Identifier: Apache-2.0
# layers.py -- reads what layers.c prints and compares it with PyTorch in double: TAP.
import math
import sys

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
SAMPLES = 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv3d(2, 4, 3, padding=1)
        self.norm1 = nn.GroupNorm(2, 4)
        self.conv2 = nn.Conv3d(4, 6, 3, padding=1)
        self.norm2 = nn.InstanceNorm3d(6, affine=True)
        self.up = nn.ConvTranspose3d(6, 4, 2, stride=2)
        self.same = nn.ConvTranspose3d(6, 2, 3, stride=2, padding=1, output_padding=1)
        self.last = nn.ConvTranspose3d(10, 3, (2, 3, 1), stride=(1, 2, 1), dilation=(2, 1, 1))
        self.conv3 = nn.Conv3d(3, 3, 1)

    def forward(self, x):
        fine = torch.tanh(self.norm1(self.conv1(x)))
        coarse = torch.tanh(self.norm2(self.conv2(nn.functional.max_pool3d(fine, 2))))
        up = self.up(coarse)
        kept = fine
        for axis in (2, 3, 4):
            over = fine.shape[axis] - up.shape[axis]
            kept = kept.narrow(axis, over // 2, up.shape[axis])
        return self.conv3(torch.tanh(self.last(torch.cat([kept, up, self.same(coarse)], 1))))


# halo's names in the order of its parameters
names = [(layer + "/" + word, tensor) for layer, norm in
         (("conv1", 0), ("norm1", 1), ("conv2", 0), ("norm2", 1), ("up", 0), ("same", 0), ("last", 0), ("conv3", 0))
         for word, tensor in ((("gamma", "weight"), ("beta", "bias")) if norm else (("weights", "weight"), ("bias", "bias")))]
net = Net()
with torch.no_grad():
    for k, (name, tensor) in enumerate(names):
        w = getattr(getattr(net, name.split("/")[0]), tensor)
        n = w.numel()
        w.copy_(torch.tensor([0.3 * math.sin(1.3 * i + k) + ("gamma" in name) for i in range(n)]).view(w.shape))
x = torch.tensor([math.sin(0.7 * i) for i in range(SAMPLES * 2 * 6 * 5 * 7)]).float().double().view(SAMPLES, 2, 6, 5, 7)
out = net(x)
n = out.numel() // 3
label = torch.tensor([(7 * i + i // 5) % 3 for i in range(n)]).view(SAMPLES, *out.shape[2:])
loss = nn.functional.cross_entropy(out, label)
loss.backward()

test, failed, tolerance, where, at = 0, 0, 1e-10, "ref", 0
for line in sys.stdin:
    word, *numbers = line.split()
    if word == "cpu":
        tolerance, where, at = 2e-5, "cpu", 0
        continue
    got = torch.tensor([float(v) for v in numbers])
    if word == "loss":
        want = loss.detach().view(1)
    else:
        name, tensor = names[at]
        want = getattr(getattr(net, name.split("/")[0]), tensor).grad.reshape(-1)
        at += 1
    # a bias in front of a norm of its own channels has a gradient of 0
    scale = max(float(want.abs().max()), 1e-4)
    error = float((got - want).abs().max()) / scale if got.shape == want.shape else math.inf
    test += 1
    good = error <= tolerance
    failed += not good
    print(f"{'ok' if good else 'not ok'} {test} - {where}: {word} is PyTorch's ({error:.1e} of {scale:.2g})")
test += 1
of_each = 17  # loss and 16 gradients
complete = test - 1 == of_each * (2 if where == "cpu" else 1)
failed += not complete
print(f"{'ok' if complete else 'not ok'} {test} - loss and 16 gradients of each backend")
print(f"1..{test}")
sys.exit(failed > 0)
