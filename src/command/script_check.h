/* SPDX-License-Identifier: Apache-2.0 */
/* script_check.h -- would the scripts of contracts run on a store? What every gate asks. */
#ifndef COMMAND_SCRIPT_CHECK_H
#define COMMAND_SCRIPT_CHECK_H

#include "contract/contract.h"
#include "store/store.h"

/* Tell what is wrong with the scripts of one contract, or with `contract` NULL of all of them: as
 * prepare_scripts does, with the directory before the file; a file that is missing for this store,
 * and what make_script refuses, too. What several contracts share is told once. */
IBID_CHECK enum ibid_code script_check(struct store *store, const struct contracts *contracts,
                                       const struct contract *contract, finding_fn *fn, void *user,
                                       struct ibid_err *err);

/* IBID_CONTRACT with the first of all findings that refuse, and how many more there are; warnings
 * go to `log`. */
IBID_CHECK enum ibid_code script_check_all(struct store *store, const struct contracts *contracts,
                                           const struct log *log, struct ibid_err *err);

/* A script of `contract`, which is as in params_specs. */
IBID_CHECK enum ibid_code script_read(struct store *store, const struct contracts *contracts,
                                      const struct contract *contract, const char *file,
                                      struct script **ret, struct ibid_err *err);

#endif
