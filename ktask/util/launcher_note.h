/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The note by which the launcher (launch/) is known.  It is a static program, but it
 * becomes one into which a library can be preloaded.
 */
#ifndef KTASK_UTIL_LAUNCHER_NOTE_H
#define KTASK_UTIL_LAUNCHER_NOTE_H

#define LAUNCHER_NOTE_NAME "ktask"
#define LAUNCHER_NOTE_TYPE 1

/* At file scope: lengths of the name and of what follows it, type, name, nothing. */
#define LAUNCHER_NOTE                                        \
	__asm__(".pushsection .note.ktask, \"a\", %note\n\t" \
		".balign 4\n\t.long 6, 4, 1\n\t"             \
		".asciz \"" LAUNCHER_NOTE_NAME "\"\n\t"      \
		".balign 4\n\t.long 0\n\t.popsection");

#endif /* KTASK_UTIL_LAUNCHER_NOTE_H */
