/* SPDX-License-Identifier: Apache-2.0 */
#include "net/header.h"

#include <string.h>

bool header_name_ok(const char *name)
{
	return *name && !name[strspn(name, "!#$%&'*+-.^_`|~0123456789"
	                                   "abcdefghijklmnopqrstuvwxyz"
	                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

bool header_value_ok(const char *value)
{
	for (; *value; value++)
		if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
			return false;
	return true;
}
