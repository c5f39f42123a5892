/* SPDX-License-Identifier: Apache-2.0 */
/* ready.c -- could a command commit now? */
#include "store/sqlite/lite.h"

enum ibid_code lite_ready(struct store *base, struct ibid_err *err)
{
	return lite_file_look(lite_of(base), err);
}
