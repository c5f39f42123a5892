/* SPDX-License-Identifier: Apache-2.0 */
/* act.h -- requests by which people act, and what they are shown. */
#ifndef HTTP_ACT_H
#define HTTP_ACT_H

#include "http/request.h"

/* A whole exception, as GET shows it (exception.c). */
void answer_exception(struct request *request, const struct uuid *id);

#endif
