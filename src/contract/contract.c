/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c -- the questions a contract answers, and how a document becomes a contract. */
#include "contract/build.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* A text from a store has quotes around everything that the file left plain. */
enum { TEXT_BYTES_MAX = 8 * YAML_BYTES_MAX };

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define AT(member)   offsetof(struct contract, member)

static const char *const strategy_names[] = {[STRATEGY_NATURAL] = "natural",
                                             [STRATEGY_SET_ONCE] = "set-once",
                                             [STRATEGY_UNIQUE] = "unique",
                                             [STRATEGY_KEY] = "key",
                                             [STRATEGY_INBOX] = "inbox",
                                             [STRATEGY_VERSION] = "version",
                                             [STRATEGY_COMMUTATIVE] = "commutative",
                                             [STRATEGY_EXTERNAL] = "external",
                                             [STRATEGY_NONE] = "none",
                                             NULL};

#define CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Bit n of SCOPE_... is the n-th name. */
static const char *const scope_names[] = {"client", "actor", "resource", NULL};
_Static_assert(SCOPE_CLIENT == 1 << 0 && SCOPE_ACTOR == 1 << 1 && SCOPE_RESOURCE == 1 << 2,
               "the order of scope_names");

static const char *const source_answers[] = {"replay", "skip", "show", "refuse", NULL};
static const char *const failure_answers[] = {"retry", "final", NULL}; /* the flag is `final` */

#define SOURCE(index, name, question)                                                              \
	{                                                                                              \
		"duplicates.by_source." name, &type_choice_name, AT(duplicates.by_source[index]),          \
		    MEMBER_REQUIRED, question, .choices = source_answers                                   \
	}
#define FAILURE(name, class, question)                                                             \
	{                                                                                              \
		"failures." name, &type_choice_flag, AT(final[class]), MEMBER_REQUIRED, question,          \
		    .choices = failure_answers                                                             \
	}

