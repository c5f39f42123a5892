/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h -- something that is paused, as answers show it. */
#ifndef HTTP_PAUSE_H
#define HTTP_PAUSE_H

#include "base/str.h"
#include "store/people.h"

void add_pause(struct str *out, const struct pause_row *row);

#endif
