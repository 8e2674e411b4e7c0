/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the dynamic loader will do with a program: see program.h.
 *
 * Does not see rights that a security module gives, nor programs that start others.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "binfmt_misc.h"
#include "capability.h"
#include "launcher_note.h"
#include "program.h"

/* The kernel reads no more files to start one: five scripts, and a program. */
#define READS_MAX 6
#define HEADERS_MAX 256
/* Bytes of notes that are read. */
#define NOTES_MAX 1024
/* Less than PATH_MAX, because the stack may be a signal handler's.  Longer names are not
 * checked. */
#define NAME_BYTES 1024

static bool is_program(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Search PATH as execvp(3) does for a name without a slash.  @fits checks each path. */
static bool search_path(const char *name, char *path, size_t size,
			bool (*fits)(const char *path))
{
	const char *directories = getenv("PATH");

	for (directories = directories ? directories : "/bin:/usr/bin";;) {
		size_t len = strcspn(directories, ":");

		if (snprintf(path, size, "%.*s%s%s", (int)len, directories,
			     len ? "/" : "", name) < (int)size &&
		    fits(path))
			return true;
		if (!directories[len])
			return false;
		directories += len + 1;
	}
}

static bool find_program(const char *name, char *path, size_t size)
{
	if (!strchr(name, '/'))
		return search_path(name, path, size, is_program);
	return snprintf(path, size, "%s", name) < (int)size && is_program(path);
}

/* The beginning of a file, with a zero behind it. */
struct head {
	ssize_t len;
	union {
		ElfW(Ehdr) elf;
		char text[BINFMT_HEAD_BYTES + 1];
	};
};

static void read_head(int fd, struct head *head)
{
	memset(head, 0, sizeof(*head));
	head->len = read(fd, head->text, sizeof(head->text) - 1);
}

static bool is_elf(const struct head *head)
{
	return head->len >= (ssize_t)sizeof(head->elf) &&
	       !memcmp(head->elf.e_ident, ELFMAG, SELFMAG);
}

static bool begins_script(const struct head *head)
{
	return head->len > 2 && !memcmp(head->text, "#!", 2);
}

/* "#! INTERPRETER [ARGUMENT]" */
static bool find_interpreter(const char *line, char *path, size_t size)
{
	size_t len;

	line += 2 + strspn(line + 2, " \t");
	len = strcspn(line, " \t\n");
	return len && snprintf(path, size, "%.*s", (int)len, line) < (int)size;
}

/* The launcher becomes a program that has an interpreter. */
static bool is_launcher(int fd, off_t at, size_t len)
{
	struct {
		ElfW(Nhdr) head;
		char name[sizeof(LAUNCHER_NOTE_NAME)];
	} note;
	const off_t end = at + (off_t)(len < NOTES_MAX ? len : NOTES_MAX);

	while (at < end &&
	       pread(fd, &note, sizeof(note), at) == (ssize_t)sizeof(note)) {
		if (note.head.n_type == LAUNCHER_NOTE_TYPE &&
		    note.head.n_namesz == sizeof(note.name) &&
		    !memcmp(note.name, LAUNCHER_NOTE_NAME, sizeof(note.name)))
			return true;
		at += (off_t)sizeof(note.head) +
		      (((off_t)note.head.n_namesz + 3) & ~3) +
		      (((off_t)note.head.n_descsz + 3) & ~3);
	}
	return false;
}

static bool has_interpreter(int fd, const ElfW(Ehdr) * elf)
{
	ElfW(Phdr) header;

	for (int i = 0; i < elf->e_phnum && i < HEADERS_MAX; i++) {
		off_t at = (off_t)elf->e_phoff + i * (off_t)elf->e_phentsize;

		if (pread(fd, &header, sizeof(header), at) !=
		    (ssize_t)sizeof(header))
			return true;
		if (header.p_type == PT_INTERP ||
		    (header.p_type == PT_NOTE &&
		     is_launcher(fd, (off_t)header.p_offset, header.p_filesz)))
			return true;
	}
	return false;
}

static bool gains_nothing(int fd)
{
	struct statvfs fs;

	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) > 0 ||
	       (!fstatvfs(fd, &fs) && fs.f_flag & ST_NOSUID);
}

static const char *gained_rights(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || gains_nothing(fd))
		return NULL;
	if ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	    ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	     st.st_gid != getgid()))
		return "it is a set-user-ID or set-group-ID program, for which "
		       "the loader ignores what is preloaded";
	if (getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return "its file gives it capabilities, for which the loader "
		       "ignores what is preloaded";
	return NULL;
}

static const char *judge_elf(int fd, const ElfW(Ehdr) * elf)
{
	int ours = sizeof(elf->e_entry) == 8 ? ELFCLASS64 : ELFCLASS32;

	if (elf->e_ident[EI_CLASS] != ours)
		return "it is a program for another kind of machine than ktask";
	if (!has_interpreter(fd, elf))
		return "it is linked statically, so that nothing can be preloaded";
	return gained_rights(fd);
}

/* @path: for a script, set to the interpreter's; *again: judge that file next. */
static const char *judge_file(char *path, size_t size, bool *again)
{
	const char *why = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct head head;

	*again = false;
	if (fd < 0)
		return NULL;
	read_head(fd, &head);
	if (begins_script(&head))
		*again = find_interpreter(head.text, path, size);
	else if (is_elf(&head))
		why = judge_elf(fd, &head.elf);
	close(fd);
	return why;
}

