/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/broker.h"

void broker_close(struct broker *broker)
{
	if (broker)
		broker->ops->close(broker);
}
