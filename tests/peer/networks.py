# SPDX-License-Identifier: Apache-2.0
# networks.py HALO DIRECTORY WHICH [PART] -- every network of the zoo, built in PyTorch, beside halo: TAP. halo trains a step from its own first values at a
# rate that changes no weight; its checkpoint then holds those values, and in the momentum the gradients. PyTorch loads the parameters by the names that
# doc/formats.md gives them, and must find the same outputs, gradients and running statistics. Both then train 20 steps from there, by sgd and by adam,
# and must meet the same losses. The samples of a batch are all samples, so that their order is nobody's matter; there is no dropout.
#
# WHICH: "quick", or "full" for larger volumes too. PART: of the titles of those to compare. doc/from-pytorch.md tells what differs between the two and why it is written here as it is.
import json
import math
import os
import subprocess
import sys
from collections import OrderedDict

import h5py
import numpy
import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
torch.manual_seed(1)  # its first values are the same in every run, and so is what is compared
halo, directory, which = sys.argv[1:4]
STEPS = 20
RATE = 1e-20  # no weight notices, yet in float a gradient times it is far from the smallest number


class Flatten(nn.Module):
    """In TensorFlow's order, d h w c, where channels_last; into rows of `features` values."""

    def __init__(self, channels_last, features):
        super().__init__()
        self.channels_last, self.features = channels_last, features

    def forward(self, x):
        x = x.permute(0, 2, 3, 4, 1) if self.channels_last else x
        return x.reshape(-1, self.features) if self.features else x.flatten(1)


class Scale(nn.Module):
    def forward(self, x):
        return 1.2 * x


def cosmoflow(variant, size, batch_norm=False, wiring="paper", padding="zeros"):
    """The three CosmoFlow networks: (filters, kernel, stride, pool) of each convolution."""
    sc18, mlperf = variant == "sc18", variant == "mlperf"
    log2 = size.bit_length() - 1
    if sc18:
        stages = [(16, 3, 1, 1), (32, 4, 1, 1), (64, 4, 1, 1), (128, 3, 2, 0), (256, 3, 1, 0), (256, 2, 1, 0), (256, 2, 1, 0)]
        for i, needs in enumerate((108, 55, 30)):  # pools that a small volume cannot bear
            if size < needs:
                stages[i] = (*stages[i][:3], 0)
        if wiring == "as-run":
            stages[2], stages[3] = (64, 4, 2, 0), (128, 3, 1, 0)
        channels, outputs, slope, momentum, dense, edge = 1, 3, 0.01, 0.99, (2048, 256), 0
    elif mlperf:
        stages = [(min(32 << i, 512), 3, 1, 1) for i in range(log2 - 2)]
        channels, outputs, slope, momentum, dense, edge = 4, 4, 0.3, 0.99, (128, 64), 1
    else:
        stages = [(f, 3, 2 if i == 3 else 1, i < log2 - 2) for i, f in enumerate((16, 32, 64, 128, 256, 256, 256))]
        channels, outputs, slope, momentum, dense, edge = 4, 4, 0.01, 0.999, (2048, 256), 1
    layers, cells, c = OrderedDict(), size, channels
    for i, (filters, kernel, stride, pool) in enumerate(stages, 1):
        bias = variant != "hybrid" and not batch_norm
        layers[f"conv{i}"] = nn.Conv3d(c, filters, kernel, stride, edge, bias=bias, padding_mode=padding)
        if batch_norm:
            layers[f"norm{i}"] = nn.BatchNorm3d(filters, momentum=1 - momentum)
        layers[f"act{i}"] = nn.LeakyReLU(slope)
        cells, c = (cells + 2 * edge - kernel) // stride + 1, filters
        if pool:
            layers[f"pool{i}"] = nn.MaxPool3d(2) if mlperf else nn.AvgPool3d(2) if sc18 else nn.AvgPool3d(3, 2, 1)
            cells = (cells + 2 - 3) // 2 + 1 if variant == "hybrid" else cells // 2
    rows = 2048 if wiring == "as-run" else 0
    layers["flatten"] = Flatten(variant != "hybrid", rows)
    c = rows or c * cells**3
    for i, out in enumerate((*dense, outputs), 1):
        layers[f"fc{i}"] = nn.Linear(c, out)
        if i < 3:
            layers[f"fc{i}_act"] = nn.LeakyReLU(slope)
        c = out
    if mlperf:
        layers["tanh"], layers["scale"] = nn.Tanh(), Scale()
    return nn.Sequential(layers), channels, outputs


