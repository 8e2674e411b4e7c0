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
 */
#ifndef KTASK_RUNTIME_HPP
#define KTASK_RUNTIME_HPP

#include <cerrno>
#include <cstddef>
#include <cxxabi.h>
#include <exception>
#include <mutex>
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

/*
 * Exceptions on their way to whoever waits.  A task's code names one; of
 * several the first code counts, so the others are overwritten in time.
 */
class exceptions {
    public:
	static int keep(std::exception_ptr exception)
	{
		exceptions &all = self();
		std::lock_guard<std::mutex> guard(all.lock_);
		unsigned number = all.next_++ & mask;

		all.slots_[number % room].number = number;
		all.slots_[number % room].exception = exception;
		return first + static_cast<int>(number);
	}
	/* Null if the code is none, or too old. */
	static std::exception_ptr take(int code)
	{
		exceptions &all = self();
		std::lock_guard<std::mutex> guard(all.lock_);
		unsigned number = static_cast<unsigned>(code - first);
		slot &place = all.slots_[number % room];
		std::exception_ptr found;

		if (place.number == number)
			std::swap(found, place.exception);
		return found;
	}
	static bool is(int code)
	{
		return code >= first;
	}

    private:
	static const int first = 0x70000000;
	static const unsigned mask = 0xffffff, room = 256;
	struct slot {
		unsigned number;
		std::exception_ptr exception;
	};
	static exceptions &self()
	{
		static exceptions all;
		return all;
	}
	std::mutex lock_;
	unsigned next_ = 0;
	slot slots_[room];
};

inline void check(int code, const char *what)
{
	std::exception_ptr exception;

	if (!code)
		return;
	if (exceptions::is(code))
		exception = exceptions::take(code);
	if (exception)
		std::rethrow_exception(exception);
	throw error(code, what);
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
		return exceptions::keep(std::current_exception());
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

/* All of an array's bytes: what overlaps depends. */
template <typename T> dep range(unsigned mode, const T *first, std::size_t nr)
{
	return { { first, nr * sizeof(T), mode } };
}

class group {
    public:
	group()
	{
		detail::check(ktrt_group_new(&group_), "making a group");
	}
	group(const group &) = delete;
	group &operator=(const group &) = delete;
	~group()
	{
		ktrt_group_free(group_);
	}
	void wait()
	{
		detail::check(ktrt_group_wait(group_), "a task of a group");
	}
	void cancel()
	{
		ktrt_group_cancel(group_);
	}
	ktrt_group *raw() const
	{
		return group_;
	}

    private:
	ktrt_group *group_;
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

/* Starts the runtime; stops it when it goes out of scope. */
class runtime {
    public:
	explicit runtime(unsigned workers = 0, unsigned flags = 0)
	{
		ktrt_options options = KTRT_OPTIONS_INIT;

		options.workers = workers;
		options.flags = flags;
		detail::check(ktrt_start(&options), "starting the runtime");
	}
	runtime(const runtime &) = delete;
	runtime &operator=(const runtime &) = delete;
	~runtime()
	{
		ktrt_stop();
	}
};

} /* namespace ktrt */

#endif /* KTASK_RUNTIME_HPP */
