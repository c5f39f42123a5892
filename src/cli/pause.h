/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h -- something that is paused, as the command line shows it. */
#ifndef CLI_PAUSE_H
#define CLI_PAUSE_H

#include "base/str.h"
#include "outbox/pause.h"

/* "destination kafka-main since 2026-05-04T10:02:00Z, by anna: the broker is moved". */
const char *pause_line(struct arena *arena, const struct pause_row *row);

/* What keeps an event from going, with what ends it. */
void pause_say(struct arena *arena, const struct pause_row *row);

#endif
