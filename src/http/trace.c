/* SPDX-License-Identifier: Apache-2.0 */
#include "http/trace.h"

#include <string.h>
#include <strings.h>

struct found {
	const char *value;
	int count;
};

/* What the headers say, found in one walk through them. */
struct origin {
	struct found correlation, causation, traceparent;
	struct str tracestate; /* its lines, joined by commas */
};

static void add_tracestate(struct str *out, const char *value)
{
	if (!*value)
		return;
	if (out->size)
		str_addc(out, ',');
	for (; *value; value++)
		str_addc(out, *value == '\t' ? ' ' : *value); /* blanks around commas may be tabs */
}

static void look_at(struct origin *origin, const char *name, const char *value)
{
	const struct {
		const char *name;
		struct found *found;
	} wanted[] = {
	    {"Correlation-Id", &origin->correlation},
	    {"Causation-Id", &origin->causation},
	    {"traceparent", &origin->traceparent},
	};
	if (!strchr("CcTt", *name)) /* of most headers it is enough to see the first letter */
		return;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		if (strcasecmp(name, wanted[i].name) != 0)
			continue;
		wanted[i].found->value = value;
		wanted[i].found->count++;
	}
	if (strcasecmp(name, "tracestate") == 0)
		add_tracestate(&origin->tracestate, value);
}

static const char *only(const struct found *found)
{
	return found->count == 1 ? found->value : NULL;
}

static void begin_span(struct request *request, const struct traceparent *parent,
                       const struct str *tracestate)
{
	struct request_trace *trace = arena_alloc(&request->arena, sizeof *trace);
	if (!trace)
		return;
	*trace = (struct request_trace){.span = *parent};
	traceparent_descend(&trace->span, request->server->env);
	traceparent_write(&trace->span, trace->traceparent);
	const char *state = tracestate->failed ? "" : str_text(tracestate);
	if (*state && tracestate_fits(state))
		trace->tracestate = arena_strdup(&request->arena, state);
	request->trace = trace;
}

void trace_read(struct request *request)
{
	struct origin origin = {.tracestate = STR_INIT(TRACESTATE_BYTES_MAX + 1)};
	struct traceparent parent;
	const struct head *head = client_head(request->client);
	for (size_t i = 0; i < head->count; i++)
		look_at(&origin, head->fields[i].name, head->fields[i].value);
	request->correlation_id = only(&origin.correlation);
	request->causation_id = only(&origin.causation);
	const char *traceparent = only(&origin.traceparent);
	if (traceparent && traceparent_read(traceparent, &parent))
		begin_span(request, &parent, &origin.tracestate);
	str_release(&origin.tracestate);
}

void trace_answer(const struct request *request)
{
	struct client *client = request->client;
	if (request->correlation_id)
		client_header(client, "Correlation-Id", request->correlation_id);
	if (request->causation_id)
		client_header(client, "Causation-Id", request->causation_id);
	if (request->trace)
		client_header(client, "traceresponse", request->trace->traceparent);
}
