/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A plugin of QEMU: an emulated CPU that spins gives the host's CPU away.
 *
 * With a thread for each emulated CPU one spins, by PAUSE, until another has taken a
 * lock or an interrupt.  Where a guest has more CPUs than the host has free, the thread
 * of that other one often waits for the very CPU that is spun on.  So each PAUSE is a
 * sched_yield(), which does nothing while nobody else wants to run: CPUs race as before.
 *
 * Owns nothing else of the emulation.  tests/vm/Yielding.pm builds and tries it: a QEMU
 * whose interface has no version 4 refuses it, and guests run without.
 */
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))
#define NO_REGISTERS 0 /* QEMU_PLUGIN_CB_NO_REGS */

struct qemu_plugin_tb;
struct qemu_plugin_insn;

/* What there is of qemu-plugin.h that this needs; few machines have that file. */
typedef void (*block_callback)(uint64_t id, struct qemu_plugin_tb *block);
typedef void (*insn_callback)(unsigned cpu, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   block_callback callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t nr);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to,
			     size_t size);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    insn_callback callback, int flags,
					    void *data);

EXPORTED int qemu_plugin_version = 4;

EXPORTED int qemu_plugin_install(uint64_t id, const void *info, int argc,
				 char **argv);

static void yield_thread(unsigned cpu, void *data)
{
	(void)cpu;
	(void)data;
	sched_yield();
}

/* QEMU ends a block behind a PAUSE. */
static void watch_pause(uint64_t id, struct qemu_plugin_tb *block)
{
	size_t nr = qemu_plugin_tb_n_insns(block);
	struct qemu_plugin_insn *last;
	unsigned char code[2];

	(void)id;
	if (!nr)
		return;
	last = qemu_plugin_tb_get_insn(block, nr - 1);
	if (qemu_plugin_insn_data(last, code, sizeof(code)) == sizeof(code) &&
	    code[0] == 0xf3 && code[1] == 0x90)
		qemu_plugin_register_vcpu_insn_exec_cb(last, yield_thread,
						       NO_REGISTERS, NULL);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(id, watch_pause);
	return 0;
}
