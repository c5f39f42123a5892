/* SPDX-License-Identifier: Apache-2.0 */
/* process.h -- what commands share that run until they are told to stop: settings and logs. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include "cli/cli.h"
#include "http/settings.h"

/* From the command line, the environment and the file. */
IBID_CHECK enum ibid_code process_settings(struct arena *arena, const struct args *args,
                                           struct settings *ret, struct ibid_err *err);

/* One line for each thing that happens, on the standard error, for whoever collects logs. */
struct log process_log(void);

#endif
