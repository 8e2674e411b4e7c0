/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The task runtime from C++ (11 and later): tasks are callables, and what they
 * throw is thrown again where somebody waits for them.  Only a cover for
 * runtime.h, whose rules hold; see there.
 *
 *	ktrt::runtime runtime;
 *	ktrt::spawn([&] { a = f(); }, ktrt::out(a));
 *	ktrt::spawn([&] { b = g(a); }, ktrt::in(a), ktrt::out(b));
 *	ktrt::wait();
 *
 * A callable is moved into the task.  It returns nothing, or int: 0 or a code
 * as for ktrt_func.
 *
 * Of several exceptions the first goes to whoever waits, the others are
 * dropped.  The destructors of scope, group and runtime wait too, and throw what
 * a task threw unless an exception is leaving their block already.
 */
#ifndef KTASK_RUNTIME_HPP
#define KTASK_RUNTIME_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cxxabi.h>
#include <exception>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include <ktask/runtime.h>

namespace ktrt
{

/* A code of a task, or an error of a call. */
class error : public std::system_error {
    public:
	error(int number, const char *what)
		: std::system_error(number < 0 ? -number : number,
				    std::generic_category(), what),
		  code_(number)
	{
	}
	/* As the task returned it. */
	int task_code() const noexcept
	{
		return code_;
	}

    private:
	int code_;
};

namespace detail
{

/* Exceptions go to whoever waits as objects of codes. */
inline const char *exception_kind() noexcept
{
	return "std::exception_ptr";
}

inline void drop_exception(void *object)
{
	delete static_cast<std::exception_ptr *>(object);
}

/* Without memory the code says so in place of the exception. */
inline int keep_exception(std::exception_ptr exception) noexcept
{
	std::exception_ptr *kept =
		new (std::nothrow) std::exception_ptr(std::move(exception));
	int code = -ENOMEM;

	if (kept)
		code = ktrt_code_new(exception_kind(), kept, drop_exception);
	if (code < 0)
		delete kept;
	return code;
}

inline void check(int code, const char *what)
{
	void *object;

	if (!code)
		return;
	object = ktrt_code_take(code, exception_kind());
	if (object) {
		std::exception_ptr exception =
			*static_cast<std::exception_ptr *>(object);

		drop_exception(object);
		std::rethrow_exception(std::move(exception));
	}
	ktrt_code_drop(code);
	throw error(code, what);
}

/* How many exceptions are on their way out of blocks; before C++17: any. */
inline int unwinding() noexcept
{
#if defined(__cpp_lib_uncaught_exceptions)
	return std::uncaught_exceptions();
#else
	return std::uncaught_exception();
#endif
}

/* Else everything was waited for when it ended. */
inline bool runs() noexcept
{
	return ktrt_cpus(nullptr, 0) >= 0;
}

/* At the end of a block: what leaves it already goes first. */
inline void check_at_end(int code, int unwinding_before, const char *what)
{
	if (unwinding() > unwinding_before)
		ktrt_code_drop(code);
	else
		check(code, what);
}

template <typename F> int call(F &f, std::true_type)
{
	f();
	return 0;
}

template <typename F> int call(F &f, std::false_type)
{
	return f();
}

template <typename F> int guarded(F &f)
{
	using returned = decltype(f());

	try {
		return call(f, typename std::is_void<returned>::type());
#if defined(__GLIBCXX__)
	} catch (const __cxxabiv1::__forced_unwind &) {
		throw; /* pthread_exit() */
#endif
	} catch (...) {
		return keep_exception(std::current_exception());
	}
}

template <typename F> int run_inside(void *arg)
{
	return guarded(*static_cast<F *>(arg));
}

template <typename F> int run_and_delete(void *arg)
{
	struct owner {
		F *f;
		~owner()
		{
			delete f;
		}
	} owned = { static_cast<F *>(arg) };

	/* It was begun all the same, to be deleted. */
	return ktrt_cancelled() ? -ECANCELED : guarded(*owned.f);
}

template <typename F>
int spawn(F &&f, ktrt_attr &attr, std::true_type /* may be copied as bytes */)
{
	using body = typename std::decay<F>::type;
	/* @f may be constant, or a function. */
	body local(std::forward<F>(f));

	attr.arg_bytes = sizeof(body);
	return ktrt_spawn_attr(run_inside<body>, &local, &attr);
}

template <typename F>
int spawn(F &&f, ktrt_attr &attr, std::false_type)
{
	using body = typename std::decay<F>::type;
	body *copy = new body(std::forward<F>(f));
	int failed;

	/* A task that is not begun would never delete it. */
	attr.flags |= KTRT_ALWAYS;
	failed = ktrt_spawn_attr(run_and_delete<body>, copy, &attr);
	if (failed)
		delete copy;
	return failed;
}

} /* namespace detail */

/* ---- what a task is told besides ---- */

struct dep {
	ktrt_dep raw;
};

template <typename T> dep in(const T &datum)
{
	return { { &datum, 0, KTRT_IN } };
}

template <typename T> dep out(T &datum)
{
	return { { &datum, 0, KTRT_OUT } };
}

template <typename T> dep inout(T &datum)
{
	return { { &datum, 0, KTRT_INOUT } };
}

/* All of an array's bytes: what overlaps depends, also in(), out() and inout()
 * of what begins there. */
template <typename T> dep range(unsigned mode, const T *first, std::size_t nr)
{
	return { { first, nr * sizeof(T), mode } };
}

class group {
    public:
	group() : unwinding_(detail::unwinding())
	{
		detail::check(ktrt_group_new(&group_), "making a group");
	}
	group(const group &) = delete;
	group &operator=(const group &) = delete;
	/* Who cancelled it does not want to hear so. */
	~group() noexcept(false)
	{
		int code = detail::runs() ? ktrt_group_wait(group_) : 0;

		ktrt_group_free(group_);
		if (!cancelled_ || code != -ECANCELED)
			detail::check_at_end(code, unwinding_,
					     "a task of a group");
	}
	void wait()
	{
		detail::check(ktrt_group_wait(group_), "a task of a group");
	}
	void cancel()
	{
		cancelled_ = true;
		ktrt_group_cancel(group_);
	}
	ktrt_group *raw() const
	{
		return group_;
	}

