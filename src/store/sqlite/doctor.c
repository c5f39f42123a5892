/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c -- what is unsafe about this file and how it is set up. */
#include "store/sqlite/lite.h"
#include "store/sqlite/wal_vfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

enum { MIB = 1 << 20, FREE_MIB_MIN = 512, WAL_MIB_MAX = 64 };

struct visit {
	struct lite_store *store;
	struct lite_conn *conn;
	finding_fn *fn;
	void *user;
};

__attribute__((format(printf, 4, 5))) static void tell(const struct visit *visit,
                                                       enum finding_level level, const char *advice,
                                                       const char *format, ...)
{
	char what[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	visit->fn(visit->user, level, what, level == FINDING_OK ? "" : advice);
}

struct library store_sqlite_library(void)
{
	return (struct library){"SQLite", sqlite3_libversion(), IBID_PINNED};
}

static enum ibid_code library(const struct visit *visit, struct ibid_err *err)
{
	struct library library = store_sqlite_library();
	bool safe = sqlite3_libversion_number() >= LITE_VERSION_SAFE;
	(void)err;
	tell(visit, safe ? FINDING_OK : FINDING_WARN,
	     "upgrade to SQLite 3.51.3, or build ibid without -Dsystem_libs=true: before it, a "
	     "checkpoint "
	     "of another program that begins while ibid resets the WAL can lose a commit or damage the "
	     "file; that program should run `pragma wal_autocheckpoint = 0`",
	     "%s library %s, %s", library.name, library.version, library_origin(&library));
	return IBID_OK;
}

/* The first column of the first row, in `ret`. */
static enum ibid_code ask(const struct visit *visit, enum lite_sql sql, char *ret, size_t size,
                          struct ibid_err *err)
{
	struct arena arena = {0};
	struct lite_run run;
	const char *text = NULL;
	enum ibid_code code = lite_start(visit->conn, sql, &run, err);
	if (lite_row(&run, &code, err))
		text = lite_read_text(&run, &arena);
	lite_end(&run);
	snprintf(ret, size, "%s", text ? text : "");
	arena_release(&arena);
	return code;
}

static enum ibid_code journal_mode(const struct visit *visit, struct ibid_err *err)
{
	char mode[32];
	enum ibid_code code = ask(visit, LITE_journal_mode_get, mode, sizeof mode, err);
	if (!code)
		tell(visit, strcmp(mode, "wal") == 0 ? FINDING_OK : FINDING_REFUSE,
		     "run ibid init: readers and the writer must not block each other", "journal mode %s",
		     mode);
	return code;
}

static enum ibid_code settings(const struct visit *visit, struct ibid_err *err)
{
	int64_t synchronous = 0, foreign_keys = 0;
	enum ibid_code code = lite_number(visit->conn, LITE_synchronous_get, &synchronous, err);
	if (!code)
		code = lite_number(visit->conn, LITE_foreign_keys_get, &foreign_keys, err);
	if (code)
		return code;
	tell(visit, synchronous >= 2 ? FINDING_OK : FINDING_REFUSE,
	     "this SQLite ignores synchronous = full: a commit may be lost with the power",
	     "synchronous %" PRId64 " (2 is full)", synchronous);
	tell(visit, foreign_keys ? FINDING_OK : FINDING_REFUSE,
	     "this SQLite was built without foreign keys: use another", "foreign keys %s",
	     foreign_keys ? "on" : "off");
	return IBID_OK;
}

/* Called only where the schema fits. */
static enum ibid_code missing(const struct visit *visit, struct ibid_err *err)
{
	struct arena arena = {0};
	struct lite_run run;
	bool any = false;
	enum ibid_code code = lite_start(visit->conn, LITE_doctor_missing, &run, err);
	for (; lite_row(&run, &code, err); any = true) {
		const char *type = lite_read_text(&run, &arena), *name = lite_read_text(&run, &arena);
		tell(visit, FINDING_REFUSE, "create it again as ibid's migrations do", "%s %s is missing",
		     type ? type : "", name ? name : "");
	}
	lite_end(&run);
	arena_release(&arena);
	if (!code && !any)
		tell(visit, FINDING_OK, "", "all indexes and triggers are there");
	return code;
}

static enum ibid_code schema(const struct visit *visit, struct ibid_err *err)
{
	int version = 0;
	enum ibid_code code = lite_schema_version(visit->conn, &version, err);
	if (code)
		return code;
	bool fits = version >= STORE_SCHEMA && version <= STORE_SCHEMA + 1;
	tell(visit, fits ? FINDING_OK : FINDING_REFUSE,
	     version > STORE_SCHEMA ? "upgrade ibid" : "run ibid init",
	     "schema %d, this ibid writes %d", version, STORE_SCHEMA);
	return fits ? missing(visit, err) : IBID_OK;
}

static enum ibid_code damage(const struct visit *visit, struct ibid_err *err)
{
	char found[sizeof err->text];
	enum ibid_code code = ask(visit, LITE_quick_check, found, sizeof found, err);
	if (code == IBID_IO) {
		snprintf(found, sizeof found, "%s", err->text);
		code = IBID_OK;
	}
	if (!code)
		tell(visit, strcmp(found, "ok") == 0 ? FINDING_OK : FINDING_REFUSE,
		     "stop, copy the file away and restore a backup", "quick check: %s", found);
	return code;
}

static enum ibid_code disk(const struct visit *visit, struct ibid_err *err)
{
	struct statvfs info;
	if (statvfs(visit->store->path, &info) != 0)
		return err_set(err, IBID_IO, "%s: its disk can't be asked", visit->store->path);
	uint64_t mib = (uint64_t)info.f_bavail * info.f_frsize / MIB;
	tell(visit, mib >= FREE_MIB_MIN ? FINDING_OK : FINDING_WARN,
	     "free some space: a full disk stops every command", "free disk space %" PRIu64 " MiB",
	     mib);
	return IBID_OK;
}

const char *lite_network_name(uint64_t magic)
{
	static const struct {
		uint32_t magic;
		const char *name;
	} known[] = {
	    {0x6969, "NFS"},     {0x517b, "SMB"},        {0xfe534d42, "SMB"},   {0xff534d42, "CIFS"},
	    {0x564c, "NCP"},     {0x73757245, "Coda"},   {0x5346414f, "AFS"},   {0x6b414653, "AFS"},
	    {0x1021997, "9P"},   {0xc36400, "Ceph"},     {0xbd00bd0, "Lustre"}, {0x7461636f, "OCFS2"},
	    {0x1161970, "GFS2"}, {0x19830326, "BeeGFS"}, {0x47504653, "GPFS"},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (known[i].magic == (uint32_t)magic)
			return known[i].name;
	return NULL;
}

static enum ibid_code file_system(const struct visit *visit, struct ibid_err *err)
{
	struct statfs info;
	if (statfs(visit->store->path, &info) != 0)
		return err_set(err, IBID_IO, "%s: its file system can't be asked", visit->store->path);
	const char *network = lite_network_name((uint64_t)info.f_type);
	tell(visit, network ? FINDING_WARN : FINDING_OK,
	     "put the file on a local disk: WAL mode needs memory that all processes share, and locks "
	     "over a network are not to be trusted; for several machines use PostgreSQL",
	     "the file system is %s", network ? network : "local");
	return IBID_OK;
}

static enum ibid_code wal_size(const struct visit *visit, struct ibid_err *err)
{
	char path[4096];
	struct stat info;
	int64_t mib = 0;
	(void)err;
	snprintf(path, sizeof path, "%s-wal", visit->store->path);
	if (stat(path, &info) == 0)
		mib = (int64_t)info.st_size / MIB;
	tell(visit, mib <= WAL_MIB_MAX ? FINDING_OK : FINDING_WARN,
	     "some program keeps a read transaction open, so the WAL can't be reset: end it",
	     "WAL file %" PRId64 " MiB", mib);
	return IBID_OK;
}

enum ibid_code lite_doctor(struct store *base, finding_fn *fn, void *user, struct ibid_err *err)
{
	/* A connection learns of another's journal mode when it reads: schema comes first. */
	static enum ibid_code (*const checks[])(const struct visit *, struct ibid_err *) = {
	    library, schema, journal_mode, settings, damage, disk, file_system, wal_size,
	};
	struct visit visit = {.store = lite_of(base), .fn = fn, .user = user};
	enum ibid_code code = lite_reader_take(visit.store, &visit.conn, err);
	if (code)
		return code;
	for (size_t i = 0; !code && i < sizeof checks / sizeof checks[0]; i++)
		code = checks[i](&visit, err);
	lite_reader_give(visit.store, visit.conn);
	return code;
}
