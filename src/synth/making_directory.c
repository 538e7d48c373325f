/* SPDX-License-Identifier: Apache-2.0 */
/* making_directory.c -- the directory of a run: its settings, its parts, the list of what is in it. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "synth/making.h"

/* What must not change between runs into one directory. */
static halo_status fixed_settings(halo_context *ctx, const hl_universes_settings *s, hl_str *out)
{
    const bool rows_shift = s->table[0] && s->validation + s->test > 0; /* a part's rows begin where those of the one before end */
    hl_universes_settings *fixed;

    HL_TRY(hl_calloc(ctx, 1, sizeof(*fixed), "settings", &fixed));
    *fixed = *s;
    fixed->jobs = fixed->threads = -1;
    fixed->together = 0;
    if (s->sampling == 0 && !rows_shift)
        fixed->count = fixed->validation = fixed->test = 0; /* a hypercube depends on its size */
    snprintf(fixed->out, sizeof(fixed->out), ".");
    hl_config_write(hl_universes_keys(), fixed, out);
    free(fixed);
    return out->failed ? hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: settings") : HALO_OK;
}

static halo_status refuse_difference(halo_context *ctx, const char *path, const char *was, const char *is)
{
    while (*was && *was == *is && strncmp(was, is, strcspn(was, "\n") + 1) == 0) {
        size_t line = strcspn(was, "\n") + 1;
        was += line;
        is += line;
    }
    return hl_fail(ctx, HALO_ERR_USAGE,
                   "'%s' was made with '%.*s', this run says '%.*s': choose another directory", path,
                   (int)strcspn(was, "\n"), was, (int)strcspn(is, "\n"), is);
}

/* The file's settings written anew: keys that it does not have are at their defaults. */
static halo_status read_fixed(halo_context *ctx, const char *path, hl_str *out)
{
    hl_universes_settings *s = NULL;
    hl_yaml *root;

    HL_TRY(hl_yaml_load(ctx, path, &root));
    halo_status st = hl_calloc(ctx, 1, sizeof(*s), "settings", &s);
    if (st == HALO_OK) st = hl_config_defaults(ctx, hl_universes_keys(), s);
    if (st == HALO_OK) st = hl_config_apply(ctx, hl_universes_keys(), s, path, root);
    if (st == HALO_OK) st = fixed_settings(ctx, s, out);
    free(s);
    hl_yaml_destroy(root);
    return st;
}

static halo_status read_plain(halo_context *ctx, const char *path, hl_str *out)
{
    char *text;
    size_t bytes;
    HL_TRY(hl_file_read(ctx, path, 1 << 20, &text, &bytes));
    hl_str_add(out, text);
    free(text);
    return out->failed ? hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: settings") : HALO_OK;
}

/* Compares with what an earlier run said, or says it. */
static halo_status keep_settings(halo_context *ctx, const char *directory, const char *file, const hl_str *settings, hl_making_read read)
{
    const int below = 2; /* train/images */
    hl_str was = {0};
    char *path;
    halo_status st = HALO_OK;
    HL_TRY(hl_path_join(ctx, directory, file, &path));
    if (hl_file_exists(path)) {
        HL_GOTO(st, (read ? read : read_plain)(ctx, path, &was), done);
        if (!was.s || strcmp(was.s, settings->s) != 0) HL_GOTO(st, refuse_difference(ctx, directory, was.s ? was.s : "", settings->s), done);
        hl_remove_stale(directory, below);
    } else
        st = hl_file_write(ctx, path, settings->s, settings->len);
done:
    free(path);
    hl_str_free(&was);
    return st;
}

halo_status hl_making_take_directory(halo_context *ctx, const char *directory, const char *file, const hl_str *settings, hl_making_read read, int *lock)
{
    *lock = -1;
    if (settings->failed) return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: settings");
    HL_TRY(hl_make_dirs(ctx, directory));
    HL_TRY(hl_directory_lock(ctx, directory, lock));
    halo_status st = keep_settings(ctx, directory, file, settings, read);
    if (st == HALO_OK) return st;
    hl_making_leave_directory(*lock);
    *lock = -1;
    return st;
}

