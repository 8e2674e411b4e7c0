/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Registering memory with a device, from Python.
 *
 * Owns what is registered, in a capsule: its end unregisters.  Functions in Python are
 * called by the thread that registers; never by helpers, which would hold the GIL at
 * the lowest priority.
 */
#include "pycall.h"

#include <ktask/register.h>

/*
 * What is registered, and the memory, which cannot be given back meanwhile.  In a
 * capsule; the functions are called by the thread that registers or unregisters, whose
 * call is there.
 */
struct held {
	struct ktask_registration *registration;
	struct ktask_cuda cuda;
	PyObject *functions[2]; /* to register, to unregister; NULL: cuda */
	PyObject *library; /* bytes; what cuda.library points to */
	struct memory memory;
	struct call *call;
};

/* The library's own codes are negative. */
#define PIECE_FAILED 1

#define HELD_NAME "ktask.registration"

static int call_function(struct held *held, PyObject *function, void *start,
			 void *end)
{
	struct call *call = held->call;
	PyObject *answer;

	PyEval_RestoreThread(call->thread);
	answer = PyObject_CallFunction(
		function, "KK", (unsigned long long)(uintptr_t)start,
		(unsigned long long)((uintptr_t)end - (uintptr_t)start));
	Py_XDECREF(answer);
	if (!answer)
		call_keep_exception(call);
	call->thread = PyEval_SaveThread();
	return answer ? 0 : PIECE_FAILED;
}

static int add_piece(void *start, void *end, void *arg)
{
	struct held *held = arg;

	return call_function(held, held->functions[0], start, end);
}

static int take_piece(void *start, void *end, void *arg)
{
	struct held *held = arg;

	return call_function(held, held->functions[1], start, end);
}

static int take_back(struct held *held, struct call *call)
{
	int error;

	held->call = call;
	call->thread = PyEval_SaveThread();
	error = ktask_unregister(&held->registration, &call->opts);
	PyEval_RestoreThread(call->thread);
	held->call = NULL;
	return error;
}

static void free_held(struct held *held)
{
	Py_XDECREF(held->functions[0]);
	Py_XDECREF(held->functions[1]);
	Py_XDECREF(held->library);
	memory_put(&held->memory);
	PyMem_Free(held);
}

/* The last reference has gone: nobody is there to be told. */
static void end_capsule(PyObject *capsule)
{
	struct held *held = PyCapsule_GetPointer(capsule, HELD_NAME);
	struct call call = { .opts = KTASK_OPTS_INIT };
	PyObject *before[3];

	if (!held)
		return;
	PyErr_Fetch(&before[0], &before[1], &before[2]);
	take_back(held, &call);
	if (call_raise(&call))
		PyErr_WriteUnraisable(capsule);
	PyErr_Restore(before[0], before[1], before[2]);
	free_held(held);
}

/* Return: of a capsule on which no call works; NULL with an exception. */
static struct held *get_idle(PyObject *capsule)
{
	struct held *held = PyCapsule_GetPointer(capsule, HELD_NAME);

	/* What that call works on may be freed: it has released the GIL. */
	if (!held || !held->call)
		return held;
	PyErr_SetString(PyExc_RuntimeError,
			"another call works on this registration");
	return NULL;
}

static int init_device(struct held *held, struct ktask_register_ctl *ctl,
		       PyObject *functions, unsigned cuda_flags)
{
	if (PyTuple_Check(functions)) {
		PyObject *add, *take;

		if (!PyArg_ParseTuple(functions, "OO", &add, &take))
			return 0;
		Py_INCREF(add);
		Py_INCREF(take);
		held->functions[0] = add;
		held->functions[1] = take;
		ctl->register_func = add_piece;
		ctl->unregister_func = take_piece;
		ctl->func_arg = held;
		return 0;
	}
	if (functions != Py_None) {
		Py_INCREF(functions);
		held->library = functions;
		held->cuda.library = PyBytes_AsString(functions);
	}
	held->cuda.struct_size = sizeof(held->cuda);
	held->cuda.flags = cuda_flags;
	return ktask_register_cuda(ctl, &held->cuda);
}

static int register_held(struct held *held, struct ktask_register_ctl *ctl,
			 struct call *call)
{
	int error;

	held->call = call;
	call->thread = PyEval_SaveThread();
	error = ktask_register(&held->registration, (void *)held->memory.addr,
			       held->memory.len, ctl, &call->opts);
	PyEval_RestoreThread(call->thread);
	held->call = NULL;
	return error;
}

