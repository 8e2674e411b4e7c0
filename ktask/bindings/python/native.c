/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the Python package ktask has in C: operations on memory and on files, with
 * the GIL released, and what the library tells of limits and jobs.
 *
 * Owns the operations and the module; registering is in pyregister.c, what both share
 * in pycall.c.  Does not own defaults, documentation and exceptions of its own: that
 * is Python, in ktask/__init__.py.  An extension, since a call by ctypes takes four
 * times as long (7.5 us, 1.9) and cannot tell where Ctrl-C came.  Compiled against the stable ABI of Python 3.11, the first
 * that has buffers.
 *
 * Behaves badly in a daemon thread that is inside an operation when the
 * interpreter ends: Python up to 3.13 ends that thread where it next takes the GIL.
 */
#include "pycall.h"

#include <string.h>
#include <unistd.h>

#include <ktask/register.h>

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

static PyObject *run_on_memory(struct call *call, const struct ktask_op *op,
			       struct ktask_op_args *args,
			       const struct memory *memory)
{
	int error;

	set_range(args, memory);
	error = run_call(call, op, args);
	if (call_raise(call) || (!error && call_tell(call, memory->len)))
		return NULL;
	return call_result(call, error,
			   error ? memory_offset(&call->result, memory->addr)
				 : -1);
}

/*
 * run_memory(operation, memory, flags, flags of read-only memory or -1 where it
 * must be writable, threads, options, deadline in ns, progress)
 */
static PyObject *run_memory(PyObject *module, PyObject *tuple)
{
	struct call call = { .opts = KTASK_OPTS_INIT };
	struct ktask_op_args args = KTASK_OP_ARGS_INIT;
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
	if (!op || memory_get(&memory, object))
		return NULL;
	if (memory.is_readonly && readonly_flags < 0) {
		PyErr_SetString(PyExc_BufferError, "the memory is read-only");
	} else {
		if (memory.is_readonly)
			args.flags |= (unsigned)readonly_flags;
		if (!call_init(&call, memory.len, progress))
			answer = run_on_memory(&call, op, &args, &memory);
	}
	memory_put(&memory);
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
	*file = (struct ktask_file)KTASK_FILE_INIT;
	if (!PyArg_ParseTuple(tuple, "OiKO", &path, &file->fd, &offset, &len))
		return -1;
	if (path != Py_None && PyBytes_AsStringAndSize(path, &name, NULL))
		return -1;
	file->path = name;
	file->offset = offset;
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

	if (call_raise(call) || (!error && call_tell(call, call->result.units)))
		return NULL;
	result = call_result(call, error, -1);
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
	struct ktask_op_args args = KTASK_OP_ARGS_INIT;
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
	if (!call_init(&call, total, progress))
		answer = run_on_files(&call, op, &args);
free_files:
	PyMem_Free(args.files);
	return answer;
}

/* ---- what the library tells ---- */

#define NR_LIMITS 64

/* [(name, threads, why)] */
static PyObject *list_limits(PyObject *module, PyObject *none)
{
	struct ktask_limit limits[NR_LIMITS] = { KTASK_LIMIT_INIT };
	unsigned nr = (unsigned)ktask_limits(limits, NR_LIMITS);
	PyObject *list = PyList_New(0);

	for (unsigned i = 0; list && i < nr && i < NR_LIMITS; i++)
		if (list_append(list, Py_BuildValue("(sIs)", limits[i].name,
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
	struct ktask_permits_info permits = KTASK_PERMITS_INFO_INIT;
	PyObject *list = PyList_New(0);
	PyThreadState *thread;
	unsigned nr;

	if (!jobs || !list) {
		PyMem_Free(jobs);
		Py_XDECREF(list);
		return PyErr_NoMemory();
	}
	jobs[0] = (struct ktask_job_info)KTASK_JOB_INFO_INIT;
	thread = PyEval_SaveThread();
	nr = (unsigned)ktask_jobs(jobs, NR_JOBS, &permits);
	PyEval_RestoreThread(thread);
	for (unsigned i = 0; list && i < nr && i < NR_JOBS; i++)
		if (list_append(list, make_job(&jobs[i])))
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
	{ "register_memory", register_memory, METH_VARARGS, NULL },
	{ "unregister_memory", unregister_memory, METH_VARARGS, NULL },
	{ "list_pieces", list_pieces, METH_O, NULL },
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
		{ "REGISTER_PRESENT", KTASK_REGISTER_PRESENT },
		{ "REGISTER_READ", KTASK_REGISTER_READ },
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
