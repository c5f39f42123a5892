/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- what is paused. Event types of another tenant are as if they were not. */
#include "base/obj.h"
#include "http/document.h"
#include "http/failure.h"
#include "http/request.h"

static void look_through(void *user)
{
	struct request *request = user;
	struct store *store = store_of(request);
	struct pause_row *rows = NULL;
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	struct ibid_err err = {0};
	size_t count = 0;
	if (store_list_pauses(store, &request->arena, request->principal.tenant, &rows, &count, &err)) {
		failure_answer(request, &err);
	} else {
		obj_begin(&out, NULL, '{');
		row_add_list(&out, "items", &pause_shape, rows, count, ROW_SHARED);
		obj_end(&out, '}');
		answer_document(request, &out);
	}
	request_answered(request);
}

void list_pauses(struct request *request)
{
	request_hand_on(request, look_through);
}
