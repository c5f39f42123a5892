/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- what is paused. Event types of another tenant are as if they were not. */
#include "base/obj.h"
#include "http/act.h"
#include "http/document.h"
#include "http/failure.h"

void add_pause(struct str *out, const struct pause_row *row)
{
	obj_begin(out, NULL, '{');
	obj_text(out, "kind", pause_kind_name(row->kind));
	if (*row->name)
		obj_text(out, "name", row->name);
	obj_text(out, "source", pause_source_name(row->source));
	obj_text(out, "by", row->by);
	obj_text(out, "reason", row->reason);
	add_time(out, "since", row->since_us);
	obj_end(out, '}');
}

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
		obj_begin(&out, "items", '[');
		for (size_t i = 0; i < count; i++)
			add_pause(&out, &rows[i]);
		obj_end(&out, ']');
		obj_end(&out, '}');
		answer_document(request, &out);
	}
	request_answered(request);
}

void list_pauses(struct request *request)
{
	request_hand_on(request, look_through);
}
