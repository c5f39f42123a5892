/* SPDX-License-Identifier: Apache-2.0 */
/* address.c -- the special-purpose registries of IANA (RFC 6890 and what followed).
 *
 * For IPv4 the table lists the addresses that are not public. IPv6 has one block of global
 * addresses: addresses outside of it, and those listed within it, are not public. */
#include "net/address.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

struct block4 {
	uint32_t base;
	unsigned bits;
};
#define BLOCK4(a, b, c, d, bits)                                                                   \
	{                                                                                              \
		(uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d), bits                                     \
	}
static const struct block4 blocks4[] = {
    BLOCK4(0, 0, 0, 0, 8),       /* this network: Linux takes it for this machine */
    BLOCK4(10, 0, 0, 0, 8),      /* private */
    BLOCK4(100, 64, 0, 0, 10),   /* carriers' */
    BLOCK4(127, 0, 0, 0, 8),     /* this machine */
    BLOCK4(169, 254, 0, 0, 16),  /* this link; clouds keep credentials there */
    BLOCK4(172, 16, 0, 0, 12),   /* private */
    BLOCK4(192, 0, 0, 0, 24),    /* protocols' */
    BLOCK4(192, 0, 2, 0, 24),    /* documents' */
    BLOCK4(192, 88, 99, 0, 24),  /* 6to4 relays */
    BLOCK4(192, 168, 0, 0, 16),  /* private */
    BLOCK4(198, 18, 0, 0, 15),   /* measurements' */
    BLOCK4(198, 51, 100, 0, 24), /* documents' */
    BLOCK4(203, 0, 113, 0, 24),  /* documents' */
    BLOCK4(224, 0, 0, 0, 4),     /* groups */
    BLOCK4(240, 0, 0, 0, 4),     /* reserved, and broadcast */
};

struct block6 {
	unsigned char base[16];
	unsigned bits;
};
static const struct block6 global6 = {{0x20}, 3};
static const struct block6 blocks6[] = {
    {{0x20, 0x01}, 23},             /* protocols': Teredo, ORCHID, benchmarks */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documents' */
    {{0x20, 0x02}, 16},             /* 6to4: an IPv4 address within */
    {{0x3f, 0xff}, 20},             /* documents' */
};

static bool is_in6(const unsigned char *address, const struct block6 *block)
{
	unsigned whole = block->bits / 8, rest = block->bits % 8;
	unsigned char mask = (unsigned char)(0xff00u >> rest);
	return memcmp(address, block->base, whole) == 0 &&
	       (!rest || (address[whole] & mask) == (block->base[whole] & mask));
}

static bool is_public4(uint32_t address)
{
	for (size_t i = 0; i < sizeof blocks4 / sizeof *blocks4; i++)
		if ((address ^ blocks4[i].base) >> (32 - blocks4[i].bits) == 0)
			return false;
	return true;
}

static bool is_public6(const unsigned char *address)
{
	for (size_t i = 0; i < sizeof blocks6 / sizeof *blocks6; i++)
		if (is_in6(address, &blocks6[i]))
			return false;
	return is_in6(address, &global6);
}

bool address_is_public(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET: {
		struct sockaddr_in in;
		memcpy(&in, address, sizeof in);
		return is_public4(ntohl(in.sin_addr.s_addr));
	}
	case AF_INET6: {
		struct sockaddr_in6 in6;
		memcpy(&in6, address, sizeof in6);
		return is_public6(in6.sin6_addr.s6_addr);
	}
	default: return false;
	}
}
