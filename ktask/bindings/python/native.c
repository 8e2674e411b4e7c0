/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the Python package ktask has in C: operations on memory and on files, with
 * the GIL released, and what the library tells of limits and jobs.
 *
 * Owns a buffer's export while an operation works on it, and the way of an
 * exception from a progress function or a signal handler through the library.
 * Does not own defaults, documentation and exceptions of its own: that is Python,
 * in ktask/__init__.py.  Compiled against the stable ABI of Python 3.11, the first
 * that has buffers.
 *
 * Behaves badly in a daemon thread that is inside an operation when the
 * interpreter ends: Python up to 3.13 ends that thread where it next takes the GIL.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ktask/ops.h>

/* An operation on less ends soon enough to let a signal wait. */
#define SIGNALS_BYTES ((uint64_t)16 << 20)

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
	bool raised; /* an exception is set: the call must end with it */
};

static int tell_progress(struct call *call, uint64_t done)
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
	if (!call->raised)
		call->raised =
			tell_progress(call, bytes_done(call, progress)) ||
			PyErr_CheckSignals();
	call->thread = PyEval_SaveThread();
	return call->raised;
}

/* Python handles signals in the thread that began the process, or that forked it. */
static bool is_main_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

static int init_call(struct call *call, uint64_t total, PyObject *progress)
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

static int run_call(struct call *call, const struct ktask_op *op,
		    const struct ktask_op_args *args)
{
	int error;

	call->thread = PyEval_SaveThread();
	error = ktask_op_run(op, args, &call->opts);
	PyEval_RestoreThread(call->thread);
	return error;
}

static const struct ktask_op *find_op(const char *name)
{
	const struct ktask_op *op = ktask_op_find(name);

	if (!op)
		PyErr_Format(PyExc_ValueError, "no operation '%s'", name);
	return op;
}

/* ---- memory ---- */

/* What an operation works on: [addr, addr + len), page edges aside. */
struct memory {
	Py_buffer
		view; /* its obj is NULL where the caller keeps the memory alive */
	uintptr_t addr;
	uint64_t len;
	bool is_readonly;
};

