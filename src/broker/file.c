/* SPDX-License-Identifier: Apache-2.0 */
/* file.c -- events as lines of CloudEvents JSON: in a file, or on standard output.
 *
 * (L1) A writer holds the file's lock (flock), so between two holders the file ends with a whole
 *      line, or with the rest of an interrupted write.
 * (L2) Such a rest is cut off before anything is appended: none of it was acknowledged.
 * (L3) Nothing is acknowledged before it is on the disk, the name of the file included.
 *
 * A file can't fence (`fences` is false). Standard output has no lock, no offsets and no disk: an
 * event is acknowledged when the pipe has accepted the whole batch. */
#include "base/arena.h"
#include "broker/cloudevent.h"
#include "broker/ends.h"
#include "broker/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH_BYTES_MAX = 64 << 20,
	FILE_MODE = 0640,
	LOCK_POLL_US = 2000,
	LOCK_WAIT_US = 10000000,
	REOPENS_MAX = 100,
	PIPE_POLL_MS = 50,
	PIPE_GRACE_US = 500000,
};

/* Every line begins like this: what does not is not ours. */
static const char beginning[] = "{\"specversion\":\"1.0\",\"id\":\"";

struct file_settings {
	const char *path;
	bool to_stdout, fsync;
};

#define AT(member) offsetof(struct file_settings, member)
static const struct setting table[] = {
    {"path", SETTING_TEXT, AT(path), 0, 0, "the name of a file"},
    {"stdout", SETTING_CHOICE, AT(to_stdout), 0, 0, "yes or no"},
    {"fsync", SETTING_CHOICE, AT(fsync), 0, 0, "yes or no"},
    {NULL},
};

struct file_broker {
	struct broker broker; /* first */
	struct env *env;
	struct arena arena;
	struct file_settings settings;
	pthread_mutex_t lock; /* one batch at a time */
	int fd;               /* of the file; -1: it is not open */
	bool torn;            /* standard output: the last line has no end */
	bool gone;            /* likewise: its reader has closed it */
};

/* What went wrong, for a record or for the caller of open_channel. */
struct trouble {
	enum failure_class failure;
	enum ibid_code code;
	const char *reason, *what;
	int error; /* errno; 0: `what` says it all */
};

static bool troubled(struct trouble *trouble, const char *what, int error)
{
	*trouble = (struct trouble){.what = what, .error = error};
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		trouble->failure = FAILURE_CAPACITY;
		trouble->reason = "FILE_FULL";
		trouble->code = IBID_UNAVAILABLE;
		break;
	case EACCES:
	case EPERM:
	case EROFS:
		trouble->failure = FAILURE_SECURITY;
		trouble->reason = "FILE_DENIED";
		trouble->code = IBID_DENIED;
		break;
	case EAGAIN:
		trouble->failure = FAILURE_TRANSIENT;
		trouble->reason = "FILE_LOCKED";
		trouble->code = IBID_UNAVAILABLE;
		break;
	case 0:
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
		trouble->failure = FAILURE_PERMANENT;
		trouble->reason = "FILE_UNUSABLE";
		trouble->code = IBID_INVALID;
		break;
	default:
		trouble->failure = FAILURE_TRANSIENT;
		trouble->reason = "FILE_IO";
		trouble->code = IBID_UNAVAILABLE;
	}
	return false;
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* A reader that went away and a size that may not be exceeded are errors here, and no end of the
 * program: the signals of this thread's own writes are taken back. */
struct quiet {
	sigset_t signals, before;
	bool pending[2];
};
static const int quiet_signals[2] = {SIGPIPE, SIGXFSZ};

