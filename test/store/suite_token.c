/* SPDX-License-Identifier: Apache-2.0 */
/* suite_token.c -- tokens. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <stdio.h>
#include <string.h>

static struct token_row token_of(unsigned n, const char *tenant)
{
	struct token_row row = {
	    .tenant = tenant,
	    .client = "web ü",
	    .roles = ROLE_CLIENT | ROLE_ADMIN,
	    .created_by = "ann",
	    .created_us = now_us + n,
	    .expires_us = now_us + 4000000,
	};
	snprintf(row.token.id, sizeof row.token.id, "%016x", 99 - n); /* ids tell nothing about age */
	row.token.digest = sha256(row.token.id, TOKEN_ID_SIZE - 1);
	return row;
}

static void put_token(struct bed *bed, const struct token_row *row)
{
	check(bed, store_put_token(bed->store, row, &bed->err));
}

static struct token_row get_token(struct bed *bed, const char *id)
{
	struct token_row row;
	check(bed, store_get_token(bed->store, &bed->arena, id, &row, &bed->err));
	return row;
}

static void assert_token(const struct token_row *got, const struct token_row *expected)
{
	assert_text(got->token.id, expected->token.id);
	assert_memory_equal(&got->token.digest, &expected->token.digest, sizeof got->token.digest);
	assert_text(got->tenant, expected->tenant);
	assert_text(got->client, expected->client);
	assert_int_equal(got->roles, expected->roles);
	assert_text(got->created_by, expected->created_by);
	assert_true(got->created_us == expected->created_us);
	assert_true(got->expires_us == expected->expires_us);
	assert_true(got->revoked_us == expected->revoked_us);
	assert_text(got->revoked_by, expected->revoked_by);
}

void token_comes_back_whole_and_its_id_is_taken(void **state) /* K05 */
{
	struct bed *bed = bed_of(state);
	struct token_row row = token_of(1, "acme"), bare = token_of(2, "other"), got;
	bare.roles = ROLE_OPERATOR;
	bare.expires_us = 0;
	put_token(bed, &row);
	put_token(bed, &bare);
	got = get_token(bed, row.token.id);
	assert_token(&got, &row);
	got = get_token(bed, bare.token.id);
	assert_token(&got, &bare);
	struct token_row taken = bare;
	memcpy(taken.token.id, row.token.id, sizeof taken.token.id);
	assert_int_equal(store_put_token(bed->store, &taken, &bed->err), IBID_RETRY);
	got = get_token(bed, row.token.id);
	assert_token(&got, &row);
	assert_int_equal(store_get_token(bed->store, &bed->arena, "", &got, &bed->err), IBID_NOT_FOUND);
}

void token_is_revoked_once_and_for_good(void **state) /* K05 */
{
	struct bed *bed = bed_of(state);
	struct token_row row = token_of(1, "acme"), other = token_of(2, "acme"), got;
	const char *id = row.token.id;
	put_token(bed, &row);
	put_token(bed, &other);
	row.revoked_us = now_us + 7;
	row.revoked_by = "ben";
	check(bed, store_revoke_token(bed->store, id, "ben", now_us + 7, &bed->err));
	check(bed, store_revoke_token(bed->store, id, "eve", now_us + 8, &bed->err));
	got = get_token(bed, id);
	assert_token(&got, &row);
	got = get_token(bed, other.token.id);
	assert_token(&got, &other);
	assert_int_equal(store_revoke_token(bed->store, "0000000000000000", "ben", now_us, &bed->err),
	                 IBID_NOT_FOUND);
}

static size_t list_tokens(struct bed *bed, struct token_filter filter, struct token_row **ret)
{
	size_t listed = 0;
	check(bed, store_list_tokens(bed->store, &bed->arena, &filter, ret, &listed, &bed->err));
	return listed;
}

void tokens_are_listed_newest_first_page_by_page(void **state) /* K05 */
{
	struct bed *bed = bed_of(state);
	struct token_row rows[5], *listed = NULL;
	for (unsigned n = 0; n < 5; n++) {
		rows[n] = token_of(n, n == 2 ? "other" : "acme");
		rows[n].created_us = now_us + n / 2; /* two of them at one instant */
		put_token(bed, &rows[n]);
	}
	static const unsigned order[] = {4, 2, 3, 0, 1};
	assert_int_equal(list_tokens(bed, (struct token_filter){.limit = 9}, &listed), 5);
	for (size_t i = 0; i < 5; i++)
		assert_token(&listed[i], &rows[order[i]]);
	const char *after = NULL;
	for (size_t i = 0; i < 5; i++) {
		struct token_filter page = {.after = after, .limit = 1};
		assert_int_equal(list_tokens(bed, page, &listed), 1);
		assert_token(&listed[0], &rows[order[i]]);
		after = listed[0].token.id;
	}
	assert_int_equal(list_tokens(bed, (struct token_filter){.after = after, .limit = 1}, &listed),
	                 0);
	assert_int_equal(
	    list_tokens(bed, (struct token_filter){.tenant = "other", .limit = 9}, &listed), 1);
	assert_token(&listed[0], &rows[2]);
	assert_int_equal(list_tokens(bed, (struct token_filter){.after = "-", .limit = 9}, &listed), 0);
}
