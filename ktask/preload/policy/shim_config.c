/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The environment, and whether this process may use the library now.
 *
 * The environment is read once, when the shim is loaded: reading it at the first large
 * call could race with setenv() in another thread of the program.  Copies are kept
 * (settings.c).  Constructors that run before this one make plain calls.
 * secure_getenv() ignores the environment in a privileged program into which an
 * administrator loads the shim.  (LD_PRELOAD by a user is ignored there anyway.)
 *
 * A wrong value counts as not set.  The shim has nobody to report it to, and `ktask run`,
 * which sets these variables, checks its own options.
 *
 * Locking: there is no lock.  All is written when the shim is loaded, and only read from
 * then on, but memory_watched: it is atomic, and any thread sets it, for ever.
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shim.h"
#include "util/run_record.h"
#include "util/scoped.h"
#include "util/word_list.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER
#elif defined(__has_feature)
/* As clang tells it. */
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
	__has_feature(thread_sanitizer) || __has_feature(hwaddress_sanitizer)
#define HAS_SANITIZER
#endif
#endif

/*
 * Below this size the plain call is used.  The first job starts the helpers, which
 * takes 0.3 ms.  One thread populates 32 MiB of huge pages in 1.4 ms (23 GB/s) and of
 * 4 KiB pages in 10 ms.  So a second thread saves at least 0.7 ms; at half the size, the
 * start would take up what it saves.  Programs that never map more get no thread.
 */
#define DEFAULT_MIN_BYTES ((size_t)32 << 20)

const char *const shim_call_names[SHIM_NR_CALLS] = {
	"mmap", "madvise",  "mlock",	"munmap", "fallocate",
	"exit", "register", "prefault", "ahead"
};

size_t shim_min_bytes = DEFAULT_MIN_BYTES;
bool shim_prefaults, shim_prefault_waits;
static unsigned calls_mask = (1u << SHIM_DEFAULT_CALLS) - 1;
static unsigned named_mask;
static const char *report_target;
static bool is_dry;
/* The code of allocators other than libc's: of the next one in the loader's order, and of
 * one before the shim, such as an allocator in the program itself. */
#define NR_ALLOCATORS 2
static struct {
	const void *function; /* its malloc() */
	uintptr_t start, end;
} known_allocators[NR_ALLOCATORS];
/* The C library and the loader. */
#define NR_SYSTEM_OBJECTS 2
static struct {
	uintptr_t start, end;
} system_objects[NR_SYSTEM_OBJECTS];
/* The process to which the library's helpers belong; 0 until the constructor ran. */
static pid_t owner_pid;

static atomic_bool memory_watched;

void shim_memory_watched(void)
{
	keep_errno();

	atomic_store(&memory_watched, true);
	/* What another process makes of shared memory is no fault in this one. */
	shim_ahead_remove(NULL, SIZE_MAX);
	if (shim_prefaults)
		shim_prefault_end();
	if (shim_ahead_running() && shim_is_ours())
		shim_ahead_end();
}

bool shim_memory_is_watched(void)
{
	return atomic_load(&memory_watched);
}

static pid_t current_pid(void)
{
	return (pid_t)syscall(SYS_getpid);
}

bool shim_named(enum shim_call call)
{
	return named_mask & (1u << call);
}

const char *shim_report_target(void)
{
	return report_target;
}

/*
 * A child of vfork() or of a bare clone() has the state of a process whose helpers it
 * does not have.  It is recognised by its process id.  A child of fork() has run the
 * library's fork handlers, and is an owner itself.
 */
bool shim_is_ours(void)
{
	return owner_pid && owner_pid == current_pid();
}

pid_t shim_owner(void)
{
	return owner_pid;
}

/*
 * An allocator may hold its lock while it calls mmap(), and the library allocates.  The
 * calls of libc's own allocator do not come through the shim.
 */
bool shim_is_allocator(const void *from)
{
	for (int i = 0; i < NR_ALLOCATORS; i++)
		if ((uintptr_t)from >= known_allocators[i].start &&
		    (uintptr_t)from < known_allocators[i].end)
			return true;
	return false;
}

bool shim_is_system(const void *from)
{
	for (int i = 0; i < NR_SYSTEM_OBJECTS; i++)
		if ((uintptr_t)from >= system_objects[i].start &&
		    (uintptr_t)from < system_objects[i].end)
			return true;
	return false;
}

/* Return: why a call is not taken, or SHIM_NR_WHY.  Before the constructor has run this
 * makes no system call. */