static void quiet_begin(struct quiet *quiet)
{
	sigset_t pending;
	sigemptyset(&quiet->signals);
	sigpending(&pending);
	for (size_t i = 0; i < 2; i++) {
		quiet->pending[i] = sigismember(&pending, quiet_signals[i]) == 1;
		if (!quiet->pending[i])
			sigaddset(&quiet->signals, quiet_signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, &quiet->signals, &quiet->before);
}

static void quiet_end(const struct quiet *quiet)
{
	const struct timespec now = {0};
	int error = errno;
	while (sigtimedwait(&quiet->signals, NULL, &now) > 0)
		continue;
	pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
	errno = error;
}

/* One write, unless the system takes it in pieces. */
static bool write_all(int fd, const char *bytes, size_t size)
{
	struct quiet quiet;
	bool good = true;
	quiet_begin(&quiet);
	while (good && size) {
		ssize_t wrote = write(fd, bytes, size);
		if (wrote > 0) {
			bytes += wrote;
			size -= (size_t)wrote;
		} else {
			good = wrote < 0 && errno == EINTR;
		}
	}
	quiet_end(&quiet);
	return good;
}

/* ---- The file's end ------------------------------------------------------------------------- */

/* Where the last line begins: behind the last line end before `size`. -1: it can't be read. */
static off_t last_line(int fd, off_t size)
{
	char bytes[4096];
	while (size > 0) {
		off_t from = size > (off_t)sizeof bytes ? size - (off_t)sizeof bytes : 0;
		ssize_t got = pread(fd, bytes, (size_t)(size - from), from);
		if (got != size - from)
			return -1;
		const char *found = memrchr(bytes, '\n', (size_t)got);
		if (found)
			return from + (found - bytes) + 1;
		size = from;
	}
	return 0;
}

/* The beginning of one of our lines; a power failure may leave zeros instead. */
static bool is_ours(int fd, off_t from, off_t size)
{
	char bytes[sizeof beginning];
	size_t most = sizeof beginning - 1;
	size_t count = (size_t)(size - from) < most ? (size_t)(size - from) : most;
	if (pread(fd, bytes, count, from) != (ssize_t)count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != beginning[i])
			return bytes[i] == 0;
	return true;
}

/* With the lock. Cut off what is left of a write that did not come to its end (L2). */
static bool mend(int fd, struct trouble *trouble)
{
	struct stat stat;
	char last;
	if (fstat(fd, &stat) != 0)
		return troubled(trouble, "its size can't be read", errno);
	if (stat.st_size == 0)
		return true;
	if (pread(fd, &last, 1, stat.st_size - 1) != 1)
		return troubled(trouble, "its end can't be read", EIO);
	if (last == '\n')
		return true;
	off_t from = last_line(fd, stat.st_size);
	if (from < 0)
		return troubled(trouble, "its end can't be read", EIO);
	if (!is_ours(fd, from, stat.st_size))
		return troubled(trouble,
		                "it ends in the middle of a line that is not an event: it is somebody "
		                "else's file",
		                0);
	if (ftruncate(fd, from) != 0)
		return troubled(trouble, "the unfinished line at its end can't be cut off", errno);
	return true;
}

/* ---- Opening and locking -------------------------------------------------------------------- */

static void close_file(struct file_broker *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/* A file's name is on the disk when its directory is (L3). */
static bool sync_directory(const struct file_broker *file, struct trouble *trouble)
{
	char *copy = strdup(file->settings.path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(copy);
	if (fd < 0)
		return troubled(trouble, "its directory can't be opened", errno);
	int failed = fsync(fd);
	int error = errno;
	close(fd);
	return !failed || error == EINVAL /* a file system without that */
	       || troubled(trouble, "its directory can't be synced", error);
}

static bool open_file(struct file_broker *file, struct trouble *trouble)
{
	struct stat stat;
	int fd = open(file->settings.path,
	              O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, FILE_MODE);
	if (fd < 0)
		return troubled(trouble, "it can't be opened", errno);
	file->fd = fd;
	bool good = fstat(fd, &stat) == 0 || troubled(trouble, "it can't be looked at", errno);
	if (good && !S_ISREG(stat.st_mode))
		good = troubled(trouble, "it is not a regular file", 0);
	good = good && sync_directory(file, trouble);
	if (!good)
		close_file(file);
	return good;
}

/* Is the open file still the one of that name? */
static bool is_current(const struct file_broker *file)
{
	struct stat named, opened;
	return file->fd >= 0 && stat(file->settings.path, &named) == 0 &&
	       fstat(file->fd, &opened) == 0 && named.st_dev == opened.st_dev &&
	       named.st_ino == opened.st_ino;
}

static bool lock_file(const struct file_broker *file, const atomic_bool *stop,
                      struct trouble *trouble)
{
	int64_t until_us = env_steady_us(file->env) + LOCK_WAIT_US;
	while (flock(file->fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return troubled(trouble, "it can't be locked", errno);
		if ((stop && atomic_load(stop)) || env_steady_us(file->env) >= until_us)
			return troubled(trouble, "somebody else holds its lock", EAGAIN);
		env_sleep_us(file->env, LOCK_POLL_US);
	}
	return true;
}

/* Open, current, locked and whole. A file that was moved away (logrotate) is created anew. */
static bool take_file(struct file_broker *file, const atomic_bool *stop, struct trouble *trouble)
{
	for (unsigned i = 0; i < REOPENS_MAX; i++) {
		if (!is_current(file)) {
			close_file(file);
			if (!open_file(file, trouble))
				return false;
		}
		if (!lock_file(file, stop, trouble))
			return false;
		if (!is_current(file))
			continue; /* moved while we waited */
		if (mend(file->fd, trouble))
			return true;
		flock(file->fd, LOCK_UN);
		return false;
	}
	return troubled(trouble, "it is moved away again and again", EAGAIN);
}

/* ---- A batch -------------------------------------------------------------------------------- */

struct batch {
	struct file_broker *file;
	struct record *records;
	size_t count;
	struct str lines;
	size_t *starts; /* of a record's line in `lines`; RECORD_NONE: it is not in there */
	size_t first;   /* record in there; RECORD_NONE: there is none */
};

static void drop_later(const struct turn *turns, bool *dropped, size_t index)
{
	for (size_t at = turns[index].after; at != RECORD_NONE; at = turns[at].after)
		dropped[at] = true;
}

/* A record that can't be written takes the later ones of its aggregate with it (I5); what has no
 * room in this batch is left for the next. */
static void write_lines(struct batch *batch, const struct turn *turns, bool *dropped)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct record *record = &batch->records[i];
		size_t start = batch->lines.size;
		batch->starts[i] = RECORD_NONE;
		if (dropped[i])
			continue;
		if (cloudevent_check(record) && cloudevent_line(record, &batch->lines)) {
			batch->starts[i] = start;
			batch->first = batch->first == RECORD_NONE ? i : batch->first;
			continue;
		}
		if (record->end != RECORD_FAILED && !start)
			record_fail(record, FAILURE_TRANSIENT, "OUT_OF_MEMORY", "out of memory");
		drop_later(turns, dropped, i);
	}
}

static enum ibid_code batch_init(struct batch *batch, struct ibid_err *err)
{
	struct turn *turns = records_turns(batch->records, batch->count);
	bool *dropped = calloc(batch->count + 1, sizeof *dropped);
	batch->starts = calloc(batch->count + 1, sizeof *batch->starts);
	batch->lines = STR_INIT(BATCH_BYTES_MAX);
	batch->first = RECORD_NONE;
	bool good = turns && dropped && batch->starts;
	if (good)
		write_lines(batch, turns, dropped);
	free(turns);
	free(dropped);
	return good ? IBID_OK : err_set(err, IBID_UNAVAILABLE, "out of memory");
}

static void batch_release(struct batch *batch)
{
	str_release(&batch->lines);
	free(batch->starts);
}

/* The file failed, not a record: the first record gets the failure, the others were not written. A
 * permanent or security failure concerns every record of the destination. */
static void batch_fail(struct batch *batch, const struct trouble *trouble)
{
	struct record *record = &batch->records[batch->first];
	record_fail(record, trouble->failure, trouble->reason, "%s%s%s", trouble->what,
	            trouble->error ? ": " : "", trouble->error ? strerror(trouble->error) : "");
	if (trouble->failure == FAILURE_PERMANENT || trouble->failure == FAILURE_SECURITY)
		record->concern = CONCERNS_ALL;
}

/* Bytes are there that were not to be there: all of it may be sent again under the same ids. */
static void batch_doubt(struct batch *batch, const char *reason, const char *why)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->starts[i] != RECORD_NONE)
			record_fail(&batch->records[i], FAILURE_UNKNOWN, reason, "%s", why);
}