/* A buffer, or a tuple of an address, a length and whether it is read-only. */
static int get_memory(struct memory *memory, PyObject *object)
{
	unsigned long long addr, len;
	int is_readonly;

	memory->view.obj = NULL;
	if (PyTuple_Check(object)) {
		if (!PyArg_ParseTuple(object, "KKp", &addr, &len, &is_readonly))
			return -1;
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

static void put_memory(struct memory *memory)
{
	if (memory->view.obj)
		PyBuffer_Release(&memory->view);
}

/* All pages that have a byte of it. */
static void set_range(struct ktask_op_args *args, const struct memory *memory)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = memory->addr & ~(page - 1);

	if (!memory->len)
		return;
	args->addr = (void *)start;
	args->len = memory->len + (memory->addr - start);
}

/* In the memory that was asked for; -1: no byte is known to have failed. */
static long long fail_offset(const struct ktask_result *result, uintptr_t addr)
{
	uintptr_t pos = (uintptr_t)result->fail_pos;

	if (!pos)
		return -1;
	return pos > addr ? (long long)(pos - addr) : 0;
}

static PyObject *make_result(const struct call *call, int error,
			     long long offset)
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

static PyObject *run_on_memory(struct call *call, const struct ktask_op *op,
			       struct ktask_op_args *args,
			       const struct memory *memory)
{
	int error;

	set_range(args, memory);
	error = run_call(call, op, args);
	if (call->raised || (!error && tell_progress(call, memory->len)))
		return NULL;
	return make_result(call, error,
			   error ? fail_offset(&call->result, memory->addr)
				 : -1);
}

/*
 * run_memory(operation, memory, flags, flags of read-only memory or -1 where it
 * must be writable, threads, options, deadline in ns, progress)
 */
static PyObject *run_memory(PyObject *module, PyObject *tuple)
{
	struct call call = { .opts = KTASK_OPTS_INIT };
	struct ktask_op_args args = { 0 };
	unsigned long long deadline_ns;
	PyObject *object, *progress, *answer = NULL;
	const struct ktask_op *op;
	struct memory memory;
	int readonly_flags;
	const char *name;

	if (!PyArg_ParseTuple(tuple, "sOIiIIKO", &name, &object, &args.flags,
			      &readonly_flags, &call.opts.max_threads,
			      &call.opts.flags, &deadline_ns, &progress))
		return NULL;
	call.opts.deadline_ns = deadline_ns;
	op = find_op(name);
	if (!op || get_memory(&memory, object))
		return NULL;
	if (memory.is_readonly && readonly_flags < 0) {
		PyErr_SetString(PyExc_BufferError, "the memory is read-only");
	} else {
		if (memory.is_readonly)
			args.flags |= (unsigned)readonly_flags;
		if (!init_call(&call, memory.len, progress))
			answer = run_on_memory(&call, op, &args, &memory);
	}
	put_memory(&memory);
	return answer;
}

/* ---- files ---- */

/* (path as bytes or None, descriptor, offset, length or None) */
static int get_file(struct ktask_file *file, PyObject *tuple)
{
	PyObject *path, *len;
	char *name = NULL;
	unsigned long long offset;

	if (!PyTuple_Check(tuple)) {
		PyErr_SetString(PyExc_TypeError, "want tuples");
		return -1;
	}
	if (!PyArg_ParseTuple(tuple, "OiKO", &path, &file->fd, &offset, &len))
		return -1;
	if (path != Py_None && PyBytes_AsStringAndSize(path, &name, NULL))
		return -1;
	file->path = name;
	file->offset = offset;
	file->len = KTASK_TO_END;
	if (len != Py_None)
		file->len = PyLong_AsUnsignedLongLong(len);
	return PyErr_Occurred() ? -1 : 0;
}

/* [(index, errno, offset)] of those that failed */
static PyObject *list_failures(const struct ktask_file *files, Py_ssize_t nr)
{
	PyObject *list = PyList_New(0);

	for (Py_ssize_t i = 0; list && i < nr; i++) {
		PyObject *failure;

		if (!files[i].error)
			continue;
		failure =
			Py_BuildValue("(niK)", i, -files[i].error,
				      (unsigned long long)files[i].fail_offset);
		if (!failure || PyList_Append(list, failure))
			Py_CLEAR(list);
		Py_XDECREF(failure);
	}
	return list;
}

static PyObject *run_on_files(struct call *call, const struct ktask_op *op,
			      const struct ktask_op_args *args)
{
	int error = run_call(call, op, args);
	PyObject *result, *failures;

	if (call->raised || (!error && tell_progress(call, call->result.units)))
		return NULL;
	result = make_result(call, error, -1);
	failures = list_failures(args->files, (Py_ssize_t)args->nr_files);
	if (!result || !failures) {
		Py_XDECREF(result);
		Py_XDECREF(failures);
		return NULL;
	}
	return Py_BuildValue("(NN)", result, failures);
}

/*
 * run_files(operation, [file], bytes of all or 0, flags, threads, options, deadline in
 * ns, progress)
 */
static PyObject *run_files(PyObject *module, PyObject *tuple)
{
	struct call call = { .opts = KTASK_OPTS_INIT };
	struct ktask_op_args args = { 0 };
	PyObject *list, *progress, *answer = NULL;
	unsigned long long total, deadline_ns;
	const struct ktask_op *op;
	const char *name;
	Py_ssize_t nr;

	if (!PyArg_ParseTuple(tuple, "sOKIIIKO", &name, &list, &total,
			      &args.flags, &call.opts.max_threads,
			      &call.opts.flags, &deadline_ns, &progress))
		return NULL;
	call.opts.deadline_ns = deadline_ns;
	op = find_op(name);
	if (!op)
		return NULL;
	if (!PyList_Check(list)) {
		PyErr_SetString(PyExc_TypeError, "want a list");
		return NULL;
	}
	nr = PyList_Size(list);
	args.nr_files = (size_t)nr;
	args.files = PyMem_Calloc(args.nr_files + 1, sizeof(*args.files));
	if (!args.files)
		return PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < nr; i++)
		if (get_file(&args.files[i], PyList_GetItem(list, i)))
			goto free_files;
	call.scaled = true;
	if (!init_call(&call, total, progress))
		answer = run_on_files(&call, op, &args);
free_files:
	PyMem_Free(args.files);
	return answer;
}

/* ---- what the library tells ---- */

