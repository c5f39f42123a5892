/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h -- what the unit tests share: cmocka with its headers, and numbers from a seed. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/env.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* 0 .. below-1 */
static inline size_t pick(struct env_virtual *random, size_t below)
{
	uint64_t value;
	env_random(&random->env, &value, sizeof value);
	return (size_t)(value % below);
}

#endif
