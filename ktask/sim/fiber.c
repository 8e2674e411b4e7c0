/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fibers: in assembly on x86-64, by ucontext elsewhere.  swapcontext(3) makes a system
 * call, and a simulated job switches some thousand times.
 *
 * The sanitizers are told of each switch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "sim/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES (512 * 1024)
#else
#define STACK_BYTES (128 * 1024)
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

struct fiber {
	void *sp; /* x86-64: where it was left */
	ucontext_t context; /* elsewhere */
	char *stack; /* NULL: the program's own */
	size_t size;
	void (*func)(void *arg);
	void *arg;
	struct fiber *next; /* of those that were given back */
	void *fake; /* the address sanitizer's */
	void *tsan;
};

static struct fiber main_fiber, *free_fibers;

/* The fiber that is switched to: enter_fiber() takes no argument. */
static struct fiber *fiber_entered;
#if defined(__SANITIZE_ADDRESS__)
static struct fiber *fiber_left;
#endif

struct fiber *fiber_main(void)
{
#if defined(__SANITIZE_THREAD__)
	main_fiber.tsan = __tsan_get_current_fiber();
#endif
	return &main_fiber;
}

static void finish_switch(struct fiber *self)
{
#if defined(__SANITIZE_ADDRESS__)
	const void *bottom;
	size_t size;

	__sanitizer_finish_switch_fiber(self->fake, &bottom, &size);
	if (fiber_left == &main_fiber) {
		main_fiber.stack = (char *)bottom;
		main_fiber.size = size;
	}
#else
	(void)self;
#endif
}

__attribute__((noreturn, used)) static void enter_fiber(void)
{
	struct fiber *self = fiber_entered;

	finish_switch(self);
	self->func(self->arg);
	abort();
}

#ifdef __x86_64__
/* Saves the callee-saved registers, and the stack pointer in *rdi. */
__asm__(".text\n"
	".type swap_stacks, @function\n"
	"swap_stacks:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size swap_stacks, .-swap_stacks\n");

void swap_stacks(void **save, void *sp);

#define NR_SAVED 6

static void prepare_stack(struct fiber *fiber)
{
	void **sp = (void **)(fiber->stack + fiber->size);

	/* As after a call: the stack is aligned but for the return address. */
	*--sp = NULL;
	*--sp = (void *)enter_fiber;
	for (int i = 0; i < NR_SAVED; i++)
		*--sp = NULL;
	fiber->sp = sp;
}

static void swap_fibers(struct fiber *from, struct fiber *to)
{
	swap_stacks(&from->sp, to->sp);
}
#else
static void prepare_stack(struct fiber *fiber)
{
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = fiber->size;
	fiber->context.uc_link = NULL;
	makecontext(&fiber->context, enter_fiber, 0);
}

static void swap_fibers(struct fiber *from, struct fiber *to)
{
	swapcontext(&from->context, &to->context);
}
#endif

static struct fiber *new_fiber(void)
{
	struct fiber *fiber = calloc(1, sizeof(*fiber));

	if (fiber)
		fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				    -1, 0);
	if (!fiber || fiber->stack == MAP_FAILED) {
		fprintf(stderr, "sim: no memory for a stack\n");
		exit(1);
	}
	fiber->size = STACK_BYTES;
#if defined(__SANITIZE_THREAD__)
	fiber->tsan = __tsan_create_fiber(0);
#endif
	return fiber;
}

struct fiber *fiber_make(void (*func)(void *arg), void *arg)
{
	struct fiber *fiber = free_fibers;

	if (fiber)
		free_fibers = fiber->next;
	else
		fiber = new_fiber();
	fiber->func = func;
	fiber->arg = arg;
	fiber->fake = NULL;
#if defined(__SANITIZE_ADDRESS__)
	/* The fiber that had it before may have left poisoned frames. */
	__asan_unpoison_memory_region(fiber->stack, fiber->size);
#endif
	prepare_stack(fiber);
	return fiber;
}

void fiber_put(struct fiber *fiber)
{
	fiber->next = free_fibers;
	free_fibers = fiber;
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
	fiber_entered = to;
#if defined(__SANITIZE_ADDRESS__)
	fiber_left = from;
	__sanitizer_start_switch_fiber(&from->fake, to->stack, to->size);
#endif
#if defined(__SANITIZE_THREAD__)
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
	swap_fibers(from, to);
	finish_switch(from);
}
