/* SPDX-License-Identifier: Apache-2.0 */
/* json.h -- writes JSON into a string. Commas, quoting and numbers are its business; nesting is the caller's. NaN and infinities become null. */
#ifndef HL_JSON_H
#define HL_JSON_H

#include "base/str.h"

typedef struct hl_json {
    hl_str out;
    bool comma;
} hl_json;

/* `key` is NULL inside arrays and for the outermost object. */
void hl_json_object(hl_json *j, const char *key);
void hl_json_end_object(hl_json *j);
void hl_json_array(hl_json *j, const char *key);
void hl_json_end_array(hl_json *j);
void hl_json_string(hl_json *j, const char *key, const char *value);
void hl_json_int(hl_json *j, const char *key, int64_t value);
void hl_json_number(hl_json *j, const char *key, double value); /* 17 significant digits at most, shortest that reads back equal */
void hl_json_bool(hl_json *j, const char *key, bool value);
void hl_json_null(hl_json *j, const char *key);
void hl_json_free(hl_json *j);

#endif
