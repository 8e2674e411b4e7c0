/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where ktask does not know of what other machine the kernel runs programs, one of any
 * machine may start: a process that was replaced must not be missing in the report.
 *
 * The shim's own source, as it is compiled for such machines: ppc64, sparc64, and others.
 */
#include "ktest.h"

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

/* Only after the headers of the system. */
#undef __x86_64__
#undef __aarch64__
#include "util/program.c"

static char file_path[64];

static int make_file(void **state)
{
	int fd;

	strcpy(file_path, "/var/tmp/ktask-program.XXXXXX");
	fd = mkstemp(file_path);

	return fd < 0 || fchmod(fd, 0755) || close(fd) ? -1 : 0;
}

static int remove_file(void **state)
{
	return unlink(file_path);
}

static bool may_start_elf(unsigned type, unsigned machine)
{
	ElfW(Ehdr) elf = {
		.e_ident = ELFMAG,
		.e_type = (ElfW(Half))type,
		.e_machine = (ElfW(Half))machine,
	};
	int fd = open(file_path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, &elf, sizeof(elf)), sizeof(elf));
	close(fd);
	return program_may_start_at(AT_FDCWD, file_path, 0);
}

static void any_machine_may_be_the_kernels(void **state)
{
	static const unsigned machines[] = {
		EM_PPC, EM_PPC64, EM_SPARC, EM_SPARC32PLUS, EM_SPARCV9,
		EM_386, EM_ARM,	  EM_S390,  EM_MIPS,
	};

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(machines); i++) {
		assert_true(may_start_elf(ET_EXEC, machines[i]));
		assert_true(may_start_elf(ET_DYN, machines[i]));
	}
}

static void what_is_no_program_may_not(void **state)
{
	assert_true(may_start_elf(ET_DYN, __ehdr_start.e_machine));
	assert_false(may_start_elf(ET_REL, __ehdr_start.e_machine));
	assert_false(may_start_elf(ET_CORE, EM_PPC));
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)

KTEST_MAIN(T(any_machine_may_be_the_kernels), T(what_is_no_program_may_not))
