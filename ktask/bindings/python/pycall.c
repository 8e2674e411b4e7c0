/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls of the library from Python: see pycall.h.
 */
#include "pycall.h"

#include <sys/syscall.h>
#include <unistd.h>

/* An operation on less ends soon enough to let a signal wait. */
#define SIGNALS_BYTES ((uint64_t)16 << 20)

/* Kept apart: what is undone may call Python as well. */
int call_keep_exception(struct call *call)
{
	if (call->raised[0])
		PyErr_WriteUnraisable(NULL);
	else
		PyErr_Fetch(&call->raised[0], &call->raised[1],
			    &call->raised[2]);
	return -1;
}

/* Is there one?  It is then set again. */
bool call_raise(struct call *call)
{
	if (!call->raised[0])
		return false;
	PyErr_Restore(call->raised[0], call->raised[1], call->raised[2]);
	return true;
}

int call_tell(struct call *call, uint64_t done)
{
	PyObject *answer;
	uint64_t more;

	if (call->total && done > call->total)
		done = call->total;
	if (!call->progress || done <= call->told)
		return 0;
	more = done - call->told;
	call->told = done;
	answer = PyObject_CallFunction(call->progress, "K",
				       (unsigned long long)more);
	Py_XDECREF(answer);
	return answer ? 0 : -1;
}

/* Of files units are more than bytes: each begins at a round position. */
static uint64_t bytes_done(const struct call *call,
			   const struct ktask_progress *progress)
{
	if (call->scaled && progress->units_total)
		return (uint64_t)((double)progress->units_done /
				  (double)progress->units_total *
				  (double)call->total);
	return progress->units_done;
}

static int report_progress(const struct ktask_progress *progress, void *arg)
{
	struct call *call = arg;

	PyEval_RestoreThread(call->thread);
	/* After an exception of a device's function nothing more is told. */
	if (!call->raised[0] && (call_tell(call, bytes_done(call, progress)) ||
				 PyErr_CheckSignals()))
		call->stop = call_keep_exception(call);
	call->thread = PyEval_SaveThread();
	return call->stop;
}

/* Python handles signals in the thread that began the process, or that forked it. */
static bool is_main_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

int call_init(struct call *call, uint64_t total, PyObject *progress)
{
	if (progress != Py_None && !PyCallable_Check(progress)) {
		PyErr_SetString(PyExc_TypeError, "progress must be callable");
		return -1;
	}
	call->result = (struct ktask_result)KTASK_RESULT_INIT;
	call->opts.result = &call->result;
	call->progress = progress == Py_None ? NULL : progress;
	call->total = total;
	if (!call->progress && !call->scaled && total < SIGNALS_BYTES)
		return 0;
	if (!call->progress && !is_main_thread())
		return 0;
	call->opts.progress_func = report_progress;
	call->opts.progress_arg = call;
	return 0;
}

/* Steals a reference to the item, which may be NULL. */
int list_append(PyObject *list, PyObject *item)
{
	int failed = !item || PyList_Append(list, item);

	Py_XDECREF(item);
	return failed ? -1 : 0;
}

int memory_get(struct memory *memory, PyObject *object)
{
	unsigned long long addr, len;
	int is_readonly;

	memory->view.obj = NULL;
	memory->owner = NULL;
	if (PyTuple_Check(object)) {
		if (!PyArg_ParseTuple(object, "KKp|O", &addr, &len,
				      &is_readonly, &memory->owner))
			return -1;
		Py_XINCREF(memory->owner);
		memory->addr = (uintptr_t)addr;
		memory->len = len;
		memory->is_readonly = is_readonly;
		return 0;
	}
	if (PyObject_GetBuffer(object, &memory->view, PyBUF_ANY_CONTIGUOUS))
		return -1;
	memory->addr = (uintptr_t)memory->view.buf;
	memory->len = (uint64_t)memory->view.len;
	memory->is_readonly = memory->view.readonly;
	return 0;
}

void memory_put(struct memory *memory)
{
	PyObject *owner = memory->owner;

	if (memory->view.obj)
		PyBuffer_Release(&memory->view);
	memory->view.obj = NULL;
	/* Its end may call anything. */
	memory->owner = NULL;
	Py_XDECREF(owner);
}

/* In the memory that was asked for; -1: no byte is known to have failed. */
long long memory_offset(const struct ktask_result *result, uintptr_t addr)
{
	uintptr_t pos = (uintptr_t)result->fail_pos;

	if (!pos)
		return -1;
	return pos > addr ? (long long)(pos - addr) : 0;
}

PyObject *call_result(const struct call *call, int error, long long offset)
{
	const struct ktask_result *result = &call->result;
	uint64_t units = result->units;

	/* Of memory they are whole pages. */
	if (!call->scaled && units > call->total)
		units = call->total;
	return Py_BuildValue(
		"(iLKKIKK)", -error, offset, (unsigned long long)units,
		(unsigned long long)result->chunks, result->threads,
		(unsigned long long)result->wall_ns,
		(unsigned long long)result->cpu_ns);
}
