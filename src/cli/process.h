/* SPDX-License-Identifier: Apache-2.0 */
/* process.h -- what commands share that run until they are told to stop: their settings. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include "cli/cli.h"
#include "http/settings.h"

/* From the command line, the environment and the file. */
IBID_CHECK enum ibid_code process_settings(struct arena *arena, const struct args *args,
                                           struct settings *ret, struct ibid_err *err);

#endif
