/* SPDX-License-Identifier: Apache-2.0 */
/* route.h -- which request means what: paths with parameters in braces. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "contract/contract.h"
#include "desk/action.h"

struct request;

/* A parameter behind the question mark. */
struct route_query {
	const char *name, *schema, *meaning; /* the schema as JSON */
	enum {
		QUERY_ALWAYS,
		QUERY_RESOURCE,        /* where the contract's scope has the resource; it is needed */
		QUERY_RESOURCE_UNSAID, /* where the contract asks for it, and its route has no parameters */
	} when;
};

enum { ROUTE_PARAMS_MAX = 8 };

/* What a person does by a request (act.c). */
struct route_action {
	enum {
		FORM_NONE,
		FORM_ASSIGN, /* the exception in the path; likewise: */
		FORM_RESOLVE,
		FORM_DECIDE,
		FORM_EVENT, /* the event in the path, at the destination that the body names */
		FORM_PAUSE, /* what the body names */
	} form;         /* of the body */
	enum action_verb verb;
	const char *action; /* ACTION_DO; NULL: the body names it */
};

struct route {
	const char *method;
	const char *path;                /* "/cases/{caseId}/escalations" */
	void (*run)(struct request *);   /* gives the answer, now or later */
	const struct contract *contract; /* of a command's own route; else NULL */
	struct route_action act;         /* run_action's */
	bool takes_body;
	bool open;         /* needs no principal */
	bool proven;       /* needs a token, also where requests without one are let in */
	unsigned roles;    /* enum token_role: whoever has one of them may; of an open one: 0 */
	bool waits;        /* what it shows may have no outcome yet: Retry-After */
	unsigned problems; /* bits of enum problem_kind, besides those of every route */
	const char *summary;

	/* For the OpenAPI document, of the server's own: */
	const char *id, *document;         /* `document`: schema of what it shows, as JSON */
	const char *media;                 /* of the document; NULL: JSON */
	const char *body;                  /* schema of what is sent, as JSON; NULL: a command's */
	const struct route_query *queries; /* ended by one without a name; NULL: none */
};

struct routes {
	struct arena arena;
	const struct route *items;
	size_t count;
	const struct route *pass; /* to the service behind the server; behind the items, not of them */
	const char *prefix;       /* of the server's own, but for /problems */
};

/* The server's own and those of the contracts. IBID_CONTRACT when two lead to the same place. */
IBID_CHECK enum ibid_code routes_make(const struct contracts *contracts, const char *prefix,
                                      struct routes *ret, struct ibid_err *err);
void routes_release(struct routes *routes);

/* The name of the parameter at `*at` in a path ("{caseId}"); moves behind it. False: there is none.
 */
bool route_param(const char **at, const char **ret_name, size_t *ret_size);

/* Percent-decoded. NULL: a bad escape, a NUL in it, no UTF-8, or no memory. */
char *route_decode(struct arena *arena, const char *text, size_t size);

/* Find the route. Values of its parameters go to `values`, percent-decoded, in `arena`. NULL when
 * there is none: `*ret_allow` lists the methods of the path, or is NULL when no route has it.
 * `*ret_bad`: the path can't be decoded. */
const struct route *routes_find(const struct routes *routes, const char *method, const char *path,
                                struct arena *arena, const char *values[ROUTE_PARAMS_MAX],
                                const char **ret_allow, bool *ret_bad);

/* Could somebody who is less strict take this path for one of a contract's with the same method?
 * Letters of another case, a slash at the end, and what stands behind a dot, a semicolon or an
 * escape in a segment. */
bool routes_resemble(const struct routes *routes, const char *method, const char *path);

/* routes.c's table of the server's own, by the modules that run them. */
void run_health(struct request *request);
void run_ready(struct request *request);
void run_metrics(struct request *request);
void run_problem(struct request *request);
void show_openapi(struct request *request);
void pass_on(struct request *request);     /* whole: suspends it until there is an answer's head */
void run_command(struct request *request); /* a contract's route */
void run_operation(struct request *request); /* POST /v1/commands/{operation} */
void show_operation(struct request *request);
void show_command(struct request *request);
void list_commands(struct request *request);
void list_exceptions(struct request *request);
void show_exception(struct request *request);
void list_pauses(struct request *request);
void run_action(struct request *request); /* whatever a person does */
void list_outbox(struct request *request);
void show_outbox_event(struct request *request);

#endif
