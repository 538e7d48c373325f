/* SPDX-License-Identifier: Apache-2.0 */
#include "train/settings.h"
#include "base/file.h"
#include "tensor/operand.h"

#include <stdio.h>

#define KEY(path, kind, field, ...) {.name = path, .type = kind, .offset = offsetof(hl_settings, field), __VA_ARGS__}
#define MOST 9e15 /* whole numbers that a double holds */

static const hl_key table[] = {
    KEY("network", HL_SETTING_TEXT, network, .fallback = "cosmoflow", .help = "zoo name (cosmoflow, unet3d, fcdensenet) or a YAML network file"),
    KEY("variant", HL_SETTING_TEXT, variant, .fallback = "auto", .none = "auto",
        .help = "which published form of a zoo network: sc18 (SC18 CosmoFlow), mlperf (MLPerf HPC), hybrid (Oyama et al. 2020), auto: sc18; of unet3d the norm: batch, group, instance; of fcdensenet growth-kernel: 64-3, 64-5, 128-3, 128-5, 256-3, 256-5"),
    KEY("wiring", HL_SETTING_TEXT, wiring, .fallback = "paper", .help = "sc18 only: paper, or as-run as in the authors' logged runs"),
    KEY("levels", HL_SETTING_INT, levels, .fallback = "auto", .none = "auto", .low = 1, .high = 8, .help = "unet3d only: resolutions, each half of the one before (auto: 4)"),
    KEY("first_channels", HL_SETTING_INT, first_channels, .fallback = "auto", .none = "auto", .low = 1, .high = 4096,
        .help = "unet3d only: channels of the finest resolution's first convolution (auto: 32)"),
    KEY("upsampling", HL_SETTING_CHOICE, upsampling, .fallback = "transposed", .choices = "transposed|trilinear",
        .help = "unet3d only: learned, by transposed convolutions, or linear between the middles of cells"),
    KEY("growth", HL_SETTING_INT, growth, .fallback = "auto", .none = "auto", .low = 1, .high = 4096, .help = "fcdensenet only: channels that each layer adds (auto: the variant's)"),
    KEY("kernel", HL_SETTING_INT, kernel, .fallback = "auto", .none = "auto", .low = 1, .high = 7, .help = "fcdensenet only: of its layers' convolutions (auto: the variant's)"),
    KEY("blocks", HL_SETTING_WORDS, blocks, .fallback = "[]",
        .help = "fcdensenet only: layers of each block, those in front of poolings, the lowest one, and as many on the way up; not given: [2, 2, 3, 4, 3, 2, 2]"),
    KEY("stem", HL_SETTING_INT, stem, .fallback = "auto", .none = "auto", .low = 1, .high = 65536, .help = "fcdensenet only: channels of the first convolution (auto: growth)"),
    KEY("up_kernel", HL_SETTING_INT, up_kernel, .fallback = "auto", .none = "auto", .low = 1, .high = 4,
        .help = "fcdensenet only: of transposed convolutions, whose stride is 2 (auto: 1, as published; 2 leaves no cell empty)"),
    KEY("keep", HL_SETTING_NUMBER, keep, .fallback = "auto", .none = "auto", .low = 1e-6, .high = 1, .help = "fcdensenet only: the share of values that dropout keeps (auto: 0.8)"),
    KEY("size", HL_SETTING_SIZE, size, .fallback = "auto", .none = "auto", .low = 1, .high = MOST,
        .help = "extents of a sample; auto: those of the data, else the variant's own"),
    KEY("channels", HL_SETTING_INT, channels, .fallback = "auto", .none = "auto", .low = 1, .high = MOST,
        .help = "input channels; auto: those of the data, else the variant's own"),
    KEY("outputs", HL_SETTING_INT, outputs, .fallback = "auto", .none = "auto", .low = 1, .high = MOST,
        .help = "targets to predict; auto: those of the data, else the variant's own"),
    KEY("batch_norm", HL_SETTING_BOOL, batch_norm, .fallback = "false", .help = "zoo networks: batch norm between convolution and activation"),
    KEY("padding", HL_SETTING_CHOICE, padding, .fallback = "published", .choices = "published|periodic",
        .help = "zoo networks: as published, or around the faces of a periodic box (for whole simulation volumes)"),
    KEY("dropout", HL_SETTING_BOOL, dropout, .fallback = "true", .help = "zoo networks: dropout as published, or none"),
    KEY("plan", HL_SETTING_CHOICE, plan, .fallback = "measure", .choices = "measure|fixed",
        .help = "how implementations are chosen: timed on this machine (kept in the run directory and in plan_cache), or from a fixed order"),
    KEY("plan_cache", HL_SETTING_TEXT, plan_cache, .fallback = "auto", .none = "auto",
        .help = "directory where timed choices of all runs are kept for later ones on such a device with such libraries; auto: $HALO_CACHE, else $XDG_CACHE_HOME/halo, else ~/.cache/halo; "
                "no: each run times anew"),
    KEY("batch", HL_SETTING_INT, batch, .fallback = "8", .low = 1, .high = MOST, .help = "samples per step over all ranks"),
    KEY("seed", HL_SETTING_INT, seed, .fallback = "1", .low = 0, .high = MOST, .help = "root of all random numbers"),
    KEY("output", HL_SETTING_TEXT, output, .fallback = "none", .none = "none",
        .help = "run directory: config.yaml, log.jsonl, checkpoints/, summary.json; none: nothing is written"),
    KEY("resume", HL_SETTING_TEXT, resume, .fallback = "no", .none = "no",
        .help = "no; auto: the newest whole checkpoint in output, if any; or a checkpoint FILE"),
    KEY("init.from", HL_SETTING_TEXT, init.from, .fallback = "none", .none = "none",
        .help = "start from the parameters of a checkpoint FILE, or of the best one of a run's directory, as far as names are the same: {from: FILE, skip: [fc3*]}; "
                "the optimiser begins anew"),
    KEY("init.skip", HL_SETTING_WORDS, init.skip, .fallback = "[]",
        .help = "layers or parameters that are not taken from there, as patterns: fc3, conv*, conv1/bias"),
    KEY("freeze", HL_SETTING_WORDS, freeze, .fallback = "[]",
        .help = "layers or parameters that training leaves as they are, as patterns; a frozen batch norm uses its running statistics"),
    KEY("stop_grace", HL_SETTING_SECONDS, stop_grace, .fallback = "5m", .none = "none",
        .help = "SIGTERM ends the process without a checkpoint when no step ends within this time, say because a rank is lost; none: wait for the step"),
    KEY("backend", HL_SETTING_TEXT, backend, .fallback = "auto", .none = "auto", .help = "cpu, cuda or ref; auto: the first that this machine can run"),
    KEY("threads", HL_SETTING_INT, threads, .fallback = "auto", .none = "auto", .low = 1, .high = 65536,
        .help = "computing threads of each rank; auto: OMP_NUM_THREADS, else the cores allowed to this process"),
    KEY("precision", HL_SETTING_CHOICE, precision, .fallback = "f32", .choices = "f32|f64|f16|bf16",
        .help = "type of activations and their gradients; with f16 and bf16 weights and optimiser state stay f32 (backends without such arithmetic compute in f32 and round); "
                "f64, weights included, is for comparisons: backend ref alone has it"),
    KEY("winograd", HL_SETTING_CHOICE, winograd, .fallback = "auto", .choices = "auto|no|f2|f4",
        .help = "convolutions by Winograd's algorithms: no, up to F(2,3), which is as exact as the direct ones, or up to F(4,3), whose errors are at most 2e-4 of the "
                "largest output; auto: f2 where plans are measured and samples are whole, else no; backend cpu has them"),
    KEY("cpu.isa", HL_SETTING_CHOICE, cpu_isa, .fallback = "auto", .choices = "auto|generic|avx2|avx512f",
        .help = "instruction set of the cpu backend's kernels; auto: the best of this processor"),
    KEY("cpu.bind", HL_SETTING_CHOICE, cpu_bind, .fallback = "auto", .choices = "auto|none|cores",
        .help = "cpu backend: each computing thread on a core of its own while it computes; auto: where nobody else places threads or shares the cores"),
    KEY("cpu.layout", HL_SETTING_CHOICE, layout, .fallback = "auto", .choices = "auto|ncdhw|ndhwc|nCdhw8c|nCdhw16c",
        .help = "layout of activations; auto: chosen with the plan"),
    KEY("cuda.tf32", HL_SETTING_BOOL, cuda.tf32, .fallback = "false", .help = "backend cuda: products of f32 on tensor cores, with 10 bits of fraction; sums stay f32"),
    KEY("cuda.nccl", HL_SETTING_CHOICE, cuda.nccl, .fallback = "auto", .choices = "auto|all|node|no|true|false",
        .help = "backend cuda: several ranks sum gradients and exchange margins by NCCL, where each has a device of its own: over all ranks (all), or in each node, with MPI between "
                "nodes (node); auto (true): the first of these that works; no (false): by MPI alone"),
    KEY("cuda.mpi", HL_SETTING_CHOICE, cuda.mpi, .fallback = "auto", .choices = "auto|device|host",
        .help = "backend cuda: where MPI finds the margins that NCCL does not carry: in the device's memory (device), in the host's (host); auto: the device's if MPI says that it takes its addresses"),
    KEY("cuda.graphs", HL_SETTING_BOOL, cuda.graphs, .fallback = "true", .help = "backend cuda: what a step puts on the device, sums of gradients by NCCL among it, is recorded once and replayed as one CUDA graph; what MPI carries parts it into several"),
    KEY("cuda.prepare", HL_SETTING_BOOL, cuda.prepare, .fallback = "true",
        .help = "backend cuda: samples go to the device as they are stored, beside the step before, and are transformed and turned there; false: on the host, and up between steps"),
    KEY("cuda.deterministic", HL_SETTING_BOOL, cuda.deterministic, .fallback = "true",
        .help = "backend cuda: only algorithms whose sums have one order, so that equal runs give equal bits; false: faster ones too where there are any"),
    KEY("data.train", HL_SETTING_TEXT, data.train, .fallback = "none", .none = "none", .help = "training data: a file of HDF5, NPY, NPZ or NIfTI, a directory or a pattern (runs/*/cube.npy) of them, or a text file that lists them"),
    KEY("data.validation", HL_SETTING_TEXT, data.validation, .fallback = "none", .none = "none", .help = "validation data"),
    KEY("data.test", HL_SETTING_TEXT, data.test, .fallback = "none", .none = "none", .help = "held-out data for evaluate and predict"),
    KEY("data.split", HL_SETTING_WORDS, data.split, .fallback = "[]",
        .help = "cut data.train itself into training, validation and test: [0.8, 0.1, 0.1]; whole universes in the order of their names"),
    KEY("data.folds.count", HL_SETTING_INT, data.folds.count, .fallback = "none", .none = "none", .low = 2, .high = 1e6,
        .help = "cross-validation: the patients of data.train are dealt into so many folds by their names, and those of one are the validation data: {count: 5, use: 0}"),
    KEY("data.folds.use", HL_SETTING_INT, data.folds.use, .fallback = "0", .low = 0, .high = 1e6, .help = "which fold is held out, from 0"),
    KEY("data.folds.patient", HL_SETTING_TEXT, data.folds.patient, .fallback = "none", .none = "none",
        .help = "a patient is a case's name up to this text, such as _ of p07_scan2; none: sub-NAME where paths have it (BIDS), else each case is a patient, or each group of a file that has groups"),
    KEY("data.format", HL_SETTING_TEXT, data.format, .fallback = "auto",
        .help = "auto, cosmouniverse (one file per universe: full, unitPar), halo (x, y) or arrays (any HDF5, NPY, NPZ or NIfTI files: see data.x)"),
    KEY("data.crop", HL_SETTING_SIZE, data.crop, .fallback = "none", .none = "none", .low = 1, .high = MOST,
        .help = "cut each volume into sub-volumes of this size; splits go by universe"),
    KEY("data.patch", HL_SETTING_SIZE, data.patch, .fallback = "none", .none = "none", .low = 1, .high = MOST,
        .help = "train on patches of this size, drawn by (seed, epoch, sample), of volumes that may all differ in their extents; what is beyond a smaller one is 0. Evaluation and "
                "prediction are of whole volumes"),
    KEY("data.patches", HL_SETTING_INT, data.patches, .fallback = "1", .low = 1, .high = 1e6, .help = "patches of each volume in an epoch"),
    KEY("data.foreground", HL_SETTING_NUMBER, data.foreground, .fallback = "auto", .none = "auto", .low = 0, .high = 1,
        .help = "share of the patches whose middle is a voxel of a class above 0, each class as often as another; auto: 0.33 with a loss of classes, else 0"),
    KEY("data.classes", HL_SETTING_WORDS, data.classes, .fallback = "[]", .help = "what the classes are called, from class 0 on, such as [background, liver, tumour]; not given: by their numbers"),
    KEY("data.transform", HL_SETTING_WORDS, data.transform, .fallback = "[log1p]", .choices = "log1p|over-mean|z-score|window",
        .help = "applied to each sample in this order: ln(1 + x), x / mean(x), (x - mean) / standard deviation, values clipped to data.window and scaled to 0 to 1"),
    KEY("data.zscore", HL_SETTING_WORDS, data.zscore, .fallback = "sample",
        .help = "what z-score subtracts and divides by: sample (each sample's own mean and deviation), set (those of all training samples, measured "
                "before training and kept with the run), or [mean, deviation]"),
    KEY("data.window", HL_SETTING_WORDS, data.window, .fallback = "[]", .help = "of the transform window: [low, high], such as [-100, 240] for a liver in CT"),
    KEY("data.augment", HL_SETTING_CHOICE, data.augment, .fallback = "none", .choices = "none|cube|shift|cube+shift|flip",
        .help = "training only: the 48 symmetries of the cube; random shifts of whole periodic boxes; flips along the axes, 8 of those symmetries, of any extents"),
    KEY("data.vary.rotate", HL_SETTING_NUMBER, data.vary.rotate, .fallback = "0", .low = 0, .high = 180,
        .help = "training only: turned by up to so many degrees about each axis; x is interpolated, class numbers take the nearest voxel. Like all of data.vary by (seed, epoch, sample) alone"),
    KEY("data.vary.scale", HL_SETTING_WORDS, data.vary.scale, .fallback = "[]", .help = "made larger by a factor between two, such as [0.8, 1.25]"),
    KEY("data.vary.gamma", HL_SETTING_WORDS, data.vary.gamma, .fallback = "[]",
        .help = "after transforms, values between the least and the largest of a volume, as 0 to 1, to the power of a number between two, such as [0.7, 1.5]"),
    KEY("data.vary.noise", HL_SETTING_NUMBER, data.vary.noise, .fallback = "0", .low = 0, .high = 1e6, .help = "after transforms, normal noise of a standard deviation of up to this"),
    KEY("data.vary.share", HL_SETTING_NUMBER, data.vary.share, .fallback = "0.3", .low = 0, .high = 1, .help = "how often each of these happens"),
    KEY("data.spacing", HL_SETTING_WORDS, data.spacing, .fallback = "[]",
        .help = "with data.patch, NIfTI images are resampled to voxels of [D, H, W], mm as a rule: linearly, class numbers to the nearest; predictions go back to the scan's own voxels"),
    KEY("data.synthetic", HL_SETTING_BOOL, data.synthetic, .fallback = "false",
        .help = "random volumes and targets that depend on the seed and the sample's index alone; no file is read"),
    KEY("data.samples", HL_SETTING_INT, data.samples, .fallback = "64", .low = 1, .high = MOST, .help = "how many synthetic samples"),
    KEY("data.prefetch", HL_SETTING_INT, data.prefetch, .fallback = "2", .low = 0, .high = 1024, .help = "batches read ahead by the reading thread"),
    KEY("data.x.path", HL_SETTING_TEXT, data.x.path, .fallback = "none", .none = "none",
        .help = "files that were not written for halo: the dataset of an HDF5 file (/a/b) or the member of an NPZ file that has the volumes; none: the only one there is; several with commas between them are channels: /t1,/t2"),
    KEY("data.x.axes", HL_SETTING_WORDS, data.x.axes, .fallback = "[]", .choices = "n|c|d|h|w|sy|sx",
        .help = "what its axes are, such as [d, h, w, c]: n sample, c channel, d, h, w; a repeated c is flattened into channels; a file without n is one sample. Not given: [d, h, w] "
                "of three axes, [h, w] of two, and of NIfTI images what they are"),
    KEY("data.x.periodic", HL_SETTING_BOOL, data.x.periodic, .fallback = "false", .help = "samples are whole periodic boxes"),
    KEY("data.scan_window", HL_SETTING_WORDS, data.scan_window, .fallback = "[]",
        .help = "with data.x.axes: [sy, sx, h, w], a diffraction scan: positions [sy, sx] of a window, which is a sample with a channel for each; not given: [8, 8]"),
    KEY("data.scan_stride", HL_SETTING_WORDS, data.scan_stride, .fallback = "[]", .help = "positions from a window of a scan to the next; not given: those of a window"),
    KEY("data.detector_crop", HL_SETTING_WORDS, data.detector_crop, .fallback = "[]", .help = "pixels [h, w] in the middle of a scan's patterns that are taken; not given: all"),
    KEY("data.detector_bin", HL_SETTING_WORDS, data.detector_bin, .fallback = "[]", .help = "pixels [h, w] of a scan's patterns that are added up to one; not given: 1"),
    KEY("data.unit_dose", HL_SETTING_BOOL, data.unit_dose, .fallback = "true", .help = "each window of a scan is divided by its mean, whatever its dose was"),
    KEY("data.y.path", HL_SETTING_TEXT, data.y.path, .fallback = "none", .none = "none", .help = "the dataset or member that has the targets, numbers or volumes"),
    KEY("data.y.axes", HL_SETTING_WORDS, data.y.axes, .fallback = "[]", .choices = "n|c|d|h|w",
        .help = "what its axes are; not given: [n] or [c], [n, c], or those of data.x where it has as many"),
    KEY("data.y.from", HL_SETTING_TEXT, data.y.from, .fallback = "none", .none = "none",
        .help = "other files that have the targets: one, a directory or a pattern, beside the data or where halo runs, in the order of the data's files"),
    KEY("data.targets.file", HL_SETTING_TEXT, data.targets.file, .fallback = "none", .none = "none",
        .help = "a text table of targets, beside the data or where halo runs: a row for each file in sorted order, or for each sample"),
    KEY("data.targets.columns", HL_SETTING_MAP, data.targets.columns, .fallback = "[]",
        .help = "which columns are targets: {Omega_m: 0, sigma_8: 1}, by number from 0 or by the name in the header; or a list of such; not given: all"),
    KEY("data.targets.range", HL_SETTING_MAP, data.targets.range, .fallback = "[]",
        .help = "what is stored as -1 and +1: auto (least and greatest of the training rows), none (numbers stay as they are), [low, high], or a map of these such as "
                "{Omega_m: [0.1, 0.5]}; not given: auto of a table, none of data.y, and class numbers always stay"),
    KEY("data.targets.order", HL_SETTING_CHOICE, data.targets.order, .fallback = "auto", .choices = "auto|name|number",
        .help = "how files are sorted: name (a10 before a2) or number (a2 before a10); auto: by name, and refused for a table where the two differ"),
    KEY("train.epochs", HL_SETTING_INT, train.epochs, .fallback = "40", .low = 1, .high = MOST, .help = "passes over the training data"),
    KEY("train.steps", HL_SETTING_INT, train.steps, .fallback = "none", .none = "none", .low = 1, .high = MOST, .help = "stop after this many steps"),
    KEY("train.max_time", HL_SETTING_SECONDS, train.max_time, .fallback = "none", .none = "none",
        .help = "stop with a checkpoint after this time (90s, 15m, 1h30m), exit code 3"),
    KEY("train.accumulate", HL_SETTING_INT, train.accumulate, .fallback = "1", .low = 1, .high = 1e6,
        .help = "a step's batch is computed in this many parts whose gradients are added"),
    KEY("train.patience", HL_SETTING_INT, train.patience, .fallback = "none", .none = "none", .low = 1, .high = MOST,
        .help = "stop early after this many validations without improvement"),
    KEY("train.norm_samples", HL_SETTING_INT, train.norm_samples, .fallback = "256", .low = 0, .high = MOST,
        .help = "before a validation and at the end, running statistics of batch norm are measured anew over so many training samples; 0: they stay the "
                "moving averages of training"),
    KEY("train.validate_every", HL_SETTING_INT, train.validate_every, .fallback = "1", .low = 1, .high = MOST, .help = "validate after this many epochs"),
    KEY("train.log_every", HL_SETTING_INT, train.log_every, .fallback = "20", .low = 1, .high = MOST,
        .help = "batch logs: a line every so many steps (a terminal shows a progress line)"),
    KEY("predict.volumes", HL_SETTING_CHOICE, predict.volumes, .fallback = "auto", .choices = "auto|windows|whole",
        .help = "with data.patch, how evaluate, predict and validations take a volume: in overlapping windows of the patch's size, or as a whole, its extents rounded up to what the network halves; "
                "auto: whole where memory.limit or the machine's memory has room; in validations, and of networks with group or instance norms, windows"),
    KEY("predict.overlap", HL_SETTING_NUMBER, predict.overlap, .fallback = "0.5", .low = 0, .high = 0.95, .help = "part of a window that the next one has too, at least; where they overlap, windows count by a Gaussian about their middle"),
    KEY("loss", HL_SETTING_CHOICE, loss, .fallback = "mse", .choices = "mse|mae|huber|cross_entropy|dice|dice_ce|relative_mse",
        .help = "mean over targets, then over samples; cross_entropy: outputs are logits of the classes 0 to C - 1, softmax included, and the target is one class "
                "number per voxel of the output, or per sample; dice: of classes too, 1 - the mean over classes 1 to C - 1 of the soft Dice of each sample; dice_ce: the sum of both; relative_mse: a sample's squared error over the sum of squares of its "
                "targets"),
    KEY("class_weights", HL_SETTING_WORDS, class_weights, .fallback = "[]",
        .help = "losses of classes: a weight for each class, such as [0.2, 1, 4]. Cross entropy is the weighted mean over the cells of a step, dice the weighted mean over classes from 1 on; not given: all 1"),
    KEY("ignore_label", HL_SETTING_INT, ignore_label, .fallback = "none", .none = "none", .low = 0, .high = 1e6,
        .help = "losses of classes, and their metrics: cells with this class number do not count, such as 255 for what nobody labelled; it may be beyond the network's classes"),
    KEY("huber_delta", HL_SETTING_NUMBER, huber_delta, .fallback = "1", .low = 1e-12, .high = 1e12, .help = "where huber turns from square to linear"),
    KEY("optimizer.name", HL_SETTING_CHOICE, optimizer.name, .fallback = "adam", .choices = "sgd|nesterov|adam|adamw",
        .help = "sgd and nesterov have momentum as Keras defines it (the learning rate is inside)"),
    KEY("optimizer.lr", HL_SETTING_NUMBER, optimizer.lr, .fallback = "1e-3", .low = 0, .high = 1e6, .help = "peak learning rate"),
    KEY("optimizer.momentum", HL_SETTING_NUMBER, optimizer.momentum, .fallback = "0.9", .low = 0, .high = 1, .help = "sgd, nesterov"),
    KEY("optimizer.beta1", HL_SETTING_NUMBER, optimizer.beta1, .fallback = "0.9", .low = 0, .high = 1, .help = "adam, adamw"),
    KEY("optimizer.beta2", HL_SETTING_NUMBER, optimizer.beta2, .fallback = "0.999", .low = 0, .high = 1, .help = "adam, adamw"),
    KEY("optimizer.epsilon", HL_SETTING_NUMBER, optimizer.epsilon, .fallback = "1e-8", .low = 0, .high = 1, .help = "adam, adamw"),
    KEY("optimizer.larc", HL_SETTING_CHOICE, optimizer.larc, .fallback = "off", .choices = "off|clip|scale",
        .help = "layer-wise adaptive rate: clip limits the local rate to the global one, scale multiplies it"),
    KEY("optimizer.trust", HL_SETTING_NUMBER, optimizer.trust, .fallback = "0.002", .low = 0, .high = 1e6, .help = "trust coefficient of larc"),
    KEY("optimizer.weight_decay", HL_SETTING_NUMBER, optimizer.weight_decay, .fallback = "0", .low = 0, .high = 1e6,
        .help = "of convolution and dense weights; biases and norm parameters are not decayed"),
    KEY("optimizer.dense_decay", HL_SETTING_NUMBER, optimizer.dense_decay, .fallback = "same", .none = "same", .low = 0, .high = 1e6,
        .help = "of dense weights, where it differs"),
    KEY("optimizer.clip_norm", HL_SETTING_NUMBER, optimizer.clip_norm, .fallback = "none", .none = "none", .low = 1e-30, .high = 1e30,
        .help = "scale gradients down to this global norm"),
    KEY("optimizer.loss_scale", HL_SETTING_CHOICE, optimizer.loss_scale, .fallback = "auto", .choices = "auto|none|backoff|logmax",
        .help = "gradients of loss times a scale, so that small ones do not vanish in 16 bits: backoff halves it when they overflow (that step is skipped on all ranks) and doubles "
                "it after loss_scale_every steps without; logmax follows the logarithm of the largest gradient; auto: backoff with precision f16, else none"),
    KEY("optimizer.loss_scale_start", HL_SETTING_NUMBER, optimizer.loss_scale_start, .fallback = "16777216", .low = 1, .high = 16777216, .help = "the first scale, a power of 2"),
    KEY("optimizer.loss_scale_every", HL_SETTING_INT, optimizer.loss_scale_every, .fallback = "2000", .low = 1, .high = MOST, .help = "backoff: steps without overflow before it doubles"),
    KEY("schedule.name", HL_SETTING_CHOICE, schedule.name, .fallback = "constant", .choices = "constant|step|polynomial|cosine",
        .help = "of the learning rate after warm-up"),
    KEY("schedule.warmup", HL_SETTING_NUMBER, schedule.warmup, .fallback = "0", .low = 0, .high = MOST, .help = "epochs of linear warm-up"),
    KEY("schedule.warmup_start", HL_SETTING_NUMBER, schedule.warmup_start, .fallback = "0", .low = 0, .high = 1e6, .help = "learning rate at the first step of warm-up"),
    KEY("schedule.end", HL_SETTING_NUMBER, schedule.end, .fallback = "0", .low = 0, .high = 1e6, .help = "last learning rate of polynomial and cosine"),
    KEY("schedule.power", HL_SETTING_NUMBER, schedule.power, .fallback = "1", .low = 0, .high = 100, .help = "of polynomial"),
    KEY("schedule.at", HL_SETTING_WORDS, schedule.at, .fallback = "[]", .help = "step: epochs after which the rate is multiplied by factor once more"),
    KEY("schedule.factor", HL_SETTING_NUMBER, schedule.factor, .fallback = "0.1", .low = 0, .high = 1, .help = "step: see at"),
    KEY("schedule.epochs", HL_SETTING_NUMBER, schedule.epochs, .fallback = "all", .none = "all", .low = 1e-9, .high = MOST,
        .help = "when polynomial and cosine reach their end; all: at the end of training"),
    KEY("schedule.delta_factor", HL_SETTING_NUMBER, schedule.delta_factor, .fallback = "1", .low = 1e-6, .high = 1,
        .help = "huber_delta shrinks by this factor per epoch, a little in each step; losses of validations keep huber_delta, so that they can be compared"),
    KEY("schedule.delta_end", HL_SETTING_NUMBER, schedule.delta_end, .fallback = "0", .low = 0, .high = 1e12, .help = "and not below this"),
    KEY("schedule.scale", HL_SETTING_CHOICE, schedule.scale, .fallback = "none", .choices = "none|linear|sqrt",
        .help = "optimizer.lr was found for base_batch samples a step: multiply it by batch / base_batch, or by the root of that (with warmup)"),
    KEY("schedule.base_batch", HL_SETTING_INT, schedule.base_batch, .fallback = "none", .none = "none", .low = 1, .high = MOST, .help = "see scale"),
    KEY("checkpoint.every", HL_SETTING_INT, checkpoint.every, .fallback = "1", .none = "none", .low = 1, .high = MOST, .help = "write one after so many epochs"),
    KEY("checkpoint.steps", HL_SETTING_INT, checkpoint.steps, .fallback = "none", .none = "none", .low = 1, .high = MOST, .help = "also after so many steps"),
    KEY("checkpoint.keep", HL_SETTING_INT, checkpoint.keep, .fallback = "3", .low = 1, .high = MOST, .help = "keep the last so many, and the best"),
    KEY("parallel.spatial", HL_SETTING_SIZE, parallel.spatial, .fallback = "1", .low = 1, .high = 65536, .help = "split each sample over d x h x w ranks"),
    KEY("parallel.spatial_until", HL_SETTING_TEXT, parallel.spatial_until, .fallback = "auto", .none = "auto", .help = "the last layer that is split (auto: as far as blocks are thick enough)"),
    KEY("parallel.ranks", HL_SETTING_INT, parallel.ranks, .fallback = "auto", .none = "auto", .low = 1, .high = 1e9,
        .help = "how many ranks there are, for explain on one process, and for training to insist on; auto: those that were started, for explain as many as "
                "'parallel.spatial' needs"),
    KEY("reduce.group", HL_SETTING_CHOICE, reduce.group, .fallback = "auto", .choices = "auto|per-layer|single|bytes|layers",
        .help = "which gradients are reduced together; {bytes: n} and {layers: [..]} as well"),
    KEY("reduce.group.bytes", HL_SETTING_BYTES, reduce.group_bytes, .fallback = "none", .none = "none", .help = "groups of about this size"),
    KEY("reduce.group.layers", HL_SETTING_WORDS, reduce.group_layers, .fallback = "[]", .help = "groups that end at these layers"),
    KEY("reduce.orchestration", HL_SETTING_CHOICE, reduce.orchestration, .fallback = "static", .choices = "static|bitvector|coordinator",
        .help = "who decides the order of reductions"),
    KEY("reduce.algorithm", HL_SETTING_CHOICE, reduce.algorithm, .fallback = "auto", .choices = "auto|mpi|ring|rabenseifner|hierarchical", .help = "of the allreduce"),
    KEY("reduce.wire", HL_SETTING_CHOICE, reduce.wire, .fallback = "native", .choices = "native|f32|bf16|f16", .help = "type of gradients on the wire"),
    KEY("reduce.average", HL_SETTING_CHOICE, reduce.average, .fallback = "gradients", .choices = "gradients|parameters",
        .help = "gradients every step, or {parameters: n} every n steps"),
    KEY("reduce.average.parameters", HL_SETTING_INT, reduce.average_steps, .fallback = "none", .none = "none", .low = 1, .high = MOST, .help = "see average"),
    KEY("reduce.stall", HL_SETTING_SECONDS, reduce.stall, .fallback = "5m", .none = "none",
        .help = "a rank that does not come on for this long is named, with the gradients it withholds where it can still tell, and the run fails, after two to four times as long at the most; none: wait for it"),
    KEY("memory.limit", HL_SETTING_BYTES, memory_limit, .fallback = "none", .none = "none", .help = "most memory a rank may use (16GiB): what does not fit is made anew in slabs of the volume instead of being stored, or else nothing is begun"),
    KEY("memory.slabs", HL_SETTING_INT, memory_slabs, .fallback = "auto", .none = "auto", .low = 1, .high = 1e6, .help = "how many slabs, where 'memory.limit' asks for them"),
    KEY("memory.check", HL_SETTING_BOOL, memory_check, .fallback = "true",
        .help = "refuse to begin where a node's ranks need more than its memory, or than their control group or Slurm allows; false: try all the same"),
};