const char *program_why_not(const char *name)
{
	char path[NAME_BYTES];
	bool again = find_program(name, path, sizeof(path));
	const char *why = NULL;

	for (int i = 0; again && i < READS_MAX; i++)
		why = judge_file(path, sizeof(path), &again);
	return why;
}

bool program_exists(const char *name)
{
	char path[NAME_BYTES];

	return find_program(name, path, sizeof(path));
}

/*
 * Check the rights that count for exec; access(2) checks those of the real user.  The
 * group's bits may also be the mask of an access control list.
 */
static bool may_execute(const struct stat *st)
{
	mode_t bits = S_IXGRP | S_IXOTH;

	if (st->st_uid == geteuid())
		bits |= S_IXUSR;
	return S_ISREG(st->st_mode) &&
	       (st->st_mode & bits ||
		(st->st_mode & S_IXUSR && has_capability(CAP_DAC_OVERRIDE)));
}

/* Nothing may be executed on such a file system.  If that cannot be found out, it may. */
static bool is_noexec(int dir, const char *path, int flags)
{
	bool own = flags & AT_EMPTY_PATH && !*path;
	int fd = own ? dir : openat(dir, path, O_PATH | O_CLOEXEC);
	struct statvfs fs;
	bool found = fd >= 0 && !fstatvfs(fd, &fs) && fs.f_flag & ST_NOEXEC;

	if (!own && fd >= 0)
		close(fd);
	return found;
}

static bool is_executable(int dir, const char *path, int flags)
{
	struct stat st;

	return !fstatat(dir, path, &st, flags & AT_EMPTY_PATH) &&
	       may_execute(&st) && !is_noexec(dir, path, flags);
}

/* ---- what is in a file ---- */

enum format {
	FORMAT_KNOWN,
	FORMAT_UNKNOWN, /* ENOEXEC */
	FORMAT_BROKEN, /* it is known, but what is to run it is not there */
};

/* Not by @dir itself, whose offset is the program's, and which may be O_PATH.
 * Return: whether it could be read. */
static bool read_head_at(int dir, const char *path, int flags,
			 struct head *head)
{
	char own[32];
	int fd;

	if (flags & AT_EMPTY_PATH && !*path) {
		snprintf(own, sizeof(own), "/proc/self/fd/%d", dir);
		path = own;
	}
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	read_head(fd, head);
	close(fd);
	return head->len >= 0;
}

/* The 32-bit machine whose programs a 64-bit kernel can run; EM_NONE: not known. */
#if defined(__x86_64__)
#define OTHER_MACHINE EM_386
#elif defined(__aarch64__)
#define OTHER_MACHINE EM_ARM
#else
#define OTHER_MACHINE EM_NONE
#endif

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* If that is not known, accept any machine: two reports are better than none. */
static bool is_known_machine(unsigned machine)
{
	return machine == __ehdr_start.e_machine || machine == OTHER_MACHINE ||
	       OTHER_MACHINE == EM_NONE;
}

static bool is_known_elf(const struct head *head)
{
	return is_elf(head) &&
	       (head->elf.e_type == ET_EXEC || head->elf.e_type == ET_DYN) &&
	       is_known_machine(head->elf.e_machine);
}

/* A path behind a descriptor that exec closes: the kernel starts no interpreter, which
 * could not open the file. */
static bool is_lost_by_exec(int dir, const char *path)
{
	return dir != AT_FDCWD && *path != '/' &&
	       fcntl(dir, F_GETFD) & FD_CLOEXEC;
}

/* False if the interpreter's name continues beyond what the kernel reads. */
static bool is_script(const struct head *head, char *path, size_t size)
{
	size_t at = 2 + strspn(head->text + 2, " \t");

	return begins_script(head) &&
	       at + strcspn(head->text + at, " \t\n") < BINFMT_HEAD_BYTES &&
	       find_interpreter(head->text, path, size);
}

/* The format of a file whose interpreters, if any, can be started as well. */
static enum format find_format(int dir, const char *path, int flags)
{
	char interpreters[2][BINFMT_HEAD_BYTES];
	struct head head;

	for (int i = 0; i < READS_MAX; i++) {
		char *next = interpreters[i % 2];

		if (!read_head_at(dir, path, flags, &head))
			return FORMAT_KNOWN;
		if (!binfmt_misc_matches(head.text, path, next,
					 sizeof(*interpreters)) &&
		    !is_script(&head, next, sizeof(*interpreters)))
			return is_known_elf(&head) ? FORMAT_KNOWN
						   : FORMAT_UNKNOWN;
		if (is_lost_by_exec(dir, path))
			return FORMAT_BROKEN;
		if (!*next)
			return FORMAT_KNOWN;
		if (!is_executable(AT_FDCWD, next, 0))
			return FORMAT_BROKEN;
		dir = AT_FDCWD;
		path = next;
		flags = 0;
	}
	return FORMAT_BROKEN;
}

bool program_may_start_at(int dir, const char *path, int flags)
{
	return is_executable(dir, path, flags) &&
	       find_format(dir, path, flags) == FORMAT_KNOWN;
}

/* A shell runs what has no format. */
static bool may_start(const char *path)
{
	return is_executable(AT_FDCWD, path, 0) &&
	       find_format(AT_FDCWD, path, 0) != FORMAT_BROKEN;
}

bool program_may_start(const char *name)
{
	char path[NAME_BYTES];

	return strchr(name, '/')
		       ? may_start(name)
		       : search_path(name, path, sizeof(path), may_start);
}
