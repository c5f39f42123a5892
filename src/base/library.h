/* SPDX-License-Identifier: Apache-2.0 */
/* library.h -- a library that this process runs with: pinned, of the version that ibid's build
 * fetched, or the system's. IBID_PINNED is defined for what is compiled against either. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdbool.h>

struct library {
	const char *name, *version;
	bool pinned;
};

static inline const char *library_origin(const struct library *library)
{
	return library->pinned ? "pinned" : "the system's";
}

#endif