hl_keys hl_settings_keys(void) { return (hl_keys){.key = table, .n = HL_COUNT(table)}; }

static bool looks_like_file(const char *config)
{
    size_t n = strlen(config);
    return strchr(config, '/') || (n > 5 && (strcmp(config + n - 5, ".yaml") == 0 || strcmp(config + n - 4, ".yml") == 0)) || hl_file_exists(config);
}

/* Fractions of data.split: two or three numbers that add up to at most 1. */
static halo_status check_split(halo_context *ctx, const hl_words *w)
{
    double sum = 0;
    for (int i = 0; i < w->n; i++) {
        char *end;
        double x = strtod(w->word[i], &end);
        if (*end || !(x > 0 && x < 1)) return hl_fail(ctx, HALO_ERR_USAGE, "'data.split' has '%s', each part must be above 0 and below 1", w->word[i]);
        sum += x;
    }
    if (w->n == 0 || ((w->n == 2 || w->n == 3) && sum <= 1 + 1e-9)) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_USAGE, "'data.split' must be two or three parts that add up to at most 1, such as [0.8, 0.1, 0.1]");
}

static bool is_number(const char *text, double *x)
{
    char *end;
    *x = strtod(text, &end);
    return end != text && !*end && isfinite(*x);
}

hl_zscore hl_settings_zscore(const hl_settings *s)
{
    const hl_words *w = &s->data.zscore;
    return w->n == 2 ? HL_ZSCORE_GIVEN : w->n == 1 && strcmp(w->word[0], "set") == 0 ? HL_ZSCORE_OF_SET : HL_ZSCORE_OF_SAMPLE;
}

