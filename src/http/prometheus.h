/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus.h -- numbers in Prometheus' text format. */
#ifndef HTTP_PROMETHEUS_H
#define HTTP_PROMETHEUS_H

#include "base/str.h"

#include <stdint.h>

void prom_family(struct str *out, const char *name, const char *type, const char *help);
void prom_number(struct str *out, const char *name, const char *type, const char *help,
                 int64_t number); /* a family of one, without labels; likewise: */
void prom_seconds(struct str *out, const char *name, const char *help, int64_t us);
void prom_label(struct str *out, const char *name, const char *value);
void prom_us(struct str *out, int64_t us); /* as seconds */

/* What is told of every process. */
void prom_process(struct str *out, int64_t began_us);

#endif
