/* SPDX-License-Identifier: Apache-2.0 */
/*
 * insitu_mpi.c -- train while a parallel simulation runs, from its own memory: no file, no gathering. A stand-in for a real code on its own communicator.
 *
 * The "simulation" lets hot spots of several materials diffuse in a periodic box. It has cut the box along its last axis, keeps a ghost cell on each side and computes in
 * double precision; halo cuts samples as it is told, wants margins of its own, and computes in single. Each rank hands over its block as it lies in memory, and the network
 * learns to tell a material's diffusivity from its field. Build and run:
 *   mpicc insitu_mpi.c $(pkg-config --cflags --libs halo) -lm
 *   mpiexec -n 4 ./a.out 2 2 1        samples cut into 2 x 2 x 1 parts by 4 ranks; without numbers each rank takes whole samples
 * With a directory after the numbers, the network and what it was shown are written there too, for training from a file to be compared.
 */
#include <halo/halo_mpi.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 16, MATERIALS = 4, STEPS = 20, TIME = 12 };

/* What this rank has of each field: [MATERIALS][SIDE][SIDE][width + 2], the ghost cells first and last. */
typedef struct simulation {
    MPI_Comm comm;
    int rank, ranks, first, width;
    double *now, *next;
} simulation;

static double diffusivity(int material) { return 0.02 + 0.04 * material; }
static float target(int material) { return (float)(2.0 * material / (MATERIALS - 1) - 1); }

static size_t at(const simulation *s, int material, int d, int h, int w)
{
    return (((size_t)material * SIDE + (size_t)d) * SIDE + (size_t)h) * (size_t)(s->width + 2) + (size_t)(w + 1);
}

static size_t cells(const simulation *s) { return (size_t)MATERIALS * SIDE * SIDE * (size_t)(s->width + 2); }

/* A spot of each material, elsewhere in each. */
static void start(simulation *s)
{
    for (int m = 0; m < MATERIALS; m++)
        for (int d = 0; d < SIDE; d++)
            for (int h = 0; h < SIDE; h++)
                for (int w = 0; w < s->width; w++) {
                    int near_d = abs(d - 3 - 2 * m) < 3, near_h = abs(h - 12 + 3 * m) < 3, near_w = abs(w + s->first - 4 - m) < 3;
                    s->now[at(s, m, d, h, w)] = near_d && near_h && near_w ? 4 : 0;
                }
}