void hl_settings_set_zscore(hl_settings *s, double mean, double std)
{
    s->data.zscore.n = 2;
    snprintf(s->data.zscore.word[0], HL_WORD_MAX, "%.17g", mean);
    snprintf(s->data.zscore.word[1], HL_WORD_MAX, "%.17g", std);
}

static bool transforms_by(const hl_settings *s, const char *word)
{
    for (int i = 0; i < s->data.transform.n; i++)
        if (strcmp(s->data.transform.word[i], word) == 0) return true;
    return false;
}

static halo_status check_window(halo_context *ctx, const hl_settings *s)
{
    const hl_words *w = &s->data.window;
    double lo, hi;
    if (w->n == 0 && !transforms_by(s, "window")) return HALO_OK;
    if (w->n != 2 || !is_number(w->word[0], &lo) || !is_number(w->word[1], &hi) || !(hi > lo))
        return hl_fail(ctx, HALO_ERR_USAGE, "'data.window' must be two rising numbers, such as [-100, 240]");
    return HALO_OK;
}

static halo_status check_zscore(halo_context *ctx, const hl_settings *s)
{
    const hl_words *w = &s->data.zscore;
    double mean, std;
    if (s->data.transform.n > 4) return hl_fail(ctx, HALO_ERR_USAGE, "'data.transform' takes at most 4 words, it has %d", s->data.transform.n);
    bool word = w->n == 1 && (strcmp(w->word[0], "sample") == 0 || strcmp(w->word[0], "set") == 0);
    if (!word && !(w->n == 2 && is_number(w->word[0], &mean) && is_number(w->word[1], &std)))
        return hl_fail(ctx, HALO_ERR_USAGE, "'data.zscore' must be sample, set, or [mean, deviation] such as [0.5, 2]");
    if (w->n == 2 && !(std > 0)) return hl_fail(ctx, HALO_ERR_USAGE, "'data.zscore' has a standard deviation of %s, must be above 0", w->word[1]);
    return HALO_OK;
}

