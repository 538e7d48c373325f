/* SPDX-License-Identifier: Apache-2.0 */
/* universe.c -- writes and reads whole universes in the published CosmoUniverse layout. The sub-volume reader
 * is in the sources. */
#include "io/universe.h"

#include <stdio.h>

#include "base/file.h"
#include "io/h5out.h"

/* ----------------------------------------------------------------------------------------------- writing */

static const hl_number f32 = {'f', 4}, f64 = {'f', 8};

/* Chunks of up to 64^3 cells with all their channels, so that a sub-volume does not inflate whole planes.
 * Inside enter .. leave. */
static hid_t create_full(hid_t file, const hl_universe_file *u)
{
    hsize_t dim[4], chunk[4];

    for (int d = 0; d < 4; d++) {
        dim[d] = (hsize_t)u->ext[d];
        chunk[d] = d < 3 && u->ext[d] > 64 ? 64 : dim[d];
    }
    hid_t space = H5Screate_simple(4, dim, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 4, chunk);
    H5Pset_shuffle(list);
    H5Pset_deflate(list, 4);
    hid_t set = H5Dcreate2(file, "full", u->integer ? H5T_STD_I16LE : H5T_IEEE_F32LE, space, H5P_DEFAULT,
                           list, H5P_DEFAULT);
    H5Pclose(list);
    H5Sclose(space);
    return set;
}

static hid_t create_names(hid_t file, const hl_universe_file *u, hid_t *type)
{
    hsize_t dim = (hsize_t)u->parameters;
    hid_t space = H5Screate_simple(1, &dim, NULL);

    *type = H5Tcopy(H5T_C_S1);
    H5Tset_size(*type, HL_UNIVERSE_NAME_MAX);
    H5Tset_strpad(*type, H5T_STR_NULLPAD);
    hid_t set = H5Dcreate2(file, "namePar", *type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sclose(space);
    return set;
}

static bool write_and_close(hid_t set, hid_t memory_type, const void *data)
{
    bool good = set >= 0 && H5Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    if (set >= 0) good = H5Dclose(set) >= 0 && good;
    return good;
}

/* What hl_h5_put has no words for: a compressed dataset and a list of strings. */
static halo_status put_full_and_names(hl_h5_out *out, const hl_universe_file *u)
{
    char names[HL_UNIVERSE_PARAMETERS_MAX][HL_UNIVERSE_NAME_MAX] = {{0}};
    hl_h5_guard g;

    for (int i = 0; i < u->parameters; i++) snprintf(names[i], sizeof(names[i]), "%s", u->parameter[i].name);
    hl_h5_enter(&g);
    bool good = write_and_close(create_full(out->id, u), H5T_NATIVE_FLOAT, u->full);
    if (good) {
        hid_t type, set = create_names(out->id, u, &type);
        good = write_and_close(set, type, names);
        H5Tclose(type);
    }
    if (!good) hl_h5_cause(&g);
    hl_h5_leave(&g);
    return good ? HALO_OK : hl_h5_out_failed(out, g.cause);
}

static halo_status put_floats(hl_h5_out *out, const char *name, const double *value, int n)
{
    float narrow[HL_UNIVERSE_CHANNELS_MAX];
    int64_t dim = n;

    for (int i = 0; i < n; i++) narrow[i] = (float)value[i];
    return hl_h5_put(out, name, f32, 1, &dim, narrow);
}

static halo_status put_parameters(hl_h5_out *out, const hl_universe_file *u)
{
    double unit[HL_UNIVERSE_PARAMETERS_MAX], physical[HL_UNIVERSE_PARAMETERS_MAX];
    double low[HL_UNIVERSE_PARAMETERS_MAX], high[HL_UNIVERSE_PARAMETERS_MAX];

    for (int i = 0; i < u->parameters; i++) {
        unit[i] = u->parameter[i].unit;
        physical[i] = u->parameter[i].physical;
        low[i] = u->parameter[i].low;
        high[i] = u->parameter[i].high;
    }
    HL_TRY(put_floats(out, "unitPar", unit, u->parameters));
    HL_TRY(put_floats(out, "physPar", physical, u->parameters));
    HL_TRY(hl_h5_put_attr(out, "unitPar", "low", f64, u->parameters, low));
    HL_TRY(hl_h5_put_attr(out, "unitPar", "high", f64, u->parameters, high));
    return u->redshifts > 0 ? put_floats(out, "redshifts", u->redshift, u->redshifts) : HALO_OK;
}

static halo_status put_all(hl_h5_out *out, const hl_universe_file *u)
{
    HL_TRY(put_full_and_names(out, u));
    HL_TRY(put_parameters(out, u));
    for (int i = 0; i < u->notes; i++) {
        const hl_universe_note *n = &u->note[i];
        if (n->text)
            HL_TRY(hl_h5_put_attr_strings(out, "/", n->name, -1, &n->text));
        else
            HL_TRY(hl_h5_put_attr(out, "/", n->name, f64, 0, &n->number));
    }
    return HALO_OK;
}

halo_status hl_universe_write(halo_context *ctx, const char *path, const hl_universe_file *u)
{
    hl_h5_out *out;

    HL_TRY(hl_h5_create(ctx, path, &out));
    halo_status st = put_all(out, u);
    if (st == HALO_OK) return hl_h5_finish(out, true);
    (void)hl_h5_finish(out, false);
    return st;
}

/* ----------------------------------------------------------------------------------------------- reading */

/* A dataset of at most `most` numbers as doubles; *n = 0 where it is missing. */
static halo_status get_numbers(hl_h5 *file, const char *name, int most, double *out, int *n)
{
    static const int64_t start = 0;
    hl_h5_data *data;
    halo_status st;
    void *raw = NULL;

    *n = 0;
    if (!hl_h5_has(file, name)) return HALO_OK;
    HL_TRY(hl_h5_data_open(file, name, 0, &data));
    if (data->ndim != 1 || data->dim[0] < 1 || data->dim[0] > most) {
        st = hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': '%s' is not a list of 1 to %d numbers", file->path,
                     name, most);
        goto close_data;
    }
    HL_GOTO(st, hl_calloc(file->ctx, (size_t)data->dim[0], (size_t)data->type.bytes, name, &raw), close_data);
    HL_GOTO(st, hl_h5_read(data, &start, data->dim, raw, (size_t)data->bytes), close_data);
    for (int i = 0; i < (int)data->dim[0]; i++) { /* through float: that is what these files hold */
        float value;
        hl_convert(data->type, (char *)raw + i * data->type.bytes, 1, HALO_F32, &value, 1);
        out[i] = (double)value;
    }
    *n = (int)data->dim[0];
close_data:
    free(raw);
    hl_h5_data_close(data);
    return st;
}

