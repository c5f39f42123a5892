/* SPDX-License-Identifier: Apache-2.0 */
/* canonical.c -- how fast a payload gets its canonical form and its fingerprint, without a store.
 */
#include "base/canon.h"
#include "bench.h"
#include "contract/payload.h"

#include <ibid.h>
#include <stdio.h>

static const char document[] =
    "{\"from\":\"DE02120300000000202051\",\"to\":\"DE02500105170137075030\",\"amount\":12.50,"
    "\"currency\":\"EUR\","
    "\"note\":\"Rechnung 4711 / 2026-11, "
    "K\\u00f6ln\",\"lines\":[{\"sku\":\"A-1\",\"qty\":3,\"price\":1.10},"
    "{\"sku\":\"B-2\",\"qty\":1,\"price\":9.20}],\"requestedAt\":\"2026-11-15T10:00:00+01:00\"}";

static void canonical_once(void)
{
	char *text;
	size_t size;
	if (ibid_canonical(document, sizeof document - 1, &text, &size, NULL))
		die("canonical", "failed");
	ibid_free(text);
}

static void fingerprint_once(void)
{
	static const struct contract contract = {.name = "pay", .version = 1};
	const struct sender sender = {"acme", "bench", "u7", ""};
	struct arena arena = {0};
	struct json *payload;
	struct sha256 hash;
	struct ibid_err err;
	if (json_read(&arena, document, sizeof document - 1, 0, &payload, &err) ||
	    fingerprint_of(&arena, &contract, &sender, payload, &hash, &err))
		die("fingerprint", err.text);
	arena_release(&arena);
}

static double rate_of(const struct bench *bench, void (*once)(void))
{
	uint64_t count = 0;
	double began = bench_now(bench), spent;
	do {
		for (int i = 0; i < 1000; i++, count++)
			once();
	} while ((spent = bench_now(bench) - began) < bench->seconds);
	return (double)count / spent;
}

void part_canonical(const struct bench *bench)
{
	size_t size = sizeof document - 1;
	printf("\ncanonical form     %8.1f MB/s   (%zu-byte payment)\n",
	       rate_of(bench, canonical_once) * (double)size / 1e6, size);
	printf("fingerprints       %8.0f /s     (reading the payload included)\n",
	       rate_of(bench, fingerprint_once));
}
