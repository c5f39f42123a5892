/* SPDX-License-Identifier: Apache-2.0 */
/* address.h -- addresses of the public Internet, and all others. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* False: an address of this machine, of a private or local network, a multicast or documentation
 * address, one that stands for an IPv4 address (mapped, translated, tunnelled), or an address that
 * is neither IPv4 nor IPv6. */
bool address_is_public(const struct sockaddr *address);

#endif
