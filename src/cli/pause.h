/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h -- something that is paused, as the command line shows it. */
#ifndef CLI_PAUSE_H
#define CLI_PAUSE_H

#include "base/str.h"
#include "store/store.h"

void pause_json(struct str *out, struct arena *arena, const struct pause_row *row);

/* "destination kafka-main since 2026-05-04T10:02:00Z, by anna: the broker is moved". */
const char *pause_line(struct arena *arena, const struct pause_row *row);

#endif
