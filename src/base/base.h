/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h -- what every room needs: failing, logging, memory, checked arithmetic. The other headers of base are included where needed.
 */
#ifndef HL_BASE_H
#define HL_BASE_H

#include <halo/halo.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ errors and logs */

/* Reports the cause once (context's message and log callback) and returns `status`. ctx may be NULL: the thread's message. Thread-safe. */
halo_status hl_fail(halo_context *ctx, halo_status status, const char *format, ...) HALO_PRINTF(3, 4);

/* HALO_ERR_USAGE, "'x' must not be NULL", where a caller of the public interface left out the argument `name`. */
halo_status hl_not_null(halo_context *ctx, const void *argument, const char *name);

/* Replaces the stored message without logging: for a caller that must add the rank or the file of a list. Rare. */
void hl_set_error(halo_context *ctx, const char *message);

/* The level is tested before anything is formatted. */
bool hl_logs(const halo_context *ctx, halo_log_level level);
void hl_context_log_level(halo_context *ctx, halo_log_level level);
void hl_log(halo_context *ctx, halo_log_level level, const char *format, ...) HALO_PRINTF(3, 4);
#define HL_WARN(ctx, ...)  do { if (hl_logs(ctx, HALO_LOG_WARN)) hl_log(ctx, HALO_LOG_WARN, __VA_ARGS__); } while (0)
#define HL_INFO(ctx, ...)  do { if (hl_logs(ctx, HALO_LOG_INFO)) hl_log(ctx, HALO_LOG_INFO, __VA_ARGS__); } while (0)
#define HL_DEBUG(ctx, ...) do { if (hl_logs(ctx, HALO_LOG_DEBUG)) hl_log(ctx, HALO_LOG_DEBUG, __VA_ARGS__); } while (0)

#define HL_TRY(expr) do { halo_status hl_try_ = (expr); if (hl_try_ != HALO_OK) return hl_try_; } while (0)
/* Inside a function with one exit: `halo_status st = HALO_OK; ... HL_GOTO(st, expr, free_x);` */
#define HL_GOTO(st, expr, label) do { if (((st) = (expr)) != HALO_OK) goto label; } while (0)

/* A broken invariant is a bug of halo, never a user's error. */
void hl_bug(const char *file, int line, const char *what) __attribute__((noreturn));
#define HL_BUG_UNLESS(cond) do { if (!(cond)) hl_bug(__FILE__, __LINE__, #cond); } while (0)

/* ---------------------------------------------------------------------------------------------------------- memory */

/* Zeroed array of n items; *out is NULL for n = 0. Checked multiplication; `what` names the thing in the error. Freed with free(). */
halo_status hl_calloc(halo_context *ctx, size_t n, size_t size, const char *what, void *out);
/* Grows an array to at least n items (doubling); *cap and *array are updated on success. */
halo_status hl_grow(halo_context *ctx, void *array, size_t *cap, size_t n, size_t size, const char *what);
/* 64-byte aligned, not cleared. Freed with free(). */
halo_status hl_aligned(halo_context *ctx, size_t bytes, const char *what, void *out);
/* At least so many such bytes at *scratch, which has *capacity and whose content is not kept. */
halo_status hl_scratch(halo_context *ctx, char **scratch, size_t *capacity, size_t bytes, const char *what);
halo_status hl_strdup(halo_context *ctx, const char *s, char **out);
/* Gives freed memory that the C library keeps for later back to the system, where it can; for programs, between large allocations. */
void hl_give_back(void);

/* Checked 64-bit arithmetic on extents: false on overflow. */
static inline bool hl_mul64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool hl_add64(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline int64_t hl_min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t hl_max64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t hl_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; } /* a >= 0, b > 0 */
static inline int64_t hl_round_up(int64_t a, int64_t b) { return hl_div_up(a, b) * b; }
#define HL_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