class UNet3d(nn.Module):
    def __init__(self, norm, levels, first, padding="zeros", channels=1, classes=3):
        super().__init__()
        self.levels = levels
        kind = {
            "batch": lambda c: nn.BatchNorm3d(c, momentum=0.01),
            "group": lambda c: nn.GroupNorm(8, c),
            "instance": lambda c: nn.InstanceNorm3d(c, affine=True),
        }[norm]

        def stage(place, c, middle, filters):
            for i, (before, after) in enumerate(((c, middle), (middle, filters)), 1):
                self.add_module(f"{place}_conv{i}", nn.Conv3d(before, after, 3, padding=1, bias=False, padding_mode=padding))
                self.add_module(f"{place}_norm{i}", kind(after))

        for i in range(levels):
            stage(self.place(i), channels if i == 0 else first << i, first << i, first << (i + 1))
        for i in range(levels - 1):
            filters = first << (i + 2)
            self.add_module(f"up{i + 1}_deconv", nn.ConvTranspose3d(filters, filters, 2, stride=2, bias=False))
            stage(f"up{i + 1}", filters + (first << (i + 1)), first << (i + 1), first << (i + 1))
        self.logits = nn.Conv3d(first << 1, classes, 1)

    def place(self, i):
        return f"down{i + 1}" if i + 1 < self.levels else f"bottom{i + 1}"

    def stage(self, place, x):
        for i in (1, 2):
            x = torch.relu(getattr(self, f"{place}_norm{i}")(getattr(self, f"{place}_conv{i}")(x)))
        return x

    def forward(self, x):
        skips = []
        for i in range(self.levels):
            x = self.stage(self.place(i), nn.functional.max_pool3d(x, 2) if i else x)
            skips.append(x)
        for i in range(self.levels - 2, -1, -1):
            up = getattr(self, f"up{i + 1}_deconv")(x)
            x = self.stage(f"up{i + 1}", torch.cat([skips[i], up], 1))
        return self.logits(x)


