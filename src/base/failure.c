/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

WORDS_DEFINE(failure_class, failure_class, FAILURE_CLASSES);
