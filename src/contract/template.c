/* SPDX-License-Identifier: Apache-2.0 */
/* template.c -- fill in what a contract declares, with the parameters of one command. */
#include "contract/template.h"

#include "base/canon.h"

#include <assert.h>
#include <string.h>

static void write_hole(struct str *out, const struct template_piece *piece, const char *text)
{
	size_t size = text ? strlen(text) : 0;
	if (!text)
		str_adds(out, "null");
	else if (piece->kind == PIECE_NUMBER)
		canon_number(out, text, size);
	else if (piece->kind == PIECE_TEXT)
		str_add_json(out, text, size);
	else
		str_add(out, text, size);
}

void template_write(struct str *out, const struct template *template, const char *const *values)
{
	for (size_t i = 0; i < template->count; i++) {
		const struct template_piece *piece = &template->pieces[i];
		if (piece->kind == PIECE_CONSTANT)
			str_adds(out, piece->text);
		else
			write_hole(out, piece, values[piece->param]);
	}
}

const char *value_text(const struct contract_value *value, const char *const *values)
{
	return value->text ? value->text : values[value->param];
}

/* ---- Conditions ----------------------------------------------------------------------------- */

static int compare_numbers(const char *a, const char *b)
{
	struct decimal left = {0}, right = {0};
	struct ibid_err err;
	enum ibid_code code = decimal_read(a, strlen(a), &left, &err);
	if (!code)
		code = decimal_read(b, strlen(b), &right, &err);
	assert(!code); /* fields_check and the contract's reader let nothing else through */
	(void)code;
	return decimal_cmp(left, right);
}

/* In UTC with as many digits of a second as are needed: without the Z, the texts are in the order
 * of time. */
static int compare_instants(const char *a, const char *b)
{
	size_t a_size = strcspn(a, "Z"), b_size = strcspn(b, "Z");
	int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
	return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare(enum field_type type, const char *a, const char *b)
{
	switch (type) {
	case FIELD_INTEGER:
	case FIELD_DECIMAL: return compare_numbers(a, b);
	case FIELD_INSTANT: return compare_instants(a, b);
	default: return strcmp(a, b); /* dates, too */
	}
}

bool reject_applies(const struct contract_reject *reject, const char *const *values)
{
	const char *left = value_text(&reject->left, values),
	           *right = value_text(&reject->right, values);
	if (!left || !right)
		return false;
	int order = compare(reject->type, left, right);
	switch (reject->relation) {
	case RELATION_EQUALS: return order == 0;
	case RELATION_NOT_EQUALS: return order != 0;
	case RELATION_BELOW: return order < 0;
	case RELATION_AT_MOST: return order <= 0;
	case RELATION_ABOVE: return order > 0;
	case RELATION_AT_LEAST: return order >= 0;
	}
	return false;
}
