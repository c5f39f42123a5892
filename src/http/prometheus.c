/* SPDX-License-Identifier: Apache-2.0 */
#include "http/prometheus.h"

#include <stdio.h>
#include <unistd.h>

void prom_family(struct str *out, const char *name, const char *type, const char *help)
{
	str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void prom_number(struct str *out, const char *name, const char *type, const char *help,
                 int64_t number)
{
	prom_family(out, name, type, help);
	str_addf(out, "%s %lld\n", name, (long long)number);
}

void prom_us(struct str *out, int64_t us)
{
	str_addf(out, "%lld.%06lld", (long long)(us / 1000000), (long long)(us % 1000000));
}

void prom_seconds(struct str *out, const char *name, const char *help, int64_t us)
{
	prom_family(out, name, "gauge", help);
	str_addf(out, "%s ", name);
	prom_us(out, us);
	str_addc(out, '\n');
}

/* name="value", with what the format escapes. */
void prom_label(struct str *out, const char *name, const char *value)
{
	str_addf(out, "%s=\"", name);
	for (const char *c = value; *c; c++) {
		if (*c == '\\' || *c == '"')
			str_addc(out, '\\');
		if (*c == '\n')
			str_adds(out, "\\n");
		else
			str_addc(out, *c);
	}
	str_addc(out, '"');
}

static int64_t resident_bytes(void)
{
	long long whole = 0, resident = 0;
	FILE *in = fopen("/proc/self/statm", "re");
	if (!in)
		return 0;
	if (fscanf(in, "%lld %lld", &whole, &resident) != 2)
		resident = 0;
	fclose(in);
	return resident * sysconf(_SC_PAGESIZE);
}

void prom_process(struct str *out, int64_t began_us)
{
	prom_seconds(out, "process_start_time_seconds", "When the process began, since 1970.",
	             began_us);
	prom_number(out, "process_resident_memory_bytes", "gauge", "Memory of the process.",
	            resident_bytes());
}