/* clang-format off */
static const struct member command_members[] = {
	{"command", &type_name, AT(name), MEMBER_REQUIRED | MEMBER_OWN,
	 "What is the operation called?"},
	{"version", &type_int, AT(version), MEMBER_REQUIRED | MEMBER_OWN,
	 "Which version of this contract is it?",
	 "from 1 to 1000000, a new one for every change of meaning", .min = 1, .max = 1000000},
	{"fact", &type_text, AT(fact), MEMBER_REQUIRED | MEMBER_OWN,
	 "What becomes true in the business when it succeeds?"},
	{"owner", &type_name, AT(owner), MEMBER_REQUIRED,
	 "Which team is the source of truth for the fact and works on its exceptions?"},
	{"strategy", &type_choice, AT(strategy), MEMBER_REQUIRED,
	 "What makes a repetition harmless?", .choices = strategy_names},
	{"because", &type_text, AT(because), MEMBER_OWN,
	 "Why does it not matter how often it happens?", "strategy none only"},
	{"already", &type_file, AT(already), MEMBER_OWN,
	 "Which script returns the answer row where what is asked for holds already?",
	 "strategies natural, set-once and version"},
	{"state", &type_file, AT(state), MEMBER_OWN,
	 "Which script returns what is there, whatever is asked for?",
	 "strategies set-once, version and commutative"},
	{"guard", &type_guard, AT(guard), MEMBER_OWN,
	 "Which versions are applied?", "strategy version only"},
	{"route", &type_route, AT(route), MEMBER_OWN,
	 "Which HTTP request is it?"},
	{"key.from", &type_key_from, AT(key), MEMBER_REQUIRED,
	 "What identifies the intent, the same on every retry and different for every new intent?"},
	{"key.form", &type_choice, AT(key.form), 0,
	 "How are the fields written as a key?", "text when left out; only where fields make the key",
	 .choices = CHOICES("text", "uuid")},
	{"key.generated_by", &type_name, AT(key.generated_by), MEMBER_REQUIRED,
	 "Who makes the key, before the first attempt?"},
	{"key.scope", &type_bits, AT(key.scope), MEMBER_REQUIRED,
	 "Within what is the key unique?", "tenant and operation are always in", .choices = scope_names},
	{"key.retain", &type_duration, AT(key.retain_us), MEMBER_REQUIRED,
	 "How long must a duplicate be recognised?", "longer than any client or partner may retry"},
	{"key.replay_window", &type_duration, AT(key.replay_window_us), 0,
	 "For how long may a client, a broker or a person send it again?",
	 "the review compares it with key.retain"},
	{"key.after_expiry", &type_choice, AT(key.after_expiry), MEMBER_REQUIRED,
	 "What happens to a duplicate that comes after the key was forgotten?",
	 "run-again only where `unique` protects", .choices = CHOICES("refuse", "run-again")},
	{"fields", &type_fields, 0, 0,
	 "Which members does the payload have, and what may they hold?"},
	{"unknown_fields", &type_choice_flag, AT(refuse_unknown_fields), MEMBER_REQUIRED,
	 "What happens to members of the payload that are not declared?",
	 .choices = CHOICES("keep", "refuse")},
	{"payload", &type_choice, AT(payload), 0,
	 "What is kept of the payload?", "omit when left out; a field's `class` speaks for itself",
	 .choices = class_names},
	{"same_payload.ignore", &type_pointers, AT(same.ignore), 0,
	 "Which members differ from attempt to attempt without changing the meaning?"},
	{"same_payload.only", &type_pointers, AT(same.only), 0,
	 "Which members alone carry the meaning?", "all when left out"},
	{"same_payload.instants", &type_pointers, AT(same.instants), 0,
	 "Which texts are points in time, the same in every zone?"},
	{"same_payload.unordered", &type_pointers, AT(same.unordered), 0,
	 "Which lists mean the same in any order?"},
	{"same_payload.defaults", &type_defaults, AT(same), 0,
	 "What does a missing member stand for?"},
	{"same_payload.nfc", &type_flag, AT(same.nfc), 0,
	 "Do composed and decomposed characters mean the same?", "no when left out"},
	{"same_payload.context", &type_bits, AT(same.context), MEMBER_REQUIRED,
	 "Which parts besides the payload belong to its meaning?",
	 "tenant and operation are always in", .choices = scope_names},
	{"duplicates.completed", &type_choice, AT(duplicates.completed), MEMBER_REQUIRED,
	 "What does a duplicate of a completed command get?", .choices = CHOICES("replay")},
	{"duplicates.rejected", &type_choice, AT(duplicates.rejected), MEMBER_REQUIRED,
	 "What does a duplicate of a rejected command get?",
	 .choices = CHOICES("replay", "evaluate-again")},
	{"duplicates.rejected_other_payload", &type_choice, AT(duplicates.rejected_other_payload),
	 MEMBER_REQUIRED, "What if the key of a rejected command comes with another payload?",
	 .choices = CHOICES("conflict", "evaluate")},
	{"duplicates.in_progress", &type_progress, AT(duplicates), MEMBER_REQUIRED,
	 "What does a duplicate get while the first one is still running?"},
	{"duplicates.other_payload", &type_choice, AT(duplicates.other_payload), MEMBER_REQUIRED,
	 "What if the key comes with another payload?", .choices = CHOICES("conflict")},
	SOURCE(0, "client", "What does a client get that sends again because it saw no answer?"),
	SOURCE(1, "service", "What does a service get that retries internally?"),
	SOURCE(2, "broker", "What happens when a broker delivers again?"),
	SOURCE(3, "replay", "What happens when history is replayed?"),
	SOURCE(4, "human", "What does a person get who repeats the action?"),
	{"duplicates.evidence", &type_choice, AT(duplicates.evidence), MEMBER_REQUIRED,
	 "What is kept as evidence of a duplicate?", .choices = CHOICES("count", "each")},
	FAILURE("validation", REFUSAL_VALIDATION,
	        "Is an invalid payload a final answer for its key, or may the corrected one take the key?"),
	FAILURE("business", REFUSAL_BUSINESS, "Is a business rejection a final answer for its key?"),
	FAILURE("server", REFUSAL_SERVER,
	        "After a server failure before any effect, may the same key try again?"),
	{"answer.store", &type_choice, AT(answer), MEMBER_REQUIRED,
	 "How much of the answer is kept for duplicates?",
	 .choices = CHOICES("full", "reference", "status", "none")},
	{"answer.status", &type_int, AT(success.status), MEMBER_OWN,
	 "With which status is a success answered?",
	 "200 to 399; left out, the handler gives the answer", .min = 200, .max = 399},
	{"answer.body", &type_template, AT(success.body), MEMBER_OWN,
	 "What does the answer hold?", "with answer.status only"},
	{"answer.resource", &type_resource, AT(success), MEMBER_OWN,
	 "Which resource does the answer tell of?", "with answer.status only"},
	{"answer.location", &type_location, AT(location), MEMBER_OWN,
	 "Where is the resource found that the answer tells of?",
	 "the Location header; fields, resource_id and command_id in braces"},
	{"audit.retain", &type_duration, AT(audit_retain_us), MEMBER_REQUIRED,
	 "How long is the evidence kept?", "at least as long as the key"},
	{"unique", &type_unique, 0, 0,
	 "Which unique index guards the fact when it comes under a new key?"},
	{"serialize_by", &type_pointers, AT(serialize_by), 0,
	 "Which row do commands contend for?",
	 "lets them share a commit ([] for none); strategies that look at state hold it"},
	{"reject", &type_rejects, 0, MEMBER_OWN,
	 "When is it refused before anything is done?"},
	{"emits", &type_emits, 0, MEMBER_REQUIRED,
	 "Which events does it tell others?",
	 "a name: the handler makes the event; a mapping: it is made of parameters"},
	{"covers", &type_texts, AT(covers), MEMBER_REQUIRED | MEMBER_SOME,
	 "Which side effects does the key cover?", "at least one"},
	{"reconciled_by", &type_name, AT(reconciled_by), MEMBER_REQUIRED,
	 "Which reconciliation would find a missing or double effect?"},
	{"corrected_by", &type_name, AT(corrected_by), MEMBER_REQUIRED,
	 "Which operation corrects it legally, without deleting?"},
	{"handler", &type_handler, 0, MEMBER_REQUIRED | MEMBER_OWN,
	 "What runs?"},
	{"staged", &type_staged, AT(staged), MEMBER_OWN,
	 "Does the work call out, and is done between two transactions?", "no when left out"},
	{"on_unknown.severity", &type_choice_name, AT(unknown.severity), 0,
	 "How bad is it when nobody knows whether it was done?", "high when left out",
	 .choices = CHOICES("low", "medium", "high", "critical")},
	{"on_unknown.sla", &type_duration, AT(unknown.sla_us), 0,
	 "Within which time must a person have found out?", "4h when left out"},
	{"on_unknown.needs_approval", &type_flag, AT(unknown.needs_approval), 0,
	 "Does a second person approve what the first one found out?", "no when left out"},
	{"upstream", &type_upstream, AT(upstream), MEMBER_OWN,
	 "How is the service called that does the work, and what do its answers mean?",
	 "handler upstream only"},
};
/* clang-format on */

