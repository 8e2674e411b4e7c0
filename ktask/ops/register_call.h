/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What ktask_register() and ktask_unregister() share: options, when to stop, the result,
 * and jobs of pieces.
 */
#ifndef OPS_REGISTER_CALL_H
#define OPS_REGISTER_CALL_H

#include "presence.h"
#include "registration.h"

/** One call of ktask_register() or ktask_unregister(), on its caller's stack. */
struct register_call {
	struct ktask_registration *registration;
	struct ktask_opts opts; /* of the program */
	struct ktask_opts job_opts; /* of the jobs of this call */
	struct op_watch watch;
	struct presence presence;
	struct ktask_result
		jobs; /* of all its jobs; CPU time also of calls outside */
	uint64_t begin_ns;
	uint64_t report_ns; /* when progress is told next */
	uint64_t total_bytes;
	uint64_t before_bytes; /* registered when the call began */
	bool registers; /* else it takes back */
	bool unfinished; /* an exception passes, if this is seen so */
	int saved_errno;
	int cancel_state;
};

/** register_call_read - @opts into @call, which is cleared; 0, -EINVAL, -E2BIG */
int register_call_read(struct register_call *call,
		       const struct ktask_opts *opts);

/** register_call_begin - what is told and when it ends counts from here */
void register_call_begin(struct register_call *call,
			 struct ktask_registration *registration);

/** register_call_end - errno and cancellation are as they were before */
void register_call_end(struct register_call *call);

/** register_call_stop - between two calls of the device that no job makes: tell
 * progress, if it is time.  Return: 0; -ETIMEDOUT; -ECANCELED. */
int register_call_stop(struct register_call *call);

/** register_call_tell - progress, now */
void register_call_tell(struct register_call *call);

/** register_call_add - what a job of this call has cost */
void register_call_add(struct register_call *call,
		       const struct ktask_result *jobs);

/**
 * register_call_run - a job over [@first, @end) whose chunks call the device
 * @job: op, flags, opts, result, and min_chunk of that; its state becomes @call
 */
int register_call_run(struct register_call *call, struct op_job *job,
		      size_t first, size_t end, ktask_thread_func chunk);

/** register_call_result - fill the program's, with @bytes in @pieces */
void register_call_result(struct register_call *call, int error, size_t bytes,
			  size_t pieces);

#endif /* OPS_REGISTER_CALL_H */
