/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Runs the program of a system call filter, to find out its verdict on a call.
 *
 * It is classic BPF as far as the kernel allows it to filters: 32-bit loads from the
 * description of the call, 16 words of memory, jumps forward only.  A program that the
 * kernel would refuse gives an arbitrary verdict, but it terminates.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "preload/shim.h"

struct machine {
	uint32_t a, x;
	uint32_t memory[BPF_MEMWORDS];
};

static uint32_t load_word(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word = 0;

	if (offset <= sizeof(*data) - sizeof(word))
		memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

static uint32_t load_value(const struct machine *m, const struct sock_filter *f,
			   const struct seccomp_data *data)
{
	switch (BPF_MODE(f->code)) {
	case BPF_ABS:
		return load_word(data, f->k);
	case BPF_LEN:
		return sizeof(*data);
	case BPF_MEM:
		return m->memory[f->k % BPF_MEMWORDS];
	default:
		return f->k;
	}
}

static uint32_t compute_alu(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	case BPF_NEG:
		return -a;
	default:
		return a;
	}
}

static bool compare_jump(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default:
		return (a & b) != 0;
	}
}

/* Return: how many instructions to skip. */
static uint32_t run_instruction(struct machine *m, const struct sock_filter *f,
				const struct seccomp_data *data)
{
	uint32_t operand = BPF_SRC(f->code) == BPF_X ? m->x : f->k;

	switch (BPF_CLASS(f->code)) {
	case BPF_LD:
		m->a = load_value(m, f, data);
		return 0;
	case BPF_LDX:
		m->x = load_value(m, f, data);
		return 0;
	case BPF_ST:
		m->memory[f->k % BPF_MEMWORDS] = m->a;
		return 0;
	case BPF_STX:
		m->memory[f->k % BPF_MEMWORDS] = m->x;
		return 0;
	case BPF_ALU:
		m->a = compute_alu(f->code, m->a, operand);
		return 0;
	case BPF_JMP:
		if (BPF_OP(f->code) == BPF_JA)
			return f->k;
		return compare_jump(f->code, m->a, operand) ? f->jt : f->jf;
	default:
		if (BPF_MISCOP(f->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		return 0;
	}
}

uint32_t shim_bpf_run(const void *program, const struct seccomp_data *data)
{
	const struct sock_fprog *prog = program;
	struct machine machine = { 0 };
	uint64_t pc = 0;

	while (pc < prog->len) {
		const struct sock_filter *f = &prog->filter[pc];

		if (BPF_CLASS(f->code) == BPF_RET)
			return BPF_RVAL(f->code) == BPF_A ? machine.a : f->k;
		pc += 1 + (uint64_t)run_instruction(&machine, f, data);
	}
	return SECCOMP_RET_KILL_PROCESS;
}