static const struct form command_form = {"command", "a command", command_members,
                                         COUNT(command_members)};

/* ---- Kinds ---------------------------------------------------------------------------------- */

static const struct {
	const struct form *form;
	void *(*begin)(struct reading *, struct contract *); /* where members go; NULL: the contract */
	void (*check_rules)(struct reading *, const struct contract *, const struct node *);
	void (*finish)(struct reading *, struct contract *);
} kinds[] = {
    [CONTRACT_COMMAND] = {.form = &command_form, .check_rules = command_check_rules},
    [CONTRACT_EVENT] = {.form = &event_form, .begin = event_begin, .finish = event_finish},
};

const char *contract_kind_name(enum contract_kind kind)
{
	return kinds[kind].form->kind;
}

static void list_kinds(struct str *out)
{
	for (size_t i = 0; i < COUNT(kinds); i++)
		str_addf(out, "%s%s", i ? ", " : "", kinds[i].form->kind);
}

/* The index of the kind that the document names, or -1 after a problem. */
static int kind_of(struct reading *reading, const struct node *root, bool from_store)
{
	for (size_t i = 0; i < COUNT(kinds); i++) {
		const struct node *name = node_member(root, kinds[i].form->kind);
		if (!name)
			continue;
		if (name != root->child && !from_store)
			PROBLEM_AT(reading->problems, name, "`%s` names the kind: it must be the first member",
			           name->name);
		return (int)i;
	}
	struct str known = STR_INIT(256);
	list_kinds(&known);
	if (root->type == NODE_MAP && root->child)
		PROBLEM_AT(reading->problems, root->child,
		           "`%s` is not a kind of contract that this version reads; the first member must "
		           "be one of: %s",
		           root->child->name, str_text(&known));
	else
		PROBLEM_AT(
		    reading->problems, root,
		    "a contract is a mapping of members to answers; the first member must be one of: %s",
		    str_text(&known));
	str_release(&known);
	return -1;
}

static bool seal(struct contract *contract, struct arena *arena, const struct node *root)
{
	struct str text = STR_INIT(TEXT_BYTES_MAX);
	node_write(&text, root);
	contract->text = text.failed ? NULL : arena_strndup(arena, str_text(&text), text.size);
	contract->digest = sha256(str_text(&text), text.size);
	str_release(&text);
	arena->failed |= !contract->text;
	return contract->text;
}

