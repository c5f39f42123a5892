/* SPDX-License-Identifier: Apache-2.0 */
/* template.h -- values that a contract makes of constants and a command's parameters.
 *
 * A template is JSON in canonical form with holes. Constants are brought into that form and members
 * are sorted when the contract is read, so filling the holes in order gives canonical JSON. Pure.
 */
#ifndef CONTRACT_TEMPLATE_H
#define CONTRACT_TEMPLATE_H

#include "base/str.h"
#include "contract/contract.h"

/* Append it as JSON. `values` are those of every parameter: the built-in ones, then the fields.
 * NULL is JSON's null. */
void template_write(struct str *out, const struct template *template, const char *const *values);

/* The text of a value: the constant, or the parameter's. */
const char *value_text(const struct contract_value *value, const char *const *values);

/* Is the rule's condition met? A parameter that is absent meets none. */
bool reject_applies(const struct contract_reject *reject, const char *const *values);

#endif