static halo_status check_pair(halo_context *ctx, const char *key, const hl_words *w)
{
    double lo, hi;
    if (w->n == 0 || (w->n == 2 && is_number(w->word[0], &lo) && is_number(w->word[1], &hi) && lo > 0 && hi >= lo && hi <= 100 && lo >= 0.01)) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_USAGE, "'%s' must be two numbers from 0.01 to 100, the larger one last, such as [0.8, 1.25]", key);
}

static halo_status check_vary(halo_context *ctx, const hl_settings *s)
{
    const hl_words *w = &s->data.spacing;
    double x;
    HL_TRY(check_pair(ctx, "data.vary.scale", &s->data.vary.scale));
    HL_TRY(check_pair(ctx, "data.vary.gamma", &s->data.vary.gamma));
    bool good = w->n == 0 || w->n == 1 || w->n == 3;
    for (int i = 0; i < w->n; i++) good = good && is_number(w->word[i], &x) && x > 0 && x <= 1e6;
    if (!good) return hl_fail(ctx, HALO_ERR_USAGE, "'data.spacing' must be one number or [D, H, W] above 0, such as [2, 0.8, 0.8]");
    return HALO_OK;
}

static halo_status check_folds(halo_context *ctx, const hl_settings *s)
{
    if (s->data.folds.count <= 0) return HALO_OK;
    if (s->data.folds.use >= s->data.folds.count)
        return hl_fail(ctx, HALO_ERR_USAGE, "'data.folds.use' is %" PRId64 ", but the %" PRId64 " folds of 'data.folds.count' are numbered from 0", s->data.folds.use, s->data.folds.count);
    if (s->data.split.n == 0 && !*s->data.validation) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_USAGE, "'data.folds' takes the validation data out of 'data.train': leave 'data.%s' out", *s->data.validation ? "validation" : "split");
}