static void batch_ack(struct batch *batch, const char *place, off_t start)
{
	int64_t now_us = env_wall_us(batch->file->env);
	for (size_t i = 0; i < batch->count; i++)
		if (batch->starts[i] != RECORD_NONE)
			record_ack(&batch->records[i], place,
			           start < 0 ? -1 : (int64_t)start + (int64_t)batch->starts[i], now_us);
}

/* ---- To the file ---------------------------------------------------------------------------- */

/* With the file taken. What fails is taken back, so that nothing of it is seen. */
static void append(struct batch *batch)
{
	struct file_broker *file = batch->file;
	struct trouble trouble;
	struct stat stat;
	if (fstat(file->fd, &stat) != 0) {
		troubled(&trouble, "its size can't be read", errno);
		batch_fail(batch, &trouble);
		return;
	}
	bool wrote = write_all(file->fd, batch->lines.data, batch->lines.size);
	if (wrote && fsync(file->fd) == 0) {
		batch_ack(batch, file->settings.path, stat.st_size);
		return;
	}
	troubled(&trouble, wrote ? "it can't be synced" : "it can't be written", errno);
	if (ftruncate(file->fd, stat.st_size) == 0)
		batch_fail(batch, &trouble);
	else
		batch_doubt(batch, trouble.reason, "it can't be written, nor what was written be cut off");
	close_file(file); /* what the system says of it after this is not to be relied on */
}

