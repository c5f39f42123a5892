/* SPDX-License-Identifier: Apache-2.0 */
/* build.h -- from a tree to a contract. */
#ifndef CONTRACT_BUILD_H
#define CONTRACT_BUILD_H

#include "contract/form.h"

/* Read one document as a contract; `defaults` may be NULL. In a file the first member names the
 * kind; in a text from a store the members are sorted. NULL when any problem was found (or memory
 * is exhausted: the arena says so). `reading->scripts` then names the files it needs. */
struct contract *contract_build(struct reading *reading, const struct node *root,
                                const struct node *defaults, bool from_store);

/* Refuse what no kind of contract may inherit. */
void contract_check_defaults(struct problems *problems, const struct node *defaults);

/* Read one member of a command that has a shape of its own. */
extern const struct member_type type_key_from, type_fields, type_defaults, type_progress,
    type_unique, type_handler, type_route, type_staged, type_file, type_guard, type_location,
    type_upstream;

/* The choices of `payload` and of a field's `class`. */
extern const char *const class_names[];

/* Answers that contradict each other, and keys that identify no intent. `root` is what the contract
 * was read from; members that could not be read are zero. */
void command_check_rules(struct reading *reading, const struct contract *contract,
                         const struct node *root);

/* What the strategy needs, and what it can't go with: strategy.c. */
void command_check_strategy(struct reading *reading, const struct contract *contract,
                            const struct node *root);

/* A template names what a retry has too: location.c. */
void command_check_location(struct reading *reading, const struct contract *contract,
                            const struct node *root);

/* What work that another service does needs, and what it can't go with: upstream.c. */
void command_check_upstream(struct reading *reading, const struct contract *contract,
                            const struct node *root);

/* An event: where its members go, and what follows from them. event.c. */
extern const struct form event_form;
void *event_begin(struct reading *reading, struct contract *contract); /* NULL: no memory */
void event_finish(struct reading *reading, struct contract *contract);

/* The forms below `fields`, `unique`, `guard`, `staged`, `upstream` and `upstream.inquiry`, for the
 * reference. */
extern const struct form field_form, unique_form, guard_form, staged_form, upstream_form,
    inquiry_form;

#endif