static halo_status check_names(halo_context *ctx, const hl_settings *s)
{
    const hl_words *w = &s->data.classes;
    for (int i = 0; i < w->n; i++) {
        if (!*w->word[i]) return hl_fail(ctx, HALO_ERR_USAGE, "'data.classes' has an empty name, of class %d", i);
        for (int k = 0; k < i; k++)
            if (strcmp(w->word[i], w->word[k]) == 0) return hl_fail(ctx, HALO_ERR_USAGE, "'data.classes' has '%s' twice, for classes %d and %d", w->word[i], k, i);
    }
    return HALO_OK;
}

static halo_status check_patch(halo_context *ctx, const hl_settings *s)
{
    const int64_t *p = s->data.patch;
    if (p[0] <= 0) return HALO_OK;
    if (s->data.crop[0] > 0) return hl_fail(ctx, HALO_ERR_USAGE, "'data.crop' cuts all of a volume, 'data.patch' draws parts of it: leave one of them out");
    if (s->data.synthetic) return hl_fail(ctx, HALO_ERR_USAGE, "'data.patch' is of volumes in files: with 'data.synthetic' set 'size'");
    if (s->padding == HL_PADDING_PERIODIC) return hl_fail(ctx, HALO_ERR_USAGE, "'padding: periodic' is of whole boxes, and 'data.patch' takes parts of them");
    if (s->data.augment == HL_AUGMENT_SHIFT || s->data.augment == HL_AUGMENT_CUBE_SHIFT) return hl_fail(ctx, HALO_ERR_USAGE, "'data.augment: shift' is of whole periodic boxes, and 'data.patch' takes parts of them");
    if (s->size[0] <= 0 || memcmp(s->size, p, sizeof(s->size)) == 0) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_USAGE, "'size' is [%" PRId64 ", %" PRId64 ", %" PRId64 "] and 'data.patch' [%" PRId64 ", %" PRId64 ", %" PRId64 "]: the network takes patches, leave 'size' out",
                   s->size[0], s->size[1], s->size[2], p[0], p[1], p[2]);
}