static void publish_to_file(struct batch *batch, const atomic_bool *stop)
{
	struct file_broker *file = batch->file;
	struct trouble trouble;
	if (!take_file(file, stop, &trouble)) {
		if (trouble.error != EAGAIN || !atomic_load(stop)) /* then nothing was tried */
			batch_fail(batch, &trouble);
		return;
	}
	append(batch);
	if (file->fd >= 0)
		flock(file->fd, LOCK_UN);
}

/* ---- To standard output --------------------------------------------------------------------- */

/* Where the line ends that byte `at` belongs to. */
static size_t line_end(const struct str *lines, size_t at)
{
	const char *end = memchr(lines->data + at, '\n', lines->size - at);
	return (size_t)(end - lines->data) + 1;
}

/* As much as the pipe takes without waiting. -1 and EAGAIN: nothing now. */
static ssize_t offer(const char *bytes, size_t size)
{
	struct quiet quiet;
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	int ready = poll(&out, 1, PIPE_POLL_MS);
	if (ready <= 0) {
		errno = EAGAIN;
		return -1;
	}
	quiet_begin(&quiet);
	ssize_t wrote = write(STDOUT_FILENO, bytes, size < PIPE_BUF ? size : PIPE_BUF);
	quiet_end(&quiet);
	return wrote;
}

/* How much was written; all of it unless the reader went away or we stop. The line that is begun
 * has a moment to be finished. */
static size_t pour(const struct str *lines, const atomic_bool *stop, int *ret_error)
{
	size_t at = 0, end = lines->size;
	int64_t until_us = 0;
	while (at < end) {
		if (!until_us && atomic_load(stop)) {
			until_us = env_steady_us(env_system()) + PIPE_GRACE_US;
			end = at && lines->data[at - 1] == '\n' ? at : line_end(lines, at);
			continue;
		}
		if (until_us && env_steady_us(env_system()) > until_us)
			break;
		ssize_t wrote = offer(lines->data + at, end - at);
		if (wrote > 0)
			at += (size_t)wrote;
		else if (errno != EAGAIN && errno != EINTR) {
			*ret_error = errno;
			break;
		}
	}
	return at;
}

/* Records whose lines were written whole are acknowledged; the outcome of a cut one is unknown. */
static void conclude_poured(struct batch *batch, size_t poured)
{
	int64_t now_us = env_wall_us(batch->file->env);
	for (size_t i = 0; i < batch->count; i++) {
		struct record *record = &batch->records[i];
		size_t start = batch->starts[i];
		if (start == RECORD_NONE || start >= poured)
			continue;
		if (line_end(&batch->lines, start) <= poured)
			record_ack(record, "stdout", -1, now_us);
		else
			record_fail(record, FAILURE_UNKNOWN, "STDOUT_SLOW",
			            "nobody read standard output, and its line has no end");
	}
}

static void fail_stdout(struct batch *batch, size_t poured, int error)
{
	struct trouble trouble = {.failure = FAILURE_TRANSIENT,
	                          .reason = "STDOUT_CLOSED",
	                          .what = "standard output can't be written",
	                          .error = error};
	batch->file->gone = error == EPIPE;
	if (poured)
		batch_doubt(batch, trouble.reason,
		            "standard output was closed while its line was on the way");
	else
		batch_fail(batch, &trouble);
}

static void publish_to_stdout(struct batch *batch, const atomic_bool *stop)
{
	struct file_broker *file = batch->file;
	int error = 0;
	while (file->torn && !error && !atomic_load(stop)) {
		if (offer("\n", 1) == 1)
			file->torn = false;
		else if (errno != EAGAIN && errno != EINTR)
			error = errno;
	}
	if (file->torn && !error)
		return;
	size_t poured = error ? 0 : pour(&batch->lines, stop, &error);
	file->torn = file->torn || (poured && batch->lines.data[poured - 1] != '\n');
	if (error)
		fail_stdout(batch, poured, error);
	else
		conclude_poured(batch, poured);
}

/* ---- The destination ------------------------------------------------------------------------ */

static struct file_broker *file_of(struct broker *broker)
{
	return (struct file_broker *)broker;
}

