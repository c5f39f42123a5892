/* SPDX-License-Identifier: Apache-2.0 */
/* build.h -- from a tree to a contract. */
#ifndef CONTRACT_BUILD_H
#define CONTRACT_BUILD_H

#include "contract/form.h"

/* Read one document as a contract; `defaults` may be NULL. In a file the first member names the
 * kind; in a text from a store the members are sorted. NULL when any problem was found (or memory
 * is exhausted: the arena says so). `reading->scripts` lists the files that the contract needs. */
struct contract *contract_build(struct reading *reading, const struct node *root,
                                const struct node *defaults, bool from_store);

/* Refuse members of defaults.yaml that no kind of contract may inherit. */
void contract_check_defaults(struct problems *problems, const struct node *defaults);

/* Read one member of a command that has a shape of its own. */
extern const struct member_type type_key_from, type_fields, type_defaults, type_progress,
    type_unique, type_handler, type_route, type_staged, type_file, type_guard, type_location,
    type_upstream, type_emits, type_rejects, type_template, type_resource, type_rows;

/* The choices of `payload` and of a field's `class`. */
extern const char *const class_names[];

/* Report answers that contradict each other, and keys that do not identify an intent. `root` is the
 * tree that the contract was read from; members that could not be read are zero. */
void command_check_rules(struct reading *reading, const struct contract *contract,
                         const struct node *root);

/* Check the members that the strategy needs or excludes: strategy.c. */
void command_check_strategy(struct reading *reading, const struct contract *contract,
                            const struct node *root);

/* Check that the template names only values that a retry also has: location.c. */
void command_check_location(struct reading *reading, const struct contract *contract,
                            const struct node *root);

/* What is declared of a success, and of refusals, is for scripts: declared.c. */
void command_check_declared(struct reading *reading, const struct contract *contract,
                            const struct node *root);

/* Check the members that `handler: upstream` needs or excludes: upstream.c. */
void command_check_upstream(struct reading *reading, const struct contract *contract,
                            const struct node *root);

/* The same for an event: event.c. */
extern const struct form event_form;
void *event_begin(struct reading *reading, struct contract *contract); /* NULL: no memory */
void event_finish(struct reading *reading, struct contract *contract);

/* The forms below `fields`, `unique`, `emits`, `reject`, `handler`, `guard`, `staged`, `upstream`
 * and `upstream.inquiry`, for the reference. */
extern const struct form field_form, unique_form, emit_form, reject_form, handler_form, guard_form,
    staged_form, upstream_form, inquiry_form;

#endif