/* Steals a reference to the item, which may be NULL. */
static int append_item(PyObject *list, PyObject *item)
{
	int failed = !item || PyList_Append(list, item);

	Py_XDECREF(item);
	return failed ? -1 : 0;
}

#define NR_LIMITS 64

/* [(name, threads, why)] */
static PyObject *list_limits(PyObject *module, PyObject *none)
{
	struct ktask_limit limits[NR_LIMITS];
	unsigned nr = ktask_limits(limits, NR_LIMITS);
	PyObject *list = PyList_New(0);

	for (unsigned i = 0; list && i < nr && i < NR_LIMITS; i++)
		if (append_item(list, Py_BuildValue("(sIs)", limits[i].name,
						    limits[i].threads,
						    limits[i].why)))
			Py_CLEAR(list);
	return list;
}

/* What another user's process calls its job need not be text. */
static PyObject *make_job(const struct ktask_job_info *job)
{
	size_t length = strnlen(job->name, sizeof(job->name));
	PyObject *name =
		PyUnicode_DecodeUTF8(job->name, (Py_ssize_t)length, "replace");

	return name ? Py_BuildValue("(iINIIKKKK)", job->pid, job->uid, name,
				    job->helpers, job->wanted,
				    (unsigned long long)job->units_done,
				    (unsigned long long)job->units_total,
				    (unsigned long long)job->elapsed_ns,
				    (unsigned long long)job->remaining_ns)
		    : NULL;
}

#define NR_JOBS 1024

/* ([job], (helpers used, limit, shared, cut)) */
static PyObject *list_jobs(PyObject *module, PyObject *none)
{
	struct ktask_job_info *jobs = PyMem_Calloc(NR_JOBS, sizeof(*jobs));
	struct ktask_permits_info permits;
	PyObject *list = PyList_New(0);
	PyThreadState *thread;
	unsigned nr;

	if (!jobs || !list) {
		PyMem_Free(jobs);
		Py_XDECREF(list);
		return PyErr_NoMemory();
	}
	thread = PyEval_SaveThread();
	nr = ktask_jobs(jobs, NR_JOBS, &permits);
	PyEval_RestoreThread(thread);
	for (unsigned i = 0; list && i < nr && i < NR_JOBS; i++)
		if (append_item(list, make_job(&jobs[i])))
			Py_CLEAR(list);
	PyMem_Free(jobs);
	return list ? Py_BuildValue("(N(IIOO))", list, permits.used,
				    permits.limit,
				    permits.shared ? Py_True : Py_False,
				    permits.cut ? Py_True : Py_False)
		    : NULL;
}

static PyObject *get_version(PyObject *module, PyObject *none)
{
	return PyUnicode_FromString(ktask_version());
}

static PyObject *trim_helpers(PyObject *module, PyObject *none)
{
	PyThreadState *thread = PyEval_SaveThread();
	unsigned nr = ktask_trim();

	PyEval_RestoreThread(thread);
	return PyLong_FromUnsignedLong(nr);
}

static PyMethodDef native_methods[] = {
	{ "run_memory", run_memory, METH_VARARGS, NULL },
	{ "run_files", run_files, METH_VARARGS, NULL },
	{ "list_limits", list_limits, METH_NOARGS, NULL },
	{ "list_jobs", list_jobs, METH_NOARGS, NULL },
	{ "trim_helpers", trim_helpers, METH_NOARGS, NULL },
	{ "get_version", get_version, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static int add_constants(PyObject *module)
{
	static const struct {
		const char *name;
		long value;
	} known_constants[] = {
		{ "POPULATE_READ", KTASK_POPULATE_READ },
		{ "POPULATE_TOUCH", KTASK_POPULATE_TOUCH },
		{ "FILE_DIRECT", KTASK_FILE_DIRECT },
		{ "FIXED", KTASK_FIXED },
	};

	for (size_t i = 0;
	     i < sizeof(known_constants) / sizeof(known_constants[0]); i++)
		if (PyModule_AddIntConstant(module, known_constants[i].name,
					    known_constants[i].value))
			return -1;
	return 0;
}

static PyModuleDef_Slot native_slots[] = {
	{ Py_mod_exec, add_constants },
	{ 0, NULL },
};

static struct PyModuleDef native_module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "ktask._native",
	.m_methods = native_methods,
	.m_slots = native_slots,
};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
	return PyModuleDef_Init(&native_module);
}