void hl_making_leave_directory(int lock)
{
    if (lock >= 0) close(lock);
}

static halo_status claim(hl_making *m)
{
    hl_str text = {0};
    halo_status st = fixed_settings(m->ctx, m->settings, &text);
    if (st == HALO_OK) st = hl_making_take_directory(m->ctx, m->settings->out, "universes.yaml", &text, read_fixed, &m->lock);
    hl_str_free(&text);
    return st;
}

/* The number behind the last universe in a directory, 0 where there is none. */
static int64_t end_of(const char *directory)
{
    DIR *dir = opendir(directory);
    int64_t number, end = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        int used = 0;
        if (sscanf(e->d_name, "universe-%" SCNd64 ".hdf5%n", &number, &used) == 1 && used > 0 && !e->d_name[used]) end = hl_max64(end, number + 1);
    }
    if (dir) closedir(dir);
    return end;
}

static halo_status check_end(halo_context *ctx, const char *directory, int64_t makes)
{
    const int64_t end = end_of(directory);
    char more[64] = "";
    if (end <= makes) return HALO_OK;
    if (makes > 0) snprintf(more, sizeof(more), ", or ask for at least %" PRId64, end);
    return hl_fail(ctx, HALO_ERR_USAGE, "'%s' has universe-%06" PRId64 ".hdf5 of an earlier run, and this one makes %" PRId64 " there: choose another directory%s", directory, end - 1, makes, more);
}

/* Whoever trains from the directory takes all that is there, so the manifest has to list it: a run that makes less, or makes it elsewhere, is refused. */
static halo_status check_all_listed(const hl_making *m)
{
    const bool parts = hl_making_has_parts(m);
    HL_TRY(check_end(m->ctx, m->settings->out, parts ? 0 : m->parts[0]));
    for (int i = 0; i < HL_PARTS; i++) {
        char *path;
        HL_TRY(hl_path_join(m->ctx, m->settings->out, hl_making_part(i), &path));
        halo_status st = check_end(m->ctx, path, parts ? m->parts[i] : 0);
        free(path);
        if (st != HALO_OK) return st;
    }
    return HALO_OK;
}

static halo_status make_parts(hl_making *m)
{
    for (int i = 0; hl_making_has_parts(m) && i < HL_PARTS; i++) {
        char *path;
        if (m->parts[i] == 0) continue;
        HL_TRY(hl_path_join(m->ctx, m->settings->out, hl_making_part(i), &path));
        halo_status st = hl_make_dirs(m->ctx, path);
        free(path);
        if (st != HALO_OK) return st;
    }
    return HALO_OK;
}

/* manifest.csv: what is in the directory, known before the first universe is made; readable as a table of a
 * later run. */
static halo_status write_manifest(const hl_making *m)
{
    hl_str text = {0};
    char name[64], *path;

    hl_str_add(&text, "file,index,box");
    for (int i = 0; i < m->prior.n; i++) hl_str_addf(&text, ",%s", m->prior.parameter[i].name);
    hl_str_add(&text, "\n");
    for (int64_t i = 0; i < m->progress.total; i++) {
        hl_task t = hl_making_task(m, i);
        hl_draw d = hl_making_draw(m, t);
        hl_making_file(m, t, name, sizeof(name));
        hl_str_addf(&text, "%s,%" PRIu64 ",%g", name, t.number, hl_making_box(m, &d));
        for (int p = 0; p < m->prior.n; p++) hl_str_addf(&text, ",%.17g", d.physical[p]);
        hl_str_add(&text, "\n");
    }
    halo_status st = text.failed ? hl_fail(m->ctx, HALO_ERR_NOMEM, "out of memory: a manifest") : HALO_OK;
    if (st == HALO_OK) st = hl_path_join(m->ctx, m->settings->out, "manifest.csv", &path);
    if (st == HALO_OK) {
        st = hl_file_write(m->ctx, path, text.s, text.len);
        free(path);
    }
    hl_str_free(&text);
    return st;
}

halo_status hl_making_claim(hl_making *m)
{
    HL_TRY(claim(m));
    HL_TRY(check_all_listed(m));
    HL_TRY(make_parts(m));
    return write_manifest(m);
}
