/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What all calls of the Python extension share: the memory that they work on, and the
 * way of progress, signals and exceptions between Python and the library.
 */
#ifndef KTASK_PYCALL_H
#define KTASK_PYCALL_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <ktask/ops.h>

/*
 * A call of an operation.  Its progress function runs in the thread that called,
 * so that the exception that it left stays with that thread.
 */
struct call {
	struct ktask_opts opts;
	struct ktask_result result;
	PyObject *progress; /* told how many bytes more are done; NULL: none */
	PyThreadState *thread; /* while the GIL is released */
	uint64_t
		total; /* bytes; more than these are never told; 0: not known */
	uint64_t told; /* bytes */
	bool scaled; /* the library does not count bytes */
	int stop; /* not 0: an exception of its progress function ends it */
	PyObject *raised[3]; /* an exception: the call must end with it */
};

/**
 * call_init - set options and result
 * @total: bytes that progress adds up to
 * @progress: a function or None
 *
 * Return: 0; -1 with an exception.
 */
int call_init(struct call *call, uint64_t total, PyObject *progress);

/** call_tell - tell the progress function that so many bytes are done; 0 or -1 */
int call_tell(struct call *call, uint64_t done);

/** call_keep_exception - end the call with the exception that is set; -1 */
int call_keep_exception(struct call *call);

/** call_raise - is there an exception to end with?  It is then set. */
bool call_raise(struct call *call);

/** call_result - (errno, offset, bytes, chunks, threads, wall ns, CPU ns) */
PyObject *call_result(const struct call *call, int error, long long offset);

/* What an operation works on: [addr, addr + len), page edges aside. */
struct memory {
	Py_buffer view; /* its obj is NULL where an address was given */
	PyObject *
		owner; /* of the memory at an address; NULL: the caller's care */
	uintptr_t addr;
	uint64_t len;
	bool is_readonly;
};

/**
 * memory_get - of a buffer, or a tuple: address, length, is it read-only, and, if
 * there is one, the object that must live as long as the memory is used; 0 or -1
 */
int memory_get(struct memory *memory, PyObject *object);

/** memory_put - let a buffer or the owner go; may be called twice */
void memory_put(struct memory *memory);

/** memory_offset - the first byte that failed; -1: none is known to have */
long long memory_offset(const struct ktask_result *result, uintptr_t addr);

/** list_append - steals a reference to the item, which may be NULL; 0 or -1 */
int list_append(PyObject *list, PyObject *item);

/* Methods of the module that are elsewhere: pyregister.c. */
PyObject *register_memory(PyObject *module, PyObject *tuple);
PyObject *unregister_memory(PyObject *module, PyObject *tuple);
PyObject *list_pieces(PyObject *module, PyObject *capsule);

#endif /* KTASK_PYCALL_H */