struct contract *contract_build(struct reading *reading, const struct node *root,
                                const struct node *defaults, bool from_store)
{
	size_t before = reading->problems->found;
	int kind = kind_of(reading, root, from_store);
	struct contract *contract = arena_alloc(reading->arena, sizeof *contract);
	if (kind < 0 || !contract)
		return NULL;
	*contract = (struct contract){
	    .kind = (enum contract_kind)kind, .file = "", .route = "", .payload = CLASS_OMIT};
	reading->contract = contract;
	root = form_merge(reading->arena, kinds[kind].form, root, defaults, &contract->inherited);
	void *members = kinds[kind].begin ? kinds[kind].begin(reading, contract) : contract;
	if (!root || !members)
		return NULL;
	form_read(reading, kinds[kind].form, "", root, members);
	if (kinds[kind].check_rules)
		kinds[kind].check_rules(reading, contract, root);
	if (kinds[kind].finish)
		kinds[kind].finish(reading, contract);
	if (reading->problems->found != before || !seal(contract, reading->arena, root))
		return NULL;
	return contract;
}

void contract_check_defaults(struct problems *problems, const struct node *defaults)
{
	const struct form *forms[COUNT(kinds)];
	for (size_t i = 0; i < COUNT(kinds); i++)
		forms[i] = kinds[i].form;
	form_check_defaults(problems, forms, COUNT(kinds), defaults);
}

enum ibid_code contract_from_text(struct arena *arena, const char *text, struct contract **ret,
                                  struct ibid_err *err)
{
	struct node *root = NULL;
	struct yaml_error where;
	struct problems *problems = arena_alloc(arena, sizeof *problems);
	if (!problems)
		return err_set(err, IBID_NOMEM, "out of memory");
	problems->arena = arena;
	struct reading reading = {.arena = arena, .problems = problems, .kept = true};
	enum ibid_code code = yaml_read(arena, "stored contract", text, strlen(text), TEXT_BYTES_MAX,
	                                &root, &where);
	if (code == IBID_NOMEM)
		return err_set(err, code, "out of memory");
	if (code)
		return err_set(err, IBID_CONTRACT, "stored contract:%d: %s", where.line, where.text);
	struct contract *contract = contract_build(&reading, root, NULL, true);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!contract) {
		assert(problems->count > 0);
		return err_set(err, IBID_CONTRACT, "stored contract: %s", problems->items[0].text);
	}
	*ret = contract;
	return IBID_OK;
}

/* ---- Words ---------------------------------------------------------------------------------- */

const char *builtin_param_name(enum builtin_param param)
{
	static const char *const names[] = {
#define BUILTIN_PARAM_NAME(name) [BUILTIN_##name] = #name,
	    BUILTIN_PARAMS(BUILTIN_PARAM_NAME)
#undef BUILTIN_PARAM_NAME
	};
	return names[param];
}

const char *contract_strategy_name(enum contract_strategy strategy)
{
	return strategy_names[strategy];
}

const struct contract_field *contract_field_at(const struct contract *contract, const char *pointer)
{
	for (size_t i = 0; i < contract->field_count; i++)
		if (strcmp(contract->fields[i].pointer, pointer) == 0)
			return &contract->fields[i];
	return NULL;
}

const char *contract_duration(struct arena *arena, int64_t us)
{
	static const struct {
		int64_t us;
		const char *unit;
	} units[] = {{INT64_C(31536000000000), "y"},
	             {INT64_C(604800000000), "w"},
	             {INT64_C(86400000000), "d"},
	             {INT64_C(3600000000), "h"},
	             {INT64_C(60000000), "m"},
	             {INT64_C(1000000), "s"},
	             {1000, "ms"}};
	for (size_t i = 0; us > 0 && i < COUNT(units); i++)
		if (us % units[i].us == 0)
			return arena_printf(arena, "%lld%s", (long long)(us / units[i].us), units[i].unit);
	return arena_printf(arena, "%lldus", (long long)us);
}

void contract_reference(struct str *out)
{
	str_adds(out, "### A command\n\n");
	form_reference(out, &command_form);
	str_adds(out, "\n### An event\n\n");
	form_reference(out, &event_form);
	str_adds(out, "\n### A field, below `fields`\n\n");
	form_reference(out, &field_form);
	str_adds(out, "\n### A unique index, below `unique`\n\n");
	form_reference(out, &unique_form);
	str_adds(out, "\n### An event that is declared, below `emits`\n\n");
	form_reference(out, &emit_form);
	str_adds(out, "\n### A rule that rejects, below `reject`\n\n");
	form_reference(out, &reject_form);
	str_adds(out, "\n### A script, below `handler`\n\n");
	form_reference(out, &handler_form);
	str_adds(out, "\n### A version guard, below `guard`\n\n");
	form_reference(out, &guard_form);
	str_adds(out, "\n### A staged command, below `staged`\n\n");
	form_reference(out, &staged_form);
	str_adds(out, "\n### Work that another service does, below `upstream`\n\n");
	form_reference(out, &upstream_form);
	str_adds(out, "\n### An inquiry, below `upstream.inquiry`\n\n");
	form_reference(out, &inquiry_form);
}