static halo_status check_boundaries(halo_context *ctx, const hl_words *w)
{
    for (int i = 0; i < w->n; i++) {
        char *end;
        double x = strtod(w->word[i], &end), before = i > 0 ? strtod(w->word[i - 1], NULL) : 0;
        if (*end || !(x > before)) return hl_fail(ctx, HALO_ERR_USAGE, "'schedule.at' must be rising epochs, such as [32, 64], not '%s'", w->word[i]);
    }
    return HALO_OK;
}

halo_status hl_settings_check_classes(halo_context *ctx, const hl_settings *s)
{
    double x, sum = 0;
    for (int i = 0; i < s->class_weights.n; i++) {
        if (!is_number(s->class_weights.word[i], &x) || x < 0) return hl_fail(ctx, HALO_ERR_USAGE, "'class_weights' has '%s', must be numbers from 0 on, such as [0.2, 1, 4]", s->class_weights.word[i]);
        sum += x;
    }
    return s->class_weights.n == 0 || sum > 0 ? HALO_OK : hl_fail(ctx, HALO_ERR_USAGE, "'class_weights' are all 0");
}

static halo_status check_together(halo_context *ctx, const hl_settings *s)
{
    if (s->data.split.n > 0 && (*s->data.validation || (*s->data.test && s->data.split.n > 2)))
        return hl_fail(ctx, HALO_ERR_USAGE, "'data.split' cuts validation and test out of 'data.train': leave 'data.%s' out", *s->data.validation ? "validation" : "test");
    if (s->batch % s->train.accumulate != 0)
        return hl_fail(ctx, HALO_ERR_USAGE, "'batch' (%" PRId64 ") is not a multiple of 'train.accumulate' (%" PRId64 ")", s->batch, s->train.accumulate);
    if (s->schedule.warmup > (double)s->train.epochs)
        return hl_fail(ctx, HALO_ERR_USAGE, "'schedule.warmup' (%g epochs) is longer than 'train.epochs' (%" PRId64 ")", s->schedule.warmup, s->train.epochs);
    if (s->schedule.scale != 0 && s->schedule.base_batch < 1)
        return hl_fail(ctx, HALO_ERR_USAGE, "'schedule.scale' needs 'schedule.base_batch': the batch that 'optimizer.lr' was found for");
    if (s->reduce.average == HL_AVERAGE_PARAMETERS && s->reduce.average_steps < 1)
        return hl_fail(ctx, HALO_ERR_USAGE, "'reduce.average: parameters' needs a number of steps: {parameters: 4}");
    if (s->schedule.name == HL_SCHEDULE_STEP && s->schedule.at.n == 0)
        return hl_fail(ctx, HALO_ERR_USAGE, "'schedule.name: step' needs 'schedule.at', e.g. [32, 64]");
    if (exp2(floor(log2(s->optimizer.loss_scale_start))) != s->optimizer.loss_scale_start)
        return hl_fail(ctx, HALO_ERR_USAGE, "'optimizer.loss_scale_start' is %g, must be a power of 2, such as 65536", s->optimizer.loss_scale_start);
    if (s->schedule.delta_end > s->huber_delta)
        return hl_fail(ctx, HALO_ERR_USAGE, "'schedule.delta_end' is %g, above 'huber_delta' (%g), from which it shrinks", s->schedule.delta_end, s->huber_delta);
    HL_TRY(check_boundaries(ctx, &s->schedule.at));
    HL_TRY(hl_settings_check_classes(ctx, s));
    HL_TRY(check_zscore(ctx, s));
    HL_TRY(check_window(ctx, s));
    HL_TRY(check_patch(ctx, s));
    HL_TRY(check_names(ctx, s));
    HL_TRY(check_folds(ctx, s));
    HL_TRY(check_vary(ctx, s));
    return check_split(ctx, &s->data.split);
}