static halo_status get_parameters(hl_h5 *file, hl_universe_file *u)
{
    double unit[HL_UNIVERSE_PARAMETERS_MAX], physical[HL_UNIVERSE_PARAMETERS_MAX],
        range[2][HL_UNIVERSE_PARAMETERS_MAX];
    int64_t names, ranges[2];
    int count;
    char **name;

    HL_TRY(get_numbers(file, "unitPar", HL_UNIVERSE_PARAMETERS_MAX, unit, &u->parameters));
    if (u->parameters == 0)
        return hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': no dataset 'unitPar'", file->path);
    HL_TRY(get_numbers(file, "physPar", HL_UNIVERSE_PARAMETERS_MAX, physical, &count));
    HL_TRY(hl_h5_attr_numbers(file, "unitPar", "low", HL_UNIVERSE_PARAMETERS_MAX, range[0], &ranges[0]));
    HL_TRY(hl_h5_attr_numbers(file, "unitPar", "high", HL_UNIVERSE_PARAMETERS_MAX, range[1], &ranges[1]));
    HL_TRY(hl_h5_strings(file, "namePar", NULL, &name, &names));
    for (int i = 0; i < u->parameters; i++) {
        hl_universe_parameter *p = &u->parameter[i];
        *p = (hl_universe_parameter){.unit = unit[i], .physical = i < count ? physical[i] : NAN};
        p->low = i < ranges[0] ? range[0][i] : NAN;
        p->high = i < ranges[1] ? range[1][i] : NAN;
        if (i < names)
            snprintf(p->name, sizeof(p->name), "%.31s", name[i]);
        else
            snprintf(p->name, sizeof(p->name), "parameter %d", i + 1);
    }
    free(name);
    return HALO_OK;
}

