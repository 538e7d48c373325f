# SPDX-License-Identifier: Apache-2.0
# step.py THREADS WARMUP STEPS -- times training steps of cosmoflow mlperf at 128^3, batch 1, in PyTorch, as `halo bench` does for halo: generated
# input, forward, mean squared error, backward, SGD with momentum. Prints "best seconds, cpu seconds per step, peak resident bytes".
import resource
import sys
import time

import torch
from torch import nn

threads, warmup, steps = (int(word) for word in sys.argv[1:4])
torch.set_num_threads(threads)
torch.manual_seed(1)


class Scale(nn.Module):
    def forward(self, x):
        return 1.2 * torch.tanh(x)


layers, channels = [], 4
for filters in (32, 64, 128, 256, 512):
    layers += [nn.Conv3d(channels, filters, 3, padding=1), nn.LeakyReLU(0.3), nn.MaxPool3d(2)]
    channels = filters
layers += [nn.Flatten(), nn.Dropout(0.5)]
for i, o in ((512 * 4**3, 128), (128, 64)):
    layers += [nn.Linear(i, o), nn.LeakyReLU(0.3), nn.Dropout(0.5)]
layers += [nn.Linear(64, 4), Scale()]
net = nn.Sequential(*layers)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6, momentum=0.9)
x, y = torch.randn(1, 4, 128, 128, 128), torch.rand(1, 4)

best = float("inf")
for step in range(warmup + steps):
    if step == warmup:
        cpu = time.process_time()
    start = time.perf_counter()
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
    if step >= warmup:
        best = min(best, time.perf_counter() - start)
cpu = (time.process_time() - cpu) / steps
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(best, cpu, peak, torch.__version__)
