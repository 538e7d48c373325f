/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halo.h -- the public interface of libhalo, a trainer of 3-D convolutional networks on scientific volumes.
 *
 * Conventions (CONVENTIONS has the glossary)
 *   - Logical order of a tensor is always N C D H W (samples, channels, depth, height, width); 2-D networks have D = 1.
 *   - Every function that can fail returns a halo_status. Outputs come last and are written on success only.
 *   - On failure the cause is in halo_error_message(ctx), and was passed once to the context's log callback.
 *   - The library never exits, aborts on a user's error, prints, installs signal handlers, or leaves the floating-point mode, the
 *     locale or the affinity of the calling thread changed.
 *   - A context and what was made from it belong to one thread at a time; different contexts are independent.
 *   - "Collective" functions are called by all ranks of the context's communicator in the same order (halo_mpi.h); everything else
 *     is local. Without halo_mpi.h a context has one rank.
 */
#ifndef HALO_HALO_H
#define HALO_HALO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HALO_API __attribute__((visibility("default")))
#define HALO_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define HALO_API
#define HALO_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------------- status */

/* Every status: name, value, what it means. */
#define HALO_STATUS_MAP(X)                                                                                   \
    X(HALO_OK, 0, "success")                                                                                 \
    X(HALO_ERR_USAGE, 1, "wrong use: configuration, option or argument")                                     \
    X(HALO_ERR_NOMEM, 2, "out of memory")                                                                    \
    X(HALO_ERR_IO, 3, "a file cannot be opened, read or written")                                            \
    X(HALO_ERR_FORMAT, 4, "a file's content is not what it should be")                                       \
    X(HALO_ERR_SHAPE, 5, "shapes do not fit")                                                                \
    X(HALO_ERR_UNSUPPORTED, 6, "not supported by this build, backend or machine")                            \
    X(HALO_ERR_NONFINITE, 7, "a loss, gradient or input value is not finite")                                \
    X(HALO_ERR_COMM, 8, "communication failed or another rank failed")                                       \
    X(HALO_ERR_DEVICE, 9, "a device or vendor library failed")                                               \
    X(HALO_ERR_STOPPED, 10, "stopped on request")                                                            \
    X(HALO_ERR_SYSTEM, 11, "the operating system refused")

typedef enum halo_status {
#define HALO_STATUS_ENUM(name, value, text) name = value,
    HALO_STATUS_MAP(HALO_STATUS_ENUM)
#undef HALO_STATUS_ENUM
} halo_status;

/* The short text of a status; never NULL. */
HALO_API const char *halo_status_text(halo_status status);

/* "0.1.0", and one line that names the libraries this build uses and their licences. Static strings. */
HALO_API const char *halo_version(void);
HALO_API const char *halo_version_details(void);

/* --------------------------------------------------------------------------------------------------------------- context */

/* A context carries the communicator, device, threads, log level and seed of everything made from it. Opaque. */
typedef struct halo_context halo_context;

typedef enum halo_log_level { HALO_LOG_ERROR = 0, HALO_LOG_WARN, HALO_LOG_INFO, HALO_LOG_DEBUG } halo_log_level;

/* Receives one message, without newline. May be called from halo's own threads, one call at a time per context. */
typedef void (*halo_log_fn)(void *user, halo_log_level level, const char *message);

typedef struct halo_context_options {
    size_t size;              /* sizeof(halo_context_options), for growth; set by HALO_CONTEXT_OPTIONS_INIT */
    const char *backend;      /* "cpu", "ref", "cuda"; NULL: the first that this build and machine offer */
    const char *isa;          /* cpu backend: "generic", "avx2", "avx512f"; NULL: the best that cpuid allows */
    int threads;              /* OpenMP threads for computing; 0: as many as cores allowed to this process */
    uint64_t seed;            /* root of all random numbers */
    halo_log_level log_level; /* messages above it are not formatted */
    halo_log_fn log;          /* NULL: messages are dropped (errors stay readable by halo_error_message) */
    void *log_user;
} halo_context_options;

#define HALO_CONTEXT_OPTIONS_INIT {.size = sizeof(halo_context_options), .seed = 1, .log_level = HALO_LOG_WARN}

/* Makes a context with one rank. options may be NULL (defaults). The caller owns *ctx. Not collective. */
HALO_API halo_status halo_context_create(const halo_context_options *options, halo_context **ctx);

/* Destroys a context made by halo_context_create or halo_mpi_context_create; everything made from it must be gone. NULL is allowed. */
HALO_API void halo_context_destroy(halo_context *ctx);

/* The last error of this context, "" if none; valid until the next failing call. ctx NULL: the last failed create of this thread. */
HALO_API const char *halo_error_message(const halo_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