bool hl_is_zoo_name(const char *name)
{
    for (int i = 0; halo_network_zoo_name(i); i++)
        if (strcmp(halo_network_zoo_name(i), name) == 0) return true;
    return false;
}

/* The commonest file that is given instead of a configuration is the network that it names. */
static halo_status load_file(halo_context *ctx, hl_keys keys, const char *config, hl_settings *s)
{
    hl_yaml *root;
    HL_TRY(hl_config_status(hl_yaml_load(ctx, config, &root)));
    halo_status st = hl_yaml_find(root, "layers")
                         ? hl_fail(ctx, HALO_ERR_USAGE, "'%.200s' is a network file; a configuration names it: 'network: %.200s'", config, config)
                         : hl_config_apply(ctx, keys, s, config, root);
    hl_yaml_destroy(root);
    return st;
}

static halo_status override_all(halo_context *ctx, hl_keys keys, int overrides, char *const *override, bool together, hl_settings *s)
{
    for (int i = 0; i < overrides; i++) HL_TRY(hl_config_override(ctx, keys, s, override[i]));
    if (together) HL_TRY(check_together(ctx, s));
    return hl_settings_check_idle(ctx, keys, s, together);
}

halo_status hl_settings_override(halo_context *ctx, int overrides, char *const *override, bool together, hl_settings *s)
{
    hl_where where[HL_COUNT(table)] = {{NULL, 0}};
    return override_all(ctx, (hl_keys){.key = table, .n = HL_COUNT(table), .where = where}, overrides, override, together, s);
}