/* Ghost cells from the neighbours, one face of all fields at a time: at ranks that have no neighbour but themselves as well. */
static void exchange(simulation *s)
{
    MPI_Datatype face;
    int left = (s->rank + s->ranks - 1) % s->ranks, right = (s->rank + 1) % s->ranks;
    MPI_Type_vector(MATERIALS * SIDE * SIDE, 1, s->width + 2, MPI_DOUBLE, &face);
    MPI_Type_commit(&face);
    MPI_Sendrecv(s->now + 1, 1, face, left, 0, s->now + s->width + 1, 1, face, right, 0, s->comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(s->now + s->width, 1, face, right, 1, s->now, 1, face, left, 1, s->comm, MPI_STATUS_IGNORE);
    MPI_Type_free(&face);
}

static void diffuse(simulation *s)
{
    exchange(s);
    for (int m = 0; m < MATERIALS; m++)
        for (int d = 0; d < SIDE; d++)
            for (int h = 0; h < SIDE; h++)
                for (int w = 0; w < s->width; w++) {
                    int up = (d + 1) % SIDE, down = (d + SIDE - 1) % SIDE, back = (h + 1) % SIDE, front = (h + SIDE - 1) % SIDE;
                    double here = s->now[at(s, m, d, h, w)];
                    double around = s->now[at(s, m, up, h, w)] + s->now[at(s, m, down, h, w)] + s->now[at(s, m, d, back, w)] +
                                    s->now[at(s, m, d, front, w)] + s->now[at(s, m, d, h, w + 1)] + s->now[at(s, m, d, h, w - 1)];
                    s->next[at(s, m, d, h, w)] = here + diffusivity(m) * (around - 6 * here);
                }
    double *swap = s->now;
    s->now = s->next;
    s->next = swap;
}

/* ------------------------------------------------------------------------------------------------------------- halo */

/* conv 3^3 periodic -> leaky relu -> average pool, twice; then two dense layers. */
static halo_status make_network(halo_context *ctx, halo_network **net)
{
    const int64_t extents[3] = {SIDE, SIDE, SIDE};
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_pool_options pool = HALO_POOL_OPTIONS_INIT;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    halo_status st;
    int last = 0;
    pool.kind = HALO_POOL_AVG;
    for (int i = 0; i < 3; i++) conv.padding[i] = HALO_PAD_PERIODIC;
    if ((st = halo_network_create(ctx, "insitu", 1, extents, net)) != HALO_OK) return st;
    for (int block = 0; block < 2; block++) {
        conv.filters = block ? 16 : 8;
        if ((st = halo_network_conv(*net, last, NULL, &conv, &last)) != HALO_OK) return st;
        if ((st = halo_network_activation(*net, last, NULL, HALO_ACT_LEAKY_RELU, 0.01, &last)) != HALO_OK) return st;
        if ((st = halo_network_pool(*net, last, NULL, &pool, &last)) != HALO_OK) return st;
    }
    if ((st = halo_network_flatten(*net, last, NULL, &flatten, &last)) != HALO_OK) return st;
    dense.outputs = 16;
    if ((st = halo_network_dense(*net, last, NULL, &dense, &last)) != HALO_OK) return st;
    if ((st = halo_network_activation(*net, last, NULL, HALO_ACT_LEAKY_RELU, 0.01, &last)) != HALO_OK) return st;
    dense.outputs = 1;
    return halo_network_dense(*net, last, NULL, &dense, &last);
}

/* This rank's block of the samples [MATERIALS, 1, SIDE, SIDE, SIDE], as it lies in memory. */
static halo_block block_of(const simulation *s)
{
    halo_block b = HALO_BLOCK_INIT;
    const int64_t lo[5] = {0, 0, 0, 0, s->first}, extents[5] = {MATERIALS, 1, SIDE, SIDE, s->width}, row = s->width + 2,
                  stride[5] = {SIDE * SIDE * row, SIDE * SIDE * row, SIDE * row, row, 1};
    b.type = HALO_F64;
    memcpy(b.lo, lo, sizeof(lo));
    memcpy(b.extents, extents, sizeof(extents));
    memcpy(b.stride, stride, sizeof(stride));
    b.data = s->now + at(s, 0, 0, 0, 0);
    return b;
}

/* A real simulation would go on between steps; this one begins again, so that a file can hold all that the network is shown. */
static halo_status train(simulation *s, halo_trainer *trainer)
{
    float y[MATERIALS];
    for (int m = 0; m < MATERIALS; m++) y[m] = target(m);
    for (int step = 0; step < STEPS; step++) {
        double loss;
        start(s);
        for (int t = 0; t < TIME; t++) diffuse(s);
        halo_block x = block_of(s);
        halo_status st = halo_trainer_step_blocks(trainer, &x, y, NULL, 0, &loss);
        if (st != HALO_OK) return st;
        if (s->rank == 0) printf("step %d loss %.9g\n", step + 1, loss);
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------- for the comparison */

/* fields.raw: float [MATERIALS][SIDE][SIDE][SIDE]; targets.raw: float [MATERIALS]; network.yaml. */
static bool write_fields(const simulation *s, const char *directory)
{
    char path[1000];
    MPI_File file;
    MPI_Datatype part;
    const int whole[4] = {MATERIALS, SIDE, SIDE, SIDE}, mine[4] = {MATERIALS, SIDE, SIDE, s->width}, first[4] = {0, 0, 0, s->first};
    float *x = malloc(cells(s) * sizeof(float));
    size_t n = 0;
    for (int m = 0; x && m < MATERIALS; m++)
        for (int d = 0; d < SIDE; d++)
            for (int h = 0; h < SIDE; h++)
                for (int w = 0; w < s->width; w++) x[n++] = (float)s->now[at(s, m, d, h, w)];
    snprintf(path, sizeof(path), "%s/fields.raw", directory);
    MPI_Type_create_subarray(4, whole, mine, first, MPI_ORDER_C, MPI_FLOAT, &part);
    MPI_Type_commit(&part);
    /* Errors of files come back as codes, on all ranks alike */
    bool good = MPI_File_open(s->comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS;
    if (good) {
        good = MPI_File_set_size(file, 0) == MPI_SUCCESS;
        good = MPI_File_set_view(file, 0, MPI_FLOAT, part, "native", MPI_INFO_NULL) == MPI_SUCCESS && good;
        good = MPI_File_write_all(file, x, x ? (int)n : 0, MPI_FLOAT, MPI_STATUS_IGNORE) == MPI_SUCCESS && x && good;
        good = MPI_File_close(&file) == MPI_SUCCESS && good;
    }
    MPI_Type_free(&part);
    free(x);
    return good;
}

static bool write_file(const char *directory, const char *name, const void *bytes, size_t size)
{
    char path[1000];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(bytes, 1, size, f) == size;
    return f ? fclose(f) == 0 && good : false;
}

static bool write_all(const simulation *s, const halo_network *net, const char *directory)
{
    char *text;
    float targets[MATERIALS];
    bool good = write_fields(s, directory);
    if (s->rank != 0) return good;
    for (int m = 0; m < MATERIALS; m++) targets[m] = target(m);
    good = write_file(directory, "targets.raw", targets, sizeof(targets)) && good;
    if (halo_network_text(net, &text) != HALO_OK) return false;
    good = write_file(directory, "network.yaml", text, strlen(text)) && good;
    free(text);
    if (!good) fprintf(stderr, "insitu_mpi: cannot write what was trained on to '%s'\n", directory);
    return good;
}

static int run(simulation *s, const halo_trainer_options *options, const char *directory)
{
    halo_context *ctx = NULL;
    halo_network *net = NULL;
    halo_trainer *trainer = NULL;
    halo_status st = halo_mpi_context_create(s->comm, NULL, &ctx);
    if (st == HALO_OK) st = make_network(ctx, &net);
    if (st == HALO_OK) st = halo_trainer_create(ctx, net, options, &trainer);
    if (st == HALO_OK) st = train(s, trainer);
    if (st != HALO_OK) fprintf(stderr, "insitu_mpi: %s\n", halo_error_message(ctx));
    if (st == HALO_ERR_COMM) MPI_Abort(s->comm, EXIT_FAILURE);
    bool written = st != HALO_OK || !directory || write_all(s, net, directory);
    halo_trainer_destroy(trainer);
    halo_network_destroy(net);
    halo_context_destroy(ctx);
    return st == HALO_OK && written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    simulation s = {0};
    halo_trainer_options options = HALO_TRAINER_OPTIONS_INIT;
    int level, code = EXIT_FAILURE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &s.comm);
    MPI_Comm_rank(s.comm, &s.rank);
    MPI_Comm_size(s.comm, &s.ranks);
    s.first = SIDE * s.rank / s.ranks;
    s.width = SIDE * (s.rank + 1) / s.ranks - s.first;
    s.now = calloc(cells(&s), sizeof(double));
    s.next = calloc(cells(&s), sizeof(double));
    options.batch = MATERIALS;
    options.optimizer = HALO_SGD;
    options.lr = 2e-3;
    for (int i = 0; i < 3 && argc > 3; i++) options.spatial[i] = strtol(argv[i + 1], NULL, 10);
    if (s.now && s.next) code = run(&s, &options, argc > 4 ? argv[4] : NULL);
    free(s.now);
    free(s.next);
    MPI_Comm_free(&s.comm);
    MPI_Finalize();
    return code;
}