    private:
	ktrt_group *group_;
	const int unwinding_;
	std::atomic<bool> cancelled_{ false };
};

/* ---- tasks ---- */

struct settings {
	int priority = 0;
	int node = -1;
	ktrt_group *group = nullptr;
};

/* spawn - with dependences of type dep */
template <typename F, typename... Deps>
void spawn(const settings &with, F &&f, const Deps &...deps)
{
	using body = typename std::decay<F>::type;
	ktrt_dep raw[sizeof...(deps) + 1] = { deps.raw... };
	ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = raw;
	attr.nr_deps = sizeof...(deps);
	attr.priority = with.priority;
	attr.node = with.node;
	attr.group = with.group;
	detail::check(
		detail::spawn(std::forward<F>(f), attr,
			      std::integral_constant<
				      bool,
				      std::is_trivially_copyable<body>::value &&
					      alignof(body) <= 16>()),
		"making a task");
}

template <typename F, typename... Deps,
	  typename = typename std::enable_if<!std::is_same<
		  typename std::decay<F>::type, settings>::value>::type>
void spawn(F &&f, const Deps &...deps)
{
	spawn(settings(), std::forward<F>(f), deps...);
}

inline void wait()
{
	detail::check(ktrt_wait(), "a task");
}

/*
 * Tasks that are made once and run often.
 *
 *	ktrt::graph graph;
 *	graph.add([&] { a = f(); }, ktrt::out(a));
 *	graph.add([&] { b = g(a); }, ktrt::in(a), ktrt::out(b));
 *	for (int i = 0; i < 1000; i++)
 *		graph.run();
 *
 * A callable stays with the graph and is called in each run.
 */
class graph {
    public:
	graph()
	{
		detail::check(ktrt_graph_new(&graph_), "making a graph");
	}
	graph(const graph &) = delete;
	graph &operator=(const graph &) = delete;
	~graph()
	{
		ktrt_graph_free(graph_);
		while (kept_) {
			kept *next = kept_->next;

			delete kept_;
			kept_ = next;
		}
	}
	/* A node, with dependences of type dep; its number, from 0 on. */
	template <typename F, typename... Deps>
	int add(F &&f, const Deps &...deps)
	{
		using body = typename std::decay<F>::type;
		ktrt_dep raw[sizeof...(deps) + 1] = { deps.raw... };
		holder<body> *held = new holder<body>(std::forward<F>(f));
		ktrt_attr attr = KTRT_ATTR_INIT;
		int node;

		held->next = kept_;
		kept_ = held;
		attr.deps = raw;
		attr.nr_deps = sizeof...(deps);
		node = ktrt_graph_add(graph_, detail::run_inside<body>,
				      &held->f, &attr);
		detail::check(node < 0 ? node : 0, "adding to a graph");
		return node;
	}
	/* Node @after, the higher number, starts when @before is complete. */
	void edge(int before, int after)
	{
		detail::check(ktrt_graph_edge(graph_, before, after),
			      "adding to a graph");
	}
	void run()
	{
		detail::check(ktrt_graph_run(graph_), "a task of a graph");
	}
	ktrt_graph *raw() const
	{
		return graph_;
	}

