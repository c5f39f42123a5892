/* SPDX-License-Identifier: Apache-2.0 */
/* pg_template.h -- a database that was migrated once, for those of tests to be copied from: to
 * migrate each would take most of the time of most tests. */
#ifndef TEST_PG_TEMPLATE_H
#define TEST_PG_TEMPLATE_H

/* Its name. It is this program's own, and dropped when that ends. Ends the program where it can't
 * be made. */
const char *pg_template(void);

#endif
