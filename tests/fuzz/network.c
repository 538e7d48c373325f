/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c -- fuzz target: any bytes as a network file. What is accepted must survive writing and reading. With clang, from the top:
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -include BUILD/halo_build.h -Iinclude -Isrc -I. tests/fuzz/network.c src/net/{build,file,graph,infer,keys,params,write}.c \
 *         src/tensor/block.c src/base/{yaml,context,status,memory,str,file,topology}.c -lyaml -lhwloc -lm -o fuzz-network
 *     ./fuzz-network -max_len=4096 CORPUS
 */
#include "net/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void survives(halo_context *ctx, const halo_network *net)
{
    char *text, *again;
    halo_network *back;
    HL_BUG_UNLESS(halo_network_text(net, &text) == HALO_OK);
    HL_BUG_UNLESS(halo_network_parse(ctx, "back", text, strlen(text), 0, NULL, &back) == HALO_OK);
    HL_BUG_UNLESS(halo_network_text(back, &again) == HALO_OK);
    HL_BUG_UNLESS(strcmp(text, again) == 0 && halo_network_parameters(net) == halo_network_parameters(back));
    free(text);
    free(again);
    halo_network_destroy(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static halo_context *ctx;
    halo_network *net;
    if (!ctx && halo_context_create(NULL, &ctx) != HALO_OK) return 0;
    if (halo_network_parse(ctx, "fuzz", (const char *)data, bytes, 0, NULL, &net) != HALO_OK) return 0;
    survives(ctx, net);
    halo_network_destroy(net);
    return 0;
}