static halo_status get_full(hl_h5 *file, hl_universe_file *u)
{
    static const int64_t start[4] = {0};
    hl_h5_data *data;
    halo_status st;
    void *raw = NULL;

    HL_TRY(hl_h5_data_open(file, "full", 0, &data));
    if (data->ndim != 4) {
        st = hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': 'full' has %d dimensions instead of 4", file->path,
                     data->ndim);
        goto close_data;
    }
    HL_GOTO(st, hl_h5_claim(data, data->bytes), close_data);
    HL_GOTO(st, hl_aligned(file->ctx, (size_t)data->bytes, "a universe", &raw), close_data);
    HL_GOTO(st, hl_aligned(file->ctx, (size_t)data->elements * sizeof(float), "a universe", &u->full),
            close_data);
    HL_GOTO(st, hl_h5_read(data, start, data->dim, raw, (size_t)data->bytes), close_data);
    hl_convert(data->type, raw, 1, HALO_F32, u->full, data->elements);
    memcpy(u->ext, data->dim, sizeof(u->ext));
    u->integer = data->type.kind != 'f';
close_data:
    free(raw);
    hl_h5_data_close(data);
    return st;
}

static halo_status get_note(hl_h5 *file, const char *name, double *value)
{
    int64_t n;
    *value = NAN;
    return hl_h5_attr_numbers(file, "/", name, 1, value, &n);
}

static halo_status get_notes(hl_h5 *file, hl_universe_file *u)
{
    double rsd, wiggles;
    int64_t n;
    char **text;

    HL_TRY(get_note(file, "box", &u->box));
    HL_TRY(get_note(file, "particles", &u->particles));
    HL_TRY(get_note(file, "omega_b", &u->omega_b));
    HL_TRY(get_note(file, "h", &u->h));
    HL_TRY(get_note(file, "rsd", &rsd));
    HL_TRY(get_note(file, "wiggles", &wiggles));
    HL_TRY(hl_h5_strings(file, "/", "assignment", &text, &n));
    u->rsd = rsd == 1.0;
    u->no_wiggles = wiggles == 0.0;
    if (n > 0) snprintf(u->assignment, sizeof(u->assignment), "%.7s", text[0]);
    free(text);
    return HALO_OK;
}

static halo_status read_universe(hl_h5 *file, hl_universe_file *u)
{
    HL_TRY(get_full(file, u));
    HL_TRY(get_parameters(file, u));
    HL_TRY(get_numbers(file, "redshifts", HL_UNIVERSE_CHANNELS_MAX, u->redshift, &u->redshifts));
    return get_notes(file, u);
}

halo_status hl_universe_read(halo_context *ctx, const char *path, hl_universe_file *out)
{
    hl_universe_file u = {0};
    hl_h5 *file;

    HL_TRY(hl_h5_open(ctx, path, &file));
    halo_status st = read_universe(file, &u);
    hl_h5_close(file);
    if (st == HALO_OK)
        *out = u;
    else
        free(u.full);
    return st;
}

static bool has_shape(hid_t file, const int64_t ext[4])
{
    hsize_t dim[H5S_MAX_RANK] = {0};
    hid_t set = H5Lexists(file, "full", H5P_DEFAULT) > 0 ? H5Dopen2(file, "full", H5P_DEFAULT) : -1;
    if (set < 0) return false;
    hid_t space = H5Dget_space(set);
    bool good = H5Sget_simple_extent_ndims(space) == 4 && H5Sget_simple_extent_dims(space, dim, NULL) == 4;

    for (int d = 0; d < 4 && ext; d++) good = good && (int64_t)dim[d] == ext[d];
    H5Sclose(space);
    H5Dclose(set);
    return good && H5Lexists(file, "unitPar", H5P_DEFAULT) > 0;
}

bool hl_universe_is_complete(const char *path, const int64_t ext[4])
{
    hl_h5_guard guard;

    if (!hl_file_exists(path)) return false;
    hl_h5_enter(&guard);
    hid_t file = H5Fis_hdf5(path) > 0 ? H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT) : -1;
    bool good = file >= 0 && has_shape(file, ext);
    if (file >= 0) H5Fclose(file);
    hl_h5_leave(&guard);
    return good;
}