static enum shim_why find_objection(enum shim_call call, const void *from)
{
	if (!(calls_mask & (1u << call)))
		return WHY_OPS;
	if (shim_is_allocator(from))
		return WHY_ALLOCATOR;
	if (!owner_pid)
		return WHY_EARLY;
	if (atomic_load(&memory_watched))
		return WHY_WATCHED;
	if (!shim_filter_allows())
		return WHY_FILTER;
	return shim_is_ours() ? SHIM_NR_WHY : WHY_CHILD;
}

/* Counting present pages takes system calls, for which a filter may kill. */
static size_t released_bytes(enum shim_why why, const void *addr, size_t len)
{
	if (why == WHY_EARLY || why == WHY_FILTER || !shim_filter_allows())
		return len;
	return shim_present_bytes(addr, len);
}

bool shim_wants(enum shim_call call, size_t len, const void *from)
{
	enum shim_why why;

	if (len < shim_min_bytes || shim_busy())
		return false;
	why = find_objection(call, from);
	if (why != SHIM_NR_WHY)
		shim_decline(why, len);
	return why == SHIM_NR_WHY;
}

bool shim_wants_release(enum shim_call call, const void *addr, size_t len,
			const void *from)
{
	enum shim_why why;

	if (len < shim_min_bytes || shim_busy())
		return false;
	why = find_objection(call, from);
	if (why != SHIM_NR_WHY)
		shim_decline(why, released_bytes(why, addr, len));
	return why == SHIM_NR_WHY;
}

bool shim_takes(enum shim_call call, size_t len)
{
	if (is_dry)
		shim_say_would(call, len);
	return !is_dry;
}

bool shim_takes_release(enum shim_call call, const void *addr, size_t len)
{
	if (is_dry)
		shim_say_would(call, shim_present_bytes(addr, len));
	return !is_dry;
}

bool shim_is_dry(void)
{
	return is_dry;
}

static void prepare_fork(void)
{
	shim_record_fork();
	shim_ahead_fork();
}

static void restart_in_child(void)
{
	owner_pid = current_pid();
	shim_record_child();
	shim_forget_working();
	shim_report_again();
	shim_prefault_forked();
	shim_ahead_forked();
	shim_main_forked();
}

static void read_min_bytes(const char *text)
{
	unsigned long long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return;
	value = strtoull(text, &end, 10);
	if (!*end && value && value <= SIZE_MAX)
		shim_min_bytes = (size_t)value;
}

/* Other settings of `ktask run` in the same list. */
static const char *const mode_names[] = { "dry",      "filter-ok",
					  "prefault", "prefault-wait",
					  "ahead",    "ahead-small",
					  "ahead-off" };

#define NR_MODES (int)(sizeof(mode_names) / sizeof(mode_names[0]))

/* A list that has only modes means all calls. */
static void read_calls(const char *text)
{
	unsigned mask = 0;
	bool mode = false;

	if (!text)
		return;
	for (;;) {
		size_t len = word_length(text);
		int call = word_index(text, len, shim_call_names,
				      SHIM_DEFAULT_CALLS);

		if (word_index(text, len, mode_names, NR_MODES) >= 0)
			mode = true;
		else if (call < 0 && len)
			return;
		if (call >= 0)
			mask |= 1u << call;
		if (!text[len])
			break;
		text += len + 1;
	}
	if (mask || !mode)
		calls_mask = mask;
	named_mask = mask;
}

static bool contains_address(const struct dl_phdr_info *object, uintptr_t addr,
			     uintptr_t *start, uintptr_t *end)
{
	bool found = false;

	*start = UINTPTR_MAX;
	*end = 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t first = object->dlpi_addr + part->p_vaddr;
		uintptr_t last = first + part->p_memsz;

		if (part->p_type != PT_LOAD)
			continue;
		found = found || (addr >= first && addr < last);
		*start = first < *start ? first : *start;
		*end = last > *end ? last : *end;
	}
	return found;
}

/* Neither libc nor the shim is an allocator of the program. */
static bool is_libc_or_shim(uintptr_t start, uintptr_t end)
{
	uintptr_t libc = (uintptr_t)gnu_get_libc_version;
	uintptr_t shim = (uintptr_t)known_allocators;

	return (libc >= start && libc < end) || (shim >= start && shim < end);
}