class FCDenseNet(nn.Module):
    """One stack for a block, activated as a whole before each layer: as the papers draw it, not as halo computes it."""

    def __init__(self, blocks, growth, kernel, up_kernel, channels, deep, padding="zeros"):
        super().__init__()
        self.blocks, self.pools, c, across, self.scale = blocks, len(blocks) // 2, growth, [], (2 if deep else 1, 2, 2)
        window = (kernel if deep else 1, kernel, kernel)

        def conv(name, before, after, k=window, bias=True):
            self.add_module(name, nn.Conv3d(before, after, k, padding=tuple(n // 2 for n in k), bias=bias, padding_mode=padding))

        conv("stem", channels, c)
        for i in range(self.pools):
            for j in range(blocks[i]):
                conv(f"down{i + 1}_conv{j + 1}", c + growth * j, growth)
            c += growth * blocks[i]
            across.append(c)
            self.add_module(f"down{i + 1}_norm", nn.BatchNorm3d(c, momentum=0.01))
            conv(f"down{i + 1}_down", c, c, (1, 1, 1), False)
        for j in range(blocks[self.pools]):
            conv(f"bottom_conv{j + 1}", c + growth * j, growth)
        for i in range(self.pools - 1, -1, -1):
            made, layers = growth * blocks[2 * self.pools - 1 - i], blocks[2 * self.pools - i]
            up = (up_kernel if deep else 1, up_kernel, up_kernel)
            behind = tuple(s - k for s, k in zip(self.scale, up))
            self.add_module(f"up{i + 1}_up", nn.ConvTranspose3d(made, made, up, self.scale, bias=False, output_padding=behind))
            c = made + across[i]
            for j in range(layers):
                conv(f"up{i + 1}_conv{j + 1}", c + growth * j, growth)
            c += growth * layers
        conv("head", c, 1, (1, 1, 1))

    def block(self, place, layers, x):
        made = []
        for j in range(layers):
            made.append(getattr(self, f"{place}_conv{j + 1}")(torch.relu(x)))
            x = torch.cat([x, made[-1]], 1)
        return x, torch.cat(made, 1)

    def forward(self, x):
        x, across = self.stem(x), []
        for i in range(self.pools):
            x, _ = self.block(f"down{i + 1}", self.blocks[i], x)
            across.append(x)
            x = getattr(self, f"down{i + 1}_down")(torch.relu(getattr(self, f"down{i + 1}_norm")(x)))
            x = nn.functional.max_pool3d(x, self.scale)
        _, made = self.block("bottom", self.blocks[self.pools], x)
        for i in range(self.pools - 1, -1, -1):
            x = torch.cat([across[i], getattr(self, f"up{i + 1}_up")(made)], 1)
            x, made = self.block(f"up{i + 1}", self.blocks[2 * self.pools - i], x)
        return self.head(x)


# --- a checkpoint's names beside PyTorch's

WORDS = {"weights": "weight", "bias": "bias", "gamma": "weight", "beta": "bias", "running_mean": "running_mean", "running_variance": "running_var"}


def tensors(net, group):
    """(name, PyTorch's tensor, halo's dataset) of each tensor of a group of a checkpoint: LAYER/weights, ..."""
    found = []
    group.visititems(lambda name, item: found.append((name, item)) if isinstance(item, h5py.Dataset) else None)
    for name, item in found:
        layer, word = name.split("/")
        yield name, getattr(net.get_submodule(layer), WORDS[word]), torch.tensor(item[()], dtype=torch.float64)


def load(net, path):
    """halo's parameters into a network whose modules have the names of halo's layers; every one must be there, and no other."""
    with h5py.File(path) as f, torch.no_grad():
        loaded = 0
        for name, to, value in tensors(net, f["parameters"]):
            assert to.shape == value.shape, f"{name}: {tuple(to.shape)} here, {tuple(value.shape)} in the checkpoint"
            to.copy_(value)
            loaded += 1
    expected = sum(1 for name, _ in [*net.named_parameters(), *net.named_buffers()] if not name.endswith("num_batches_tracked"))
    assert loaded == expected, f"{loaded} tensors in the checkpoint, {expected} here"


def save(net, path):
    """PyTorch's parameters in a file for halo's init.from."""
    with h5py.File(path, "w") as f:
        f.attrs["halo_file"], f.attrs["halo_file_version"] = "halo checkpoint", 1
        for layer, module in net.named_modules():
            norm = isinstance(module, (nn.BatchNorm3d, nn.GroupNorm, nn.InstanceNorm3d))
            for name, word in (("gamma" if norm else "weights", "weight"), ("beta" if norm else "bias", "bias"), ("running_mean", "running_mean"), ("running_variance", "running_var")):
                value = getattr(module, word, None)
                if isinstance(value, torch.Tensor):
                    f[f"parameters/{layer}/{name}"] = value.detach().float().numpy()


# --- TAP

count = failed = 0


def claim(good, sentence):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {sentence}", flush=True)


def distance(got, want, floor=0.0):
    """The largest difference beside the largest value wanted (or beside `floor`, if that is more)."""
    scale = max(float(want.abs().max()), floor)
    return float((got - want).abs().max()) / scale if got.shape == want.shape and scale > 0 else math.inf


def run(*arguments):
    done = subprocess.run([halo, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print("".join(f"# {line}\n" for line in done.stdout.splitlines()[-10:]) + f"Bail out! {' '.join(arguments)}")
        sys.exit(1)
    return done.stdout


def losses(folder):
    with open(folder + "/log.jsonl", encoding="utf-8") as f:
        events = [json.loads(line) for line in f]
    return torch.tensor([e["loss"] for e in events if e["event"] == "step"])


def decayed(net, decay):
    """Weights of convolutions and dense layers decay in halo; biases and what belongs to norms do not."""
    heavy = [p for m in net.modules() if isinstance(m, (nn.modules.conv._ConvNd, nn.Linear)) for n, p in m.named_parameters() if n == "weight"]
    light = [p for p in net.parameters() if not any(p is q for q in heavy)]
    return [{"params": heavy, "weight_decay": decay}, {"params": light, "weight_decay": 0.0}]


class Case:
    def __init__(self, title, keys, net, size, batch, channels, outputs, precision, rows=1, images=False):
        """size: of a cube, or D H W; images: what comes out is as large as what goes in, and numbers, not classes."""
        self.title, self.net, self.classes, self.images, self.batch, self.rows = title, net, keys[0] == "unet3d", images, batch, rows
        size = size if isinstance(size, tuple) else (size, size, size)
        self.folder = os.path.join(directory, title.replace(" ", "-").replace(",", ""))
        os.makedirs(self.folder + "/out")
        random = numpy.random.default_rng(7)
        x = random.standard_normal((batch, channels, *size)).astype("f4")
        y = random.integers(0, outputs, (batch, *size)).astype("u1") if self.classes else random.uniform(-1, 1, (batch, outputs, *(size if images else ()))).astype("f4")
        numpy.save(self.folder + "/x.npy", x)
        numpy.save(self.folder + "/y.npy", y)
        self.x, self.y = torch.tensor(x).double(), torch.tensor(y.astype("i8")) if self.classes else torch.tensor(y).double()
        device = ["backend=ref", "precision=f64"] if precision == "f64" else []
        self.exact = precision == "f64"
        self.data = [f"data.test={self.folder}/x.npy", f"data.train={self.folder}/x.npy", "data.x.axes=[n,c,d,h,w]", f"data.y.from={self.folder}/y.npy", "data.transform=[]"]
        self.data += ["data.y.axes=[n,d,h,w]", "loss=cross_entropy"] if self.classes else ["data.targets.range=none"]
        self.data += ["data.y.axes=[n,c,d,h,w]"] if images else []
        self.keys = [*keys, *self.data, *device, f"batch={batch}", "dropout=false", "train.norm_samples=0", "plan=fixed", "train.log_every=1"]

    def loss(self, out):
        if self.classes:
            return nn.functional.cross_entropy(out, self.y)
        return nn.functional.mse_loss(out, self.y.repeat_interleave(self.rows, 0))  # rows of a sample have its targets

    def from_pytorch(self):
        """halo begins with PyTorch's own first values."""
        path = self.folder + "/pytorch.h5"
        save(self.net, path)
        load(self.net, path)  # rounded to float
        run("train", *self.keys, f"init.from={path}", "optimizer.name=sgd", f"optimizer.lr={RATE}", "train.epochs=1", f"output={self.folder}/zero")
        self.net.train()
        want = self.loss(self.net(self.x)).detach().view(1)
        error = distance(losses(f"{self.folder}/zero"), want)
        claim(error <= (1e-10 if self.exact else 1e-4), f"{self.title}: loss {float(want):.6f} with the values that PyTorch begins with ({error:.1e})")
        with torch.no_grad():  # as a new network has them
            for m in self.net.modules():
                if isinstance(m, nn.BatchNorm3d):
                    m.reset_running_stats()

    def one_step(self):
        """Outputs, loss, gradients and running statistics."""
        tight, title = (1e-10, self.title) if self.exact else (1e-4, self.title)
        run("train", *self.keys, "optimizer.name=sgd", f"optimizer.lr={RATE}", "train.epochs=1", f"output={self.folder}/one")
        self.start = f"{self.folder}/one/checkpoints/step-0000000001.h5"
        running = {n: b.clone() for n, b in self.net.named_buffers()}
        load(self.net, self.start)
        after = {n: b.clone() for n, b in self.net.named_buffers() if not n.endswith("tracked")}
        self.net.eval()
        with torch.no_grad():
            out = self.net(self.x)
        got = self.predicted()
        want = out.argmax(1).double() if self.classes else out if self.images else out.view(self.batch, self.rows, -1).mean(1)
        error = float((got != want).double().mean()) if self.classes else distance(got, want)
        claim(error <= (max(tight, 1e-6) if not self.classes else 0 if self.exact else 1e-3), f"{title}: outputs ({error:.1e})")
        # training: statistics of the batch, which move the running ones (f32 in halo) on from where they began
        self.net.train()
        with torch.no_grad():
            for n, b in self.net.named_buffers():
                b.copy_(running[n])
        loss = self.loss(self.net(self.x))
        loss.backward()
        error = distance(losses(f"{self.folder}/one"), loss.detach().view(1))
        claim(error <= tight, f"{title}: loss {float(loss):.6f} ({error:.1e})")
        worst, least, where, number = 0.0, max(float(p.grad.abs().max()) for p in self.net.parameters()) * 1e-4, "", 0
        with h5py.File(self.start) as f:
            for name, p, m in tensors(self.net, f["optimizer/m"]):
                error, number = distance(-m / RATE, p.grad, least), number + 1
                worst, where = (error, name) if not error <= worst else (worst, where)
        claim(worst <= tight and number == len(list(self.net.parameters())), f"{title}: {number} gradients ({worst:.1e} in {where})")
        if after:
            worst = max(distance(after[n], b) for n, b in self.net.named_buffers() if n in after)
            claim(worst <= max(tight, 1e-7), f"{title}: {len(after)} running statistics ({worst:.1e})")

    def predicted(self):
        run("predict", self.start, f"output={self.folder}/out", *self.data[:1])
        if self.classes:
            with h5py.File(self.folder + "/out/predictions.h5") as f:
                return torch.tensor(f["prediction"][:, 0].astype("f8"))
        if self.images:
            with h5py.File(self.folder + "/out/predictions.h5") as f:
                return torch.tensor(f["prediction"][()].astype("f8"))
        table = numpy.loadtxt(self.folder + "/out/predictions.csv", delimiter=",", skiprows=1, usecols=range(2 + self.y.shape[1], 2 + 2 * self.y.shape[1]), comments=None, ndmin=2)
        return torch.tensor(table)

    def train(self, name, rate, decay):
        """20 steps from the checkpoint."""
        run("train", *self.keys, f"init.from={self.start}", f"optimizer.name={name}", f"optimizer.lr={rate}", f"optimizer.weight_decay={decay}",
            f"train.epochs={STEPS}", f"checkpoint.every={STEPS}", f"output={self.folder}/{name}")
        load(self.net, self.start)
        groups = decayed(self.net, decay)
        kinds = {"sgd": lambda: torch.optim.SGD(groups, rate, 0.9), "nesterov": lambda: torch.optim.SGD(groups, rate, 0.9, nesterov=True),
                 "adam": lambda: torch.optim.Adam(groups, rate), "adamw": lambda: torch.optim.AdamW(groups, rate)}
        optimizer, want = kinds[name](), []
        for t in range(1, STEPS + 1):
            if name.startswith("adam"):  # epsilon as TensorFlow adds it: outside the bias correction
                for group in optimizer.param_groups:
                    group["eps"] = 1e-8 / math.sqrt(1 - 0.999**t)
            optimizer.zero_grad()
            loss = self.loss(self.net(self.x))
            loss.backward()
            optimizer.step()
            want.append(float(loss.detach()))
        want, got = torch.tensor(want), losses(f"{self.folder}/{name}")
        # in double each loss beside itself; in float beside the largest, as a loss that 20 steps made a hundredth shows a hundred times its rounding
        error = distance(got / want, torch.ones(STEPS)) if self.exact else distance(got, want)
        claim(error <= (1e-9 if self.exact else 1e-4), f"{self.title}: losses of {STEPS} {name} steps, {want[0]:.4f} to {want[-1]:.4f} ({error:.1e})")


def cosmoflow_case(variant, size, batch, precision, **options):
    net, channels, outputs = cosmoflow(variant, size, **options)
    words = [variant + (" batch norm" if options.get("batch_norm") else ""), options.get("wiring"), "periodic" if "padding" in options else None, f"{size}^3", precision]
    keys = ["cosmoflow", f"variant={variant}", f"size={size}", f"batch_norm={str(options.get('batch_norm', False)).lower()}", f"wiring={options.get('wiring', 'paper')}"]
    keys += ["padding=periodic"] if "padding" in options else []
    rows = 1
    if "wiring" in options:
        with torch.no_grad():
            rows = net(torch.zeros(1, channels, size, size, size)).shape[0]
    return Case(" ".join(word for word in words if word), keys, net, size, batch, channels, outputs, precision, rows)


def unet_case(norm, size, batch, levels, first, precision, padding="zeros"):
    keys = ["unet3d", f"variant={norm}", f"size={size}", f"levels={levels}", f"first_channels={first}"] + (["padding=periodic"] if padding != "zeros" else [])
    title = f"unet3d {norm} {'periodic ' if padding != 'zeros' else ''}{size}^3 {precision}"
    return Case(title, keys, UNet3d(norm, levels, first, padding), size, batch, 1, 3, precision)


def dense_case(size, batch, blocks, growth, kernel, up_kernel, precision, padding="zeros"):
    keys = ["fcdensenet", f"size=[{','.join(str(n) for n in size)}]", f"growth={growth}", f"kernel={kernel}", f"up_kernel={up_kernel}", f"blocks=[{','.join(str(n) for n in blocks)}]"]
    keys += ["padding=periodic"] if padding != "zeros" else []
    title = f"fcdensenet {growth}-{kernel} {'periodic ' if padding != 'zeros' else ''}of {'x'.join(str(n) for n in size)} {precision}"
    return Case(title, keys, FCDenseNet(blocks, growth, kernel, up_kernel, 3, size[0] > 1, padding), size, batch, 3, 1, precision, images=True)


def cases():
    """(case, rates of sgd and adam for going on from there; 0: not). Rates at which rounding in f32 does not grow: 20 steps of a large rate are chaos."""
    yield cosmoflow_case("mlperf", 16, 3, "f32"), 1e-3, 1e-4
    yield cosmoflow_case("mlperf", 16, 3, "f32", batch_norm=True), 1e-3, 1e-4
    yield cosmoflow_case("mlperf", 8, 3, "f32", padding="circular"), 1e-3, 1e-4
    yield cosmoflow_case("hybrid", 16, 3, "f32"), *((1e-3, 1e-4) if which == "full" else (0, 0))
    yield cosmoflow_case("hybrid", 16, 3, "f32", batch_norm=True), 1e-4, 1e-5
    yield cosmoflow_case("sc18", 19, 1, "f32"), 1e-3, 1e-5
    yield cosmoflow_case("sc18", 21, 2, "f32", batch_norm=True), *((1e-5, 1e-6) if which == "full" else (0, 0))
    yield cosmoflow_case("sc18", 23, 1, "f32", wiring="as-run"), *((1e-3, 1e-4) if which == "full" else (0, 0))
    for norm in ("batch", "group", "instance"):
        yield unet_case(norm, 8, 3, 2, 8, "f32"), 1e-3, 1e-4
    yield dense_case((1, 16, 24), 2, (2, 2, 3, 4, 3, 2, 2), 16, 3, 1, "f32"), 1e-4, 1e-5
    yield dense_case((1, 8, 12), 2, (1, 2, 2), 12, 5, 2, "f32"), 1e-4, 1e-5
    yield dense_case((1, 8, 16), 2, (2, 1, 2), 4, 3, 1, "f64", "circular"), 1e-4, 1e-5
    yield cosmoflow_case("mlperf", 8, 3, "f64", batch_norm=True), 1e-3, 1e-4
    yield unet_case("batch", 8, 3, 2, 8, "f64", "circular"), 1e-3, 1e-4
    if which != "full":
        return
    for variant, size in (("mlperf", 16), ("hybrid", 16), ("sc18", 19)):
        for batch_norm in (False, True):
            yield cosmoflow_case(variant, size, 3, "f64", batch_norm=batch_norm), 1e-3, 1e-4
    yield cosmoflow_case("sc18", 23, 2, "f64", wiring="as-run"), 1e-3, 1e-4
    for norm in ("batch", "group", "instance"):
        yield unet_case(norm, 8, 3, 2, 8, "f64"), 1e-3, 1e-4
    yield cosmoflow_case("mlperf", 32, 2, "f32", batch_norm=True), 0, 0
    yield cosmoflow_case("hybrid", 32, 2, "f32", batch_norm=True), 0, 0
    yield cosmoflow_case("sc18", 30, 1, "f32"), 0, 0
    yield cosmoflow_case("sc18", 55, 1, "f32"), 0, 0
    yield unet_case("batch", 16, 2, 4, 16, "f32"), 0, 0
    yield dense_case((8, 8, 8), 2, (2, 2, 3, 4, 3, 2, 2), 8, 3, 2, "f32"), 1e-4, 1e-5
    yield dense_case((1, 64, 64), 1, (2, 2, 3, 4, 3, 2, 2), 32, 5, 1, "f32"), 0, 0


for case, slow, slower in cases():
    if len(sys.argv) > 4 and sys.argv[4] not in case.title:
        continue
    case.from_pytorch()
    case.one_step()
    if slow:
        case.train("sgd", slow, 1e-3)
        case.train("adam", slower, 1e-3)
    if slow and which == "full":
        case.train("nesterov", slow, 1e-3)
        case.train("adamw", slower, 1e-3)
print(f"1..{count}")
sys.exit(failed > 0)