static enum ibid_code file_publish(struct channel *channel, struct record *records, size_t count,
                                   const atomic_bool *stop, struct ibid_err *err)
{
	struct file_broker *file = file_of(channel->broker);
	struct batch batch = {.file = file, .records = records, .count = count};
	records_clear(records, count);
	enum ibid_code code = batch_init(&batch, err);
	if (!code && batch.first != RECORD_NONE && !atomic_load(stop)) {
		pthread_mutex_lock(&file->lock);
		if (file->settings.to_stdout)
			publish_to_stdout(&batch, stop);
		else
			publish_to_file(&batch, stop);
		pthread_mutex_unlock(&file->lock);
	}
	batch_release(&batch);
	return code;
}

/* Restarts are not safe where the end of what was written can't be read. */
static enum ibid_code check_stdout(const struct file_broker *file, struct ibid_err *err)
{
	struct stat stat;
	if (file->gone)
		return err_set(err, IBID_UNAVAILABLE,
		               "destination %s: nobody reads standard output any more", file->broker.name);
	if (fstat(STDOUT_FILENO, &stat) != 0)
		return err_set(err, IBID_INVALID, "destination %s: standard output is closed",
		               file->broker.name);
	if (S_ISREG(stat.st_mode))
		return err_set(err, IBID_INVALID,
		               "destination %s: standard output is a file: name it in `path` instead, so "
		               "that it is whole after a crash",
		               file->broker.name);
	return IBID_OK;
}

static enum ibid_code check_file(struct file_broker *file, struct ibid_err *err)
{
	struct trouble trouble;
	pthread_mutex_lock(&file->lock);
	bool good = take_file(file, NULL, &trouble);
	if (good)
		flock(file->fd, LOCK_UN);
	pthread_mutex_unlock(&file->lock);
	if (good)
		return IBID_OK;
	return err_write(err, trouble.code, "destination %s: %s: %s%s%s", file->broker.name,
	                 file->settings.path, trouble.what, trouble.error ? ": " : "",
	                 trouble.error ? strerror(trouble.error) : "");
}

static enum ibid_code file_open_channel(struct broker *broker, const char *name,
                                        struct channel **ret, struct ibid_err *err)
{
	struct file_broker *file = file_of(broker);
	enum ibid_code code = file->settings.to_stdout ? check_stdout(file, err)
	                                               : check_file(file, err);
	(void)name;
	if (code)
		return code;
	struct channel *channel = calloc(1, sizeof *channel);
	if (!channel)
		return err_set(err, IBID_UNAVAILABLE, "out of memory");
	channel->broker = broker;
	*ret = channel;
	return IBID_OK;
}

static void file_close_channel(struct channel *channel)
{
	free(channel);
}

static void file_close(struct broker *broker)
{
	struct file_broker *file = file_of(broker);
	close_file(file);
	pthread_mutex_destroy(&file->lock);
	arena_release(&file->arena);
	free(file);
}

static const struct broker_ops file_ops = {.open_channel = file_open_channel,
                                           .publish = file_publish,
                                           .close_channel = file_close_channel,
                                           .close = file_close};

static enum ibid_code check_settings(const struct file_broker *file, struct ibid_err *err)
{
	const struct file_settings *settings = &file->settings;
	if (!settings->path == !settings->to_stdout)
		return err_set(err, IBID_INVALID,
		               "destination %s: either `path` or `stdout: yes` must be set",
		               file->broker.name);
	if (!settings->fsync && !settings->to_stdout)
		return err_set(err, IBID_INVALID,
		               "destination %s: `fsync` is `no`: with a `path` it must be yes, because an "
		               "event counts as delivered that a power failure could take back",
		               file->broker.name);
	return IBID_OK;
}

enum ibid_code broker_file_open(const struct broker_options *options, struct broker **ret,
                                struct ibid_err *err)
{
	struct file_broker *file = calloc(1, sizeof *file);
	if (!file)
		return err_set(err, IBID_NOMEM, "out of memory");
	file->broker = (struct broker){.ops = &file_ops, .name = options->name, .fences = false};
	file->env = options->env;
	file->fd = -1;
	file->settings.fsync = true;
	pthread_mutex_init(&file->lock, NULL);
	enum ibid_code code = settings_fill(options, table, &file->arena, &file->settings, err);
	if (!code)
		code = check_settings(file, err);
	if (!code)
		file->broker.name = arena_strdup(&file->arena, options->name);
	if (!code && file->arena.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (code)
		file_close(&file->broker);
	else
		*ret = &file->broker;
	return code;
}