    private:
	struct kept {
		kept *next = nullptr;
		virtual ~kept() = default;
	};
	template <typename F> struct holder : kept {
		F f;
		template <typename G>
		explicit holder(G &&g) : f(std::forward<G>(g))
		{
		}
	};
	ktrt_graph *graph_;
	kept *kept_ = nullptr;
};

/*
 * Waits at the end of its block for all tasks that the calling task or thread
 * has made, also if an exception leaves the block.  Declared after what these
 * tasks use it keeps that alive for them:
 *
 *	std::vector<int> parts(n);
 *	ktrt::scope waits;
 *	for (int &part : parts)
 *		ktrt::spawn([&] { part = f(); });
 *	may_throw();
 */
class scope {
    public:
	scope() : unwinding_(detail::unwinding())
	{
	}
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
	~scope() noexcept(false)
	{
		if (detail::runs())
			detail::check_at_end(ktrt_wait(), unwinding_, "a task");
	}

    private:
	const int unwinding_;
};

inline void yield()
{
	ktrt_yield();
}

/* run - on a worker, and wait for it */
template <typename F> void run(F &&f)
{
	using body = typename std::decay<F>::type;
	body local(std::forward<F>(f));

	detail::check(ktrt_run(detail::run_inside<body>, &local), "a task");
}

/*
 * Starts the runtime; stops it when it goes out of scope.  That waits for the
 * thread's tasks and throws what they threw.  It throws -EBUSY while another
 * thread is attached: the runtime goes on then.
 */
class runtime {
    public:
	explicit runtime(unsigned workers = 0, unsigned flags = 0)
		: unwinding_(detail::unwinding())
	{
		ktrt_options options = KTRT_OPTIONS_INIT;

		options.workers = workers;
		options.flags = flags;
		detail::check(ktrt_start(&options), "starting the runtime");
	}
	runtime(const runtime &) = delete;
	runtime &operator=(const runtime &) = delete;
	~runtime() noexcept(false)
	{
		if (runs_)
			detail::check_at_end(ktrt_stop(), unwinding_,
					     "stopping the runtime");
	}
	/* The same earlier; after -EBUSY it may be tried again. */
	void stop()
	{
		int code = ktrt_stop();

		runs_ = detail::runs();
		detail::check(code, "stopping the runtime");
	}

    private:
	const int unwinding_;
	bool runs_ = true;
};

} /* namespace ktrt */

#endif /* KTASK_RUNTIME_HPP */
