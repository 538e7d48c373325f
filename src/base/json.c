/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

static void quoted(hl_str *out, const char *text)
{
    hl_str_add(out, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') hl_str_addf(out, "\\%c", *p);
        else if (*p == '\n') hl_str_add(out, "\\n");
        else if (*p == '\t') hl_str_add(out, "\\t");
        else if (*p < 0x20) hl_str_addf(out, "\\u%04x", *p);
        else hl_str_addn(out, (const char *)p, 1);
    }
    hl_str_add(out, "\"");
}

static void begin(hl_json *j, const char *key)
{
    if (j->comma) hl_str_add(&j->out, ", ");
    if (key) {
        quoted(&j->out, key);
        hl_str_add(&j->out, ": ");
    }
    j->comma = true;
}

static void open_with(hl_json *j, const char *key, const char *bracket)
{
    begin(j, key);
    hl_str_add(&j->out, bracket);
    j->comma = false;
}

static void close_with(hl_json *j, const char *bracket)
{
    hl_str_add(&j->out, bracket);
    j->comma = true;
}

void hl_json_object(hl_json *j, const char *key) { open_with(j, key, "{"); }
void hl_json_end_object(hl_json *j) { close_with(j, "}"); }
void hl_json_array(hl_json *j, const char *key) { open_with(j, key, "["); }
void hl_json_end_array(hl_json *j) { close_with(j, "]"); }

void hl_json_string(hl_json *j, const char *key, const char *value)
{
    begin(j, key);
    quoted(&j->out, value);
}

void hl_json_int(hl_json *j, const char *key, int64_t value)
{
    begin(j, key);
    hl_str_addf(&j->out, "%" PRId64, value);
}

void hl_json_number(hl_json *j, const char *key, double value)
{
    begin(j, key);
    if (isfinite(value)) hl_str_number(&j->out, value);
    else hl_str_add(&j->out, "null");
}

void hl_json_bool(hl_json *j, const char *key, bool value)
{
    begin(j, key);
    hl_str_add(&j->out, value ? "true" : "false");
}

void hl_json_null(hl_json *j, const char *key)
{
    begin(j, key);
    hl_str_add(&j->out, "null");
}

void hl_json_free(hl_json *j)
{
    hl_str_free(&j->out);
    j->comma = false;
}
