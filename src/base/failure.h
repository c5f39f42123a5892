/* SPDX-License-Identifier: Apache-2.0 */
/* failure.h -- the nine classes of failure, which decide what may be done next (F01). */
#ifndef BASE_FAILURE_H
#define BASE_FAILURE_H

#include "base/words.h"

/* X(symbol, name, meaning). */
#define FAILURE_CLASSES(X)                                                                         \
	X(TRANSIENT, "transient", "nothing was done; it may work later")                               \
	X(CAPACITY, "capacity", "the other side is busy; it works later, and more slowly")             \
	X(PERMANENT, "permanent", "it fails every time until somebody changes something")              \
	X(BUSINESS, "business", "well-formed, and refused by a rule of the business")                  \
	X(SECURITY, "security", "not allowed: credentials, permissions, certificates")                 \
	X(DUPLICATE, "duplicate", "it was done before")                                                \
	X(CONFLICT, "conflict", "somebody else changed or owns it")                                    \
	X(POISON, "poison", "it can't be read or written at all: malformed, too large")                \
	X(UNKNOWN, "unknown", "it was sent and nobody knows whether it was done")
enum failure_class {
#define FAILURE_CLASS_ENUM(symbol, name, meaning) FAILURE_##symbol,
	FAILURE_CLASSES(FAILURE_CLASS_ENUM)
#undef FAILURE_CLASS_ENUM
	    FAILURE_CLASS_COUNT
};
const char *failure_class_name(enum failure_class class); /* as the stores keep it */
bool failure_class_read(const char *name, enum failure_class *ret);
extern struct words failure_class_words;

#endif
