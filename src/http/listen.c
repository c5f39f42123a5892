/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listen.h"

#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum ibid_code listen_address(const char *setting, const char *listen, struct sockaddr_storage *ret,
                              struct ibid_err *err)
{
	char host[256];
	const char *colon = strrchr(listen, ':');
	size_t size = colon ? (size_t)(colon - listen) : 0;
	bool brackets = size > 2 && listen[0] == '[' && listen[size - 1] == ']';
	struct addrinfo hints = {.ai_flags = AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	if (!size || size >= sizeof host || !digits || digits > 5 || colon[1 + digits] ||
	    atoi(colon + 1) > UINT16_MAX)
		return err_set(err, IBID_INVALID,
		               "%s is `%s`: it must be an address and a port (65535 at most), such as "
		               "127.0.0.1:8080",
		               setting, listen);
	snprintf(host, sizeof host, "%.*s", (int)(brackets ? size - 2 : size), listen + brackets);
	int failed = getaddrinfo(host, colon + 1, &hints, &found);
	if (failed)
		return err_set(err, IBID_INVALID, "%s is `%s`: %s", setting, listen, gai_strerror(failed));
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return IBID_OK;
}
