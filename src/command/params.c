/* SPDX-License-Identifier: Apache-2.0 */
#include "command/params.h"

static const char *given(const char *text)
{
	return *text ? text : NULL;
}

static const char *tenant_of(const struct ibid_work *work)
{
	return work->identity->tenant;
}
static const char *key_text_of(const struct ibid_work *work)
{
	return work->identity->key;
}
static const char *actor_of(const struct ibid_work *work)
{
	return given(work->sender->actor);
}
static const char *client_of(const struct ibid_work *work)
{
	return given(work->sender->client);
}
static const char *resource_of(const struct ibid_work *work)
{
	return given(work->sender->resource);
}
static const char *now_of(const struct ibid_work *work)
{
	return work->now;
}
static const char *command_id_of(const struct ibid_work *work)
{
	return work->command_id;
}
static const char *payload_of(const struct ibid_work *work)
{
	return work->payload;
}

static const struct {
	enum param_type type;
	const char *(*value)(const struct ibid_work *work);
} builtins[BUILTIN_PARAM_COUNT] = {
    [BUILTIN_tenant] = {PARAM_TEXT, tenant_of},
    [BUILTIN_key] = {PARAM_TEXT, key_text_of},
    [BUILTIN_actor] = {PARAM_TEXT, actor_of},
    [BUILTIN_client] = {PARAM_TEXT, client_of},
    [BUILTIN_now] = {PARAM_INSTANT, now_of},
    [BUILTIN_command_id] = {PARAM_UUID, command_id_of},
    [BUILTIN_resource] = {PARAM_TEXT, resource_of},
    [BUILTIN_payload] = {PARAM_JSON, payload_of},
};
enum { BUILTINS = BUILTIN_PARAM_COUNT, BUILTINS_KEPT = BUILTIN_resource };

static const enum param_type types[] = {
    [FIELD_TEXT] = PARAM_TEXT,       [FIELD_INTEGER] = PARAM_INTEGER,
    [FIELD_DECIMAL] = PARAM_DECIMAL, [FIELD_BOOLEAN] = PARAM_BOOLEAN,
    [FIELD_DATE] = PARAM_DATE,       [FIELD_INSTANT] = PARAM_INSTANT,
    [FIELD_JSON] = PARAM_JSON,
};

enum ibid_code params_specs(struct arena *arena, const struct contract *contract,
                            struct param_spec **ret, size_t *ret_count, struct ibid_err *err)
{
	size_t own = contract ? BUILTINS : BUILTINS_KEPT;
	size_t count = own + (contract ? contract->field_count : 0);
	struct param_spec *specs = arena_array(arena, count, sizeof *specs);
	if (!specs)
		return err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; i < own; i++)
		specs[i] = (struct param_spec){builtin_param_name((enum builtin_param)i), builtins[i].type};
	for (size_t i = own; i < count; i++) {
		const struct contract_field *field = &contract->fields[i - own];
		specs[i] = (struct param_spec){field->name, types[field->type]};
	}
	*ret = specs;
	*ret_count = count;
	return IBID_OK;
}

const char *const *params_values(const struct ibid_work *work)
{
	const char **values = arena_array(work->arena, BUILTINS + work->params.count, sizeof *values);
	if (!values)
		return NULL;
	for (size_t i = 0; i < BUILTINS; i++)
		values[i] = builtins[i].value(work);
	for (size_t i = 0; i < work->params.count; i++)
		values[BUILTINS + i] = work->params.items[i].text;
	return values;
}
