/* SPDX-License-Identifier: Apache-2.0 */
/* log_writer.h -- log lines on their way to the standard error. */
#ifndef CLI_LOG_WRITER_H
#define CLI_LOG_WRITER_H

#include "base/log.h"

/* One for the process. It never waits for who reads the standard error. */
struct log log_writer_start(void);

/* Write what waits, for a second at most; what is logged afterwards is lost. False: nobody reads
 * the standard error, and whoever writes to it now may wait for ever. */
bool log_writer_end(void);

#endif