static void note_system(const struct dl_phdr_info *object)
{
	const uintptr_t inside[NR_SYSTEM_OBJECTS] = {
		(uintptr_t)gnu_get_libc_version,
		(uintptr_t)getauxval(AT_BASE),
	};
	uintptr_t start, end;

	for (int i = 0; i < NR_SYSTEM_OBJECTS; i++) {
		if (inside[i] < object->dlpi_addr ||
		    !contains_address(object, inside[i], &start, &end))
			continue;
		system_objects[i].start = start;
		system_objects[i].end = end;
	}
}

/* The largest array of zeros in the program itself: the program is the object whose
 * dlpi_name is empty. */
static struct {
	uintptr_t start;
	size_t len;
} static_memory;

static void note_static_memory(const struct dl_phdr_info *object)
{
	for (int i = 0; i < object->dlpi_phnum && !*object->dlpi_name; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		size_t len = part->p_memsz - part->p_filesz;

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_W) ||
		    len <= static_memory.len)
			continue;
		static_memory.start =
			object->dlpi_addr + part->p_vaddr + part->p_filesz;
		static_memory.len = len;
	}
}

static int note_object(struct dl_phdr_info *object, size_t size, void *unused)
{
	note_system(object);
	note_static_memory(object);
	for (int i = 0; i < NR_ALLOCATORS; i++) {
		uintptr_t at = (uintptr_t)known_allocators[i].function;
		uintptr_t start, end;

		if (at < object->dlpi_addr ||
		    !contains_address(object, at, &start, &end) ||
		    is_libc_or_shim(start, end))
			continue;
		known_allocators[i].start = start;
		known_allocators[i].end = end;
	}
	return 0;
}

static void read_objects(void)
{
	known_allocators[0].function = shim_allocator();
	known_allocators[1].function = (const void *)malloc;
	dl_iterate_phdr(note_object, NULL);
}

static bool is_set(const char *text)
{
	return text && *text && strcmp(text, "0");
}

/* --prefault makes whole mappings, which leaves nothing to make ahead. */
static void read_ahead(const char *mode)
{
	const char *engine = secure_getenv("KTASK_ENGINE");

	shim_ahead_small = word_list_has(mode, "ahead-small");
	/* Helpers of the watcher cannot use the device, which is a file. */
	if (engine && !strcmp(engine, "kernel"))
		return;
	if (shim_prefaults || word_list_has(mode, "ahead-off") ||
	    !(shim_ahead_small || word_list_has(mode, "ahead")))
		return;
	calls_mask |= 1u << SHIM_AHEAD;
	shim_ahead_min_bytes = shim_min_bytes;
	atomic_store(&shim_ahead_least_block, shim_min_bytes);
}

/*
 * The data that the loader writes begins on a page of its own, which holds all of it: a
 * page more would be two page faults more in each start of a program.  The first part of
 * it is the list of constructors, which the linker sorts by number.  Behind a constructor
 * there would be a gap of zeros, which the loader would call: those of sanitizers may have
 * number 0.  So has that of clang's --coverage, which no macro tells: of a shim that is built
 * so, small-programs-pay-nothing.bats finds the gap.
 */
#ifndef HAS_SANITIZER
__asm__(".pushsection .init_array.00001, \"aw\", %init_array\n\t"
	".balign 4096\n\t.popsection");
#endif

static void __attribute__((constructor)) shim_init(void)
{
	const char *report, *mode;

	shim_settings_copy();
	report = secure_getenv("KTASK_RUN_REPORT");
	mode = secure_getenv("KTASK_RUN_OPS");
	read_min_bytes(secure_getenv("KTASK_RUN_MIN"));
	read_calls(mode);
	if (is_set(report))
		report_target = report;
	is_dry = word_list_has(mode, "dry");
	shim_prefault_waits = word_list_has(mode, "prefault-wait");
	shim_prefaults = shim_prefault_waits || word_list_has(mode, "prefault");
	if (shim_prefaults)
		calls_mask |= 1u << SHIM_PREFAULT;
	read_ahead(mode);
	shim_main_init();
	shim_report_init(is_dry);
	shim_filter_init(word_list_has(mode, "filter-ok"));
	read_objects();
	if (pthread_atfork(prepare_fork, shim_record_parent, restart_in_child))
		return;
	owner_pid = current_pid();
	if (report_target)
		shim_record_init(secure_getenv(RUN_RECORDS_VARIABLE));
	shim_ahead_mapping((void *)static_memory.start, static_memory.len,
			   NULL);
}
