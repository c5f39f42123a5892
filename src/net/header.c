/* SPDX-License-Identifier: Apache-2.0 */
#include "net/header.h"

static const bool in_token[256] = {
    ['!'] = true,         ['#'] = true,         ['$'] = true,         ['%'] = true, ['&'] = true,
    ['\''] = true,        ['*'] = true,         ['+'] = true,         ['-'] = true, ['.'] = true,
    ['^'] = true,         ['_'] = true,         ['`'] = true,         ['|'] = true, ['~'] = true,
    ['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true,
};

bool header_name_byte_ok(char byte)
{
	return in_token[(unsigned char)byte];
}

bool header_name_ok(const char *name)
{
	const char *at = name;
	while (in_token[(unsigned char)*at])
		at++;
	return at > name && !*at;
}

bool header_value_ok(const char *value)
{
	for (; *value; value++)
		if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
			return false;
	return true;
}