/*
 * register_memory(memory, (register, unregister) or the path of libcudart or None,
 * flags of cuda, flags, stall in us, unit, largest piece, threads, deadline in ns,
 * progress): (outcome, error of cuda, capsule or None)
 */
PyObject *register_memory(PyObject *module, PyObject *tuple)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ktask_register_ctl asked = KTASK_REGISTER_CTL_INIT;
	struct call call = { .opts = KTASK_OPTS_INIT };
	struct held *held = PyMem_Calloc(1, sizeof(*held));
	PyObject *object, *functions, *progress, *outcome = NULL, *capsule;
	unsigned long long unit, most, deadline_ns;
	unsigned cuda_flags;
	int error, cuda_error;

	if (!held)
		return PyErr_NoMemory();
	if (!PyArg_ParseTuple(tuple, "OOIIIKKIKO", &object, &functions,
			      &cuda_flags, &asked.flags, &asked.stall_us, &unit,
			      &most, &call.opts.max_threads, &deadline_ns,
			      &progress) ||
	    memory_get(&held->memory, object)) {
		PyMem_Free(held);
		return NULL;
	}
	/* Before anything is registered: its end unregisters. */
	capsule = PyCapsule_New(held, HELD_NAME, end_capsule);
	if (!capsule) {
		free_held(held);
		return NULL;
	}
	call.opts.deadline_ns = deadline_ns;
	error = init_device(held, &ctl, functions, cuda_flags);
	if (PyErr_Occurred() || call_init(&call, held->memory.len, progress)) {
		Py_DECREF(capsule);
		return NULL;
	}
	ctl.flags |= asked.flags;
	ctl.stall_us = asked.stall_us;
	ctl.unit_bytes = unit;
	ctl.max_piece_bytes = most;
	if (!error)
		error = register_held(held, &ctl, &call);
	cuda_error = held->cuda.cuda_error;
	if (!call_raise(&call))
		outcome = call_result(
			&call, error,
			error ? memory_offset(&call.result, held->memory.addr)
			      : -1);
	if (outcome && !error)
		return Py_BuildValue("(NiN)", outcome, cuda_error, capsule);
	Py_DECREF(capsule);
	return outcome ? Py_BuildValue("(NiO)", outcome, cuda_error, Py_None)
		       : NULL;
}

/* unregister_memory(capsule, threads, deadline in ns, progress): (outcome, cuda) */
PyObject *unregister_memory(PyObject *module, PyObject *tuple)
{
	struct call call = { .opts = KTASK_OPTS_INIT };
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	unsigned long long deadline_ns;
	PyObject *capsule, *progress;
	struct held *held;
	int error;

	if (!PyArg_ParseTuple(tuple, "OIKO", &capsule, &call.opts.max_threads,
			      &deadline_ns, &progress))
		return NULL;
	call.opts.deadline_ns = deadline_ns;
	held = get_idle(capsule);
	if (!held)
		return NULL;
	ktask_registration_info_get(held->registration, &info);
	if (call_init(&call, info.bytes, progress))
		return NULL;
	error = held->registration ? take_back(held, &call) : 0;
	if (!held->registration)
		memory_put(&held->memory);
	if (call_raise(&call) || (!error && call_tell(&call, info.bytes)))
		return NULL;
	return Py_BuildValue(
		"(Ni)",
		call_result(
			&call, error,
			error ? memory_offset(&call.result, held->memory.addr)
			      : -1),
		held->cuda.cuda_error);
}

/* list_pieces(capsule): (longest call in ns, [(offset, length)]) */
PyObject *list_pieces(PyObject *module, PyObject *capsule)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	struct held *held = get_idle(capsule);
	PyObject *list = held ? PyList_New(0) : NULL;
	void *start, *end;

	if (!list)
		return NULL;
	ktask_registration_info_get(held->registration, &info);
	for (size_t i = 0; list && !ktask_registration_piece(held->registration,
							     i, &start, &end);
	     i++)
		if (list_append(
			    list,
			    Py_BuildValue(
				    "(KK)",
				    (unsigned long long)((uintptr_t)start -
							 held->memory.addr),
				    (unsigned long long)((uintptr_t)end -
							 (uintptr_t)start))))
			Py_CLEAR(list);
	return list ? Py_BuildValue("(KN)", (unsigned long long)info.longest_ns,
				    list)
		    : NULL;
}
