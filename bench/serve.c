/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 18, SETTLE_PAUSE_US = 10000, SETTLE_LOOKS = 3000 };

/* ---- Life ----------------------------------------------------------------------------------- */

struct serve *serve_start(const struct target *target, const char *setting)
{
	struct serve *serve = calloc(1, sizeof *serve);
	char line[256] = "";
	const char *words[] = {BENCH_IBID,
	                       "serve",
	                       "--store",
	                       target->url,
	                       "--contracts",
	                       BENCH_CONTRACTS,
	                       "http.listen=127.0.0.1:0",
	                       "http.open.tenant=acme",
	                       setting,
	                       NULL};
	if (!serve)
		die("serve", "out of memory");
	serve->env = target->bench->env;
	serve->program = program_start(words, true);
	if (!fgets(line, sizeof line, serve->program.out) ||
	    sscanf(line, "ibid serves at http://127.0.0.1:%d", &serve->port) != 1)
		die("ibid serve", *line ? line : "it does not start");
	snprintf(serve->address, sizeof serve->address, "http://127.0.0.1:%d", serve->port);
	return serve;
}

void serve_stop(struct serve *serve)
{
	kill(serve->program.pid, SIGTERM);
	if (program_wait(&serve->program))
		die("ibid serve", "it did not end well");
	free(serve);
}

/* ---- Asking --------------------------------------------------------------------------------- */

/* One request, one connection. The answer, to be freed. */
static char *ask(const struct serve *serve, const char *request)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	                         .sin_port = htons((uint16_t)serve->port),
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *answer = malloc(ANSWER_MAX);
	size_t size = 0, length = strlen(request);
	ssize_t got;
	if (fd < 0 || !answer || connect(fd, (struct sockaddr *)&to, sizeof to) ||
	    send(fd, request, length, MSG_NOSIGNAL) != (ssize_t)length)
		die(serve->address, "it can't be reached");
	while ((got = recv(fd, answer + size, ANSWER_MAX - 1 - size, 0)) > 0)
		size += (size_t)got;
	close(fd);
	if (got < 0 || strncmp(answer, "HTTP/1.1 2", sizeof "HTTP/1.1 2" - 1) != 0)
		die(serve->address, "no answer, or a bad one");
	answer[size] = 0;
	return answer;
}

void serve_first(const struct serve *serve, const char *path, const char *prefix)
{
	for (int nth = 0; nth < LOAD_KEYS; nth++) {
		char body[160], request[512];
		int size = snprintf(body, sizeof body,
		                    "{\"from\":\"DE02%018d\",\"to\":\"DE02500105170137075030\","
		                    "\"amount\":12.50,\"currency\":\"EUR\"}",
		                    nth);
		snprintf(request, sizeof request,
		         "POST %s HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n"
		         "Idempotency-Key: %s-%d\r\nContent-Type: application/json\r\n"
		         "Content-Length: %d\r\n\r\n%s",
		         path, prefix, nth, size, body);
		free(ask(serve, request));
	}
}

double serve_metric(const struct serve *serve, const char *name, const char *label)
{
	char *answer = ask(serve, "GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
	double sum = 0;
	size_t size = strlen(name);
	for (char *next, *line = strchr(answer, '\n'); line; line = next) {
		next = strchr(++line, '\n');
		if (next)
			*next = 0;
		const char *value = strrchr(line, ' ');
		if (value && strncmp(line, name, size) == 0 && (line[size] == ' ' || line[size] == '{') &&
		    (!label || strstr(line, label)))
			sum += strtod(value, NULL);
		if (next)
			*next = '\n';
	}
	free(answer);
	return sum;
}

void serve_settle(const struct serve *serve)
{
	for (int look = 0; serve_metric(serve, "ibid_queue_tasks", NULL) > 0; look++) {
		if (look == SETTLE_LOOKS)
			die("ibid serve", "commands are still on their way");
		env_sleep_us(serve->env, SETTLE_PAUSE_US);
	}
}
