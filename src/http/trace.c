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

static enum MHD_Result look_at(void *user, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
	struct origin *origin = user;
	const struct {
		const char *name;
		struct found *found;
	} wanted[] = {
	    {"Correlation-Id", &origin->correlation},
	    {"Causation-Id", &origin->causation},
	    {"traceparent", &origin->traceparent},
	};
	(void)kind;
	if (!strchr("CcTt", *name)) /* of most headers it is enough to see the first letter */
		return MHD_YES;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		if (strcasecmp(name, wanted[i].name) != 0)
			continue;
		wanted[i].found->value = value ? value : "";
		wanted[i].found->count++;
	}
	if (strcasecmp(name, "tracestate") == 0)
		add_tracestate(&origin->tracestate, value ? value : "");
	return MHD_YES;
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
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, look_at, &origin);
	request->correlation_id = only(&origin.correlation);
	request->causation_id = only(&origin.causation);
	const char *traceparent = only(&origin.traceparent);
	if (traceparent && traceparent_read(traceparent, &parent))
		begin_span(request, &parent, &origin.tracestate);
	str_release(&origin.tracestate);
}

void trace_answer(const struct request *request, struct MHD_Response *response)
{
	if (request->correlation_id)
		MHD_add_response_header(response, "Correlation-Id", request->correlation_id);
	if (request->causation_id)
		MHD_add_response_header(response, "Causation-Id", request->causation_id);
	if (request->trace)
		MHD_add_response_header(response, "traceresponse", request->trace->traceparent);
}