halo_status hl_settings_load(halo_context *ctx, const char *config, int overrides, char *const *override, hl_settings *out)
{
    hl_settings *s;
    hl_where where[HL_COUNT(table)] = {{NULL, 0}};
    const hl_keys keys = {.key = table, .n = HL_COUNT(table), .where = where};
    HL_TRY(hl_calloc(ctx, 1, sizeof(*s), "settings", &s));
    halo_status st;
    HL_GOTO(st, hl_config_defaults(ctx, keys, s), free_settings);
    if (looks_like_file(config)) {
        HL_GOTO(st, load_file(ctx, keys, config, s), free_settings);
    } else if (hl_is_zoo_name(config)) memcpy(s->network, config, strlen(config) + 1);
    else {
        st = hl_fail(ctx, HALO_ERR_USAGE, "'%.200s' is neither a file nor a network of the zoo; 'halo help networks' lists them", config);
        goto free_settings;
    }
    HL_GOTO(st, override_all(ctx, keys, overrides, override, true, s), free_settings);
    *out = *s;
free_settings:
    free(s);
    return st;
}

halo_status hl_settings_parse(halo_context *ctx, const char *name, const char *text, hl_settings *out)
{
    hl_yaml *root;
    HL_TRY(hl_config_defaults(ctx, hl_settings_keys(), out));
    HL_TRY(hl_yaml_parse(ctx, name, text, strlen(text), &root));
    halo_status st = hl_config_apply(ctx, hl_settings_keys(), out, name, root);
    hl_yaml_destroy(root);
    return st;
}
