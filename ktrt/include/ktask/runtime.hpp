/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The task runtime from C++ (11 and later): tasks are callables, and a wait for a
 * task throws what the task threw.  This is a wrapper around runtime.h, whose rules
 * apply.
 *
 *	ktrt::runtime runtime;
 *	ktrt::spawn([&] { a = f(); }, ktrt::out(a));
 *	ktrt::spawn([&] { b = g(a); }, ktrt::in(a), ktrt::out(b));
 *	ktrt::wait();
 *
 * A callable is moved into the task, without an allocation if it has at most 64
 * bytes and moving it throws nothing.  It returns nothing, or int: 0 or a code as
 * for ktrt_func.  Another type, which would be taken for a code, does not compile.
 *
 * A wait throws the first of several exceptions, in the order in which tasks are
 * complete, each after its children; the others are dropped.  That of a task is what was
 * thrown first, by itself or by a child for which it did not wait.  If a task throws, tasks
 * that read the data that it should have written are skipped.  If that is the first
 * failure, wait(), or get(), throws ktrt::error with ECANCELED.
 * The destructors of scope, group and runtime wait too, and throw what a task threw
 * unless an exception is leaving their block already.
 */
#ifndef KTASK_RUNTIME_HPP
#define KTASK_RUNTIME_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <pthread.h>
#include <system_error>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

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

template <typename F> struct has_future {
	template <typename G>
	static std::true_type
	test(decltype(std::declval<G &>().get_future()) *);
	template <typename G> static std::false_type test(...);

	static constexpr bool value = decltype(test<F>(nullptr))::value;
};

} /* namespace detail */

/*
 * May callables of this type do different things?  Then they never count as brief
 * ("Locks" in runtime.h).  Types of the standard library are known here; a program may
 * specialise this for others.
 */
template <typename F>
struct varies
	: std::integral_constant<bool, std::is_pointer<F>::value ||
					       std::is_bind_expression<F>::value ||
					       detail::has_future<F>::value> {};

template <typename S> struct varies<std::function<S>> : std::true_type {};

#if defined(__cpp_lib_move_only_function)
template <typename S>
struct varies<std::move_only_function<S>> : std::true_type {};
#endif
#if defined(__cpp_lib_copyable_function)
template <typename S>
struct varies<std::copyable_function<S>> : std::true_type {};
#endif

template <typename F>
struct varies<std::reference_wrapper<F>>
	: varies<typename std::decay<F>::type> {};

namespace detail
{

/* Exceptions are passed on as objects for which codes stand. */
inline const char *exception_kind() noexcept
{
	return "std::exception_ptr";
}

inline void drop_exception(void *object)
{
	delete static_cast<std::exception_ptr *>(object);
}

/* Return: a code that stands for the exception; without memory -ENOMEM. */
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

/* What a code stands for: its exception, or an error. */
[[noreturn]] inline void raise(int code, const char *what)
{
	void *object = ktrt_code_take(code, exception_kind());

	if (object) {
		std::exception_ptr exception =
			*static_cast<std::exception_ptr *>(object);

		drop_exception(object);
		std::rethrow_exception(std::move(exception));
	}
	ktrt_code_drop(code);
	throw error(code, what);
}

inline void check(int code, const char *what)
{
	if (code)
		raise(code, what);
}

/* How many exceptions are leaving blocks; before C++17: whether there are any. */
inline int unwinding() noexcept
{
#if defined(__cpp_lib_uncaught_exceptions)
	return std::uncaught_exceptions();
#else
	return std::uncaught_exception();
#endif
}

/* Does a runtime run?  If not, all tasks were waited for when it ended. */
inline bool runs() noexcept
{
	return ktrt_cpus(nullptr, 0) >= 0;
}

inline void nap() noexcept
{
	const struct timespec time = { 0, 200000 };

	nanosleep(&time, nullptr);
}

/* A code is there once, but lost tasks stay lost: then this returns -ESRCH. */
inline int wait_twice(ktrt_group *group, bool &lost) noexcept
{
	int code = ktrt_group_wait(group), again;

	lost = false;
	if (code != -ESRCH)
		return code;
	again = ktrt_group_wait(group);
	lost = again == -ESRCH;
	return again ? again : code;
}

/* Attach the thread while it waits.  -ESRCH: there is no runtime any more. */
inline int wait_attached(ktrt_group *group, int &error, bool &lost) noexcept
{
	int code = 0;

	/* The limit of attached threads is reached. */
	while ((error = ktrt_attach()) == -EAGAIN)
		nap();
	if (!error) {
		code = wait_twice(group, lost);
		ktrt_code_drop(ktrt_detach());
	}
	return code;
}

/*
 * As ktrt_group_wait(), but in any thread, which is attached while it waits if a runtime
 * runs.  If none does the tasks are complete.
 * @error: 0, or why it could not wait.  -ESRCH: the tasks were lost by a fork.
 */
inline int wait_anywhere(ktrt_group *group, int &error) noexcept
{
	for (;;) {
		bool attaches = ktrt_thread_index() < 0 && runs();
		bool lost = false;
		int code;

		error = 0;
		code = attaches ? wait_attached(group, error, lost)
				: wait_twice(group, lost);
		/* The runtime ended meanwhile, or another one has just begun. */
		if (attaches ? error == -ESRCH
			     : lost && ktrt_thread_index() < 0 && runs())
			continue;
		if (lost)
			error = -ESRCH;
		return error ? 0 : code;
	}
}

/* Wait in any case: what the tasks use is destroyed after this. */
inline int wait_at_end(ktrt_group *group) noexcept
{
	for (;;) {
		int error, code = wait_anywhere(group, error);

		if (!error || error == -ESRCH)
			return code;
		nap();
	}
}

/* At the end of a block.  An exception that already leaves the block has precedence. */
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

	static_assert(std::is_void<returned>::value ||
			      std::is_same<typename std::decay<returned>::type,
					   int>::value,
		      "a task returns nothing, or int: 0 or a code");
	try {
		return call(f, typename std::is_void<returned>::type());
	} catch (...) {
		std::exception_ptr thrown = std::current_exception();

		/* pthread_exit() passes here, and what other languages throw. */
		if (!thrown)
			throw;
		return keep_exception(std::move(thrown));
	}
}

template <typename F> int run_inside(void *arg)
{
	return guarded(*static_cast<F *>(arg));
}

/* A callable that is moved into its task. */
template <typename F> struct owned {
	F f;

	static int run_always(void *arg)
	{
		struct guard {
			F *f;
			~guard()
			{
				f->~F();
			}
		} guard = { static_cast<F *>(arg) };

		return guarded(*guard.f);
	}
	/* A cancelled task runs as well, to destroy the callable. */
	static int run(void *arg)
	{
		if (!ktrt_cancelled())
			return run_always(arg);
		static_cast<F *>(arg)->~F();
		return -ECANCELED;
	}
	static void move(void *to, void *from)
	{
		::new (to) F(std::move(*static_cast<F *>(from)));
		static_cast<F *>(from)->~F();
	}
};

/* A callable that a task has by a pointer. */
template <typename F> struct pointed {
	ktrt_func func; /* as in dispatched, or unused */
	F *f;
};

template <typename F> int run_and_delete_always(void *arg)
{
	std::unique_ptr<F> f(static_cast<pointed<F> *>(arg)->f);

	return guarded(*f);
}

template <typename F> int run_and_delete(void *arg)
{
	if (!ktrt_cancelled())
		return run_and_delete_always<F>(arg);
	delete static_cast<pointed<F> *>(arg)->f;
	return -ECANCELED;
}

/* A callable whose type varies; ktrt_dispatch() calls the function. */
template <typename F> struct dispatched {
	ktrt_func func;
	F f;

	auto operator()() -> decltype(f())
	{
		return f();
	}
};

template <typename F>
dispatched<typename std::decay<F>::type> as_body(F &&f, std::true_type)
{
	return { nullptr, std::forward<F>(f) };
}

template <typename F> F &&as_body(F &&f, std::false_type)
{
	return std::forward<F>(f);
}

template <typename F> using varying = varies<typename std::decay<F>::type>;

/* The function of the task whose argument that is. */
template <typename F> ktrt_func func_for(F &, ktrt_func func)
{
	return func;
}

template <typename F> ktrt_func func_for(dispatched<F> &body, ktrt_func func)
{
	body.func = func;
	return ktrt_dispatch;
}

template <typename F>
ktrt_func func_for(pointed<dispatched<F>> &arg, ktrt_func func)
{
	arg.func = func;
	return ktrt_dispatch;
}

/* A callable that is no larger than a pointer is passed in place of a pointer. */
template <typename F> int run_word(void *arg)
{
	typename std::aligned_storage<sizeof(F), alignof(F)>::type word;

	std::memcpy(&word, &arg, sizeof(F));
	return guarded(*reinterpret_cast<F *>(&word));
}

/* How a callable gets into a task: as bytes; moved; or by a pointer, if moving may throw
 * or its alignment is larger than that of a task's memory. */
struct as_bytes {};
struct by_move {};
struct by_pointer {};

template <typename F>
using passing = typename std::conditional<
	(alignof(F) > 16), by_pointer,
	typename std::conditional<
		std::is_trivially_copyable<F>::value, as_bytes,
		typename std::conditional<
			std::is_nothrow_move_constructible<F>::value, by_move,
			by_pointer>::type>::type>::type;

template <typename F>
int spawn_attr(F &&f, ktrt_attr &attr, as_bytes)
{
	using body = typename std::decay<F>::type;
	/* @f may be constant, or a function. */
	body local(std::forward<F>(f));

	attr.arg_bytes = sizeof(body);
	return ktrt_spawn_attr(func_for(local, run_inside<body>), &local,
			       &attr);
}

template <typename F> int spawn_attr(F &&f, ktrt_attr &attr, by_move)
{
	using body = typename std::decay<F>::type;
	typename std::aligned_storage<sizeof(body), alignof(body)>::type room;
	body *local = ::new (&room) body(std::forward<F>(f));
	ktrt_func func = attr.flags & KTRT_ALWAYS ? owned<body>::run_always
						  : owned<body>::run;
	int failed;

	attr.arg_bytes = sizeof(body);
	attr.move = owned<body>::move;
	failed = ktrt_spawn_attr(func_for(*local, func), local, &attr);
	if (failed)
		local->~body();
	return failed;
}

template <typename F> int spawn_attr(F &&f, ktrt_attr &attr, by_pointer)
{
	using body = typename std::decay<F>::type;
	pointed<body> arg = { nullptr, new body(std::forward<F>(f)) };
	ktrt_func func = attr.flags & KTRT_ALWAYS ? run_and_delete_always<body>
						  : run_and_delete<body>;
	int failed;

	/* A task that does not begin would never delete the callable. */
	attr.flags |= KTRT_ALWAYS;
	attr.arg_bytes = sizeof(arg);
	failed = ktrt_spawn_attr(func_for(arg, func), &arg, &attr);
	if (failed)
		delete arg.f;
	return failed;
}

/* Make a task without attributes. */
template <typename F> int spawn_bytes(F &f, std::true_type /* a word */)
{
	void *word = nullptr;

	std::memcpy(&word, &f, sizeof(f));
	return ktrt_spawn(run_word<F>, word);
}

/* Construct the callable inside the task; a copy would have to wait for the stores of its
 * parts. */
template <typename F>
bool spawn_in_place(F &&f, ktrt_func func, unsigned flags)
{
	using body = typename std::decay<F>::type;
	void *room = ktrt_spawn_begin(func, sizeof(body), flags);

	if (!room)
		return false;
	::new (room) body(std::forward<F>(f));
	ktrt_spawn_end(func, room);
	return true;
}

template <typename F> int spawn_bytes(F &f, std::false_type)
{
	ktrt_func func = func_for(f, run_inside<F>);

	if (spawn_in_place(f, func, 0))
		return 0;
	return ktrt_spawn_copy(func, &f, sizeof(f));
}

template <typename F> int spawn_plain(F &&f, as_bytes)
{
	using body = typename std::decay<F>::type;
	body local(std::forward<F>(f));

	return spawn_bytes(local, std::integral_constant<
					  bool, sizeof(body) <=
							sizeof(void *)>());
}

template <typename F> int spawn_plain(F &&f, by_pointer how)
{
	ktrt_attr attr = KTRT_ATTR_INIT;

	return spawn_attr(std::forward<F>(f), attr, how);
}

/* Copying may throw, moving does not. */
template <typename F> int spawn_plain(F &&f, by_move how)
{
	using body = typename std::decay<F>::type;
	ktrt_attr attr = KTRT_ATTR_INIT;
	body local(std::forward<F>(f));

	ktrt_func func = func_for(local, owned<body>::run);

	if (spawn_in_place(std::move(local), func, KTRT_ALWAYS))
		return 0;
	return spawn_attr(std::move(local), attr, how);
}

} /* namespace detail */

/* ---- dependences ---- */

/*
 * The address of an object stands for it, however large it is: in(array) and in(array[0])
 * name the same data, in(array[1]) other data.  Tasks that use parts of each other's data
 * name them by range(), all of them.
 */
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

/* As inout(), but such tasks run in any order, one at a time. */
template <typename T> dep commutative(T &datum)
{
	return { { &datum, 0, KTRT_COMMUTATIVE } };
}

/* Data that only children of the task use: they wait for it, the task does not. */
template <typename T> dep weak_in(const T &datum)
{
	return { { &datum, 0, KTRT_WEAK_IN } };
}

template <typename T> dep weak_out(T &datum)
{
	return { { &datum, 0, KTRT_WEAK_OUT } };
}

template <typename T> dep weak_inout(T &datum)
{
	return { { &datum, 0, KTRT_WEAK_INOUT } };
}

/* All bytes of an array.  Tasks with overlapping ranges depend on each other, and on tasks
 * that name by in(), out() or inout() an object whose first byte is in the range.  An array or
 * a struct that begins before the range is no such object, even if the range is part of it. */
template <typename T> dep range(unsigned mode, const T *first, std::size_t nr)
{
	return { { first, nr * sizeof(T), mode } };
}

/*
 * Dependences that are known at run time: in a container that has data() and size(), as
 * std::vector<ktrt::dep>.  It is read during the call only.
 */
class deps {
    public:
	deps(const dep *first, std::size_t nr) : first_(first), nr_(nr)
	{
	}
	template <typename C,
		  typename = typename std::enable_if<std::is_convertible<
			  decltype(std::declval<const C &>().data()),
			  const dep *>::value>::type>
	deps(const C &container)
		: first_(container.data()), nr_(container.size())
	{
	}
	void give_to(ktrt_attr &attr) const
	{
		static_assert(sizeof(dep) == sizeof(ktrt_dep), "one in one");
		attr.deps = nr_ ? &first_->raw : nullptr;
		attr.nr_deps = nr_;
	}

    private:
	const dep *first_;
	std::size_t nr_;
};

namespace detail
{

/* The dependences of a call: all of type dep, or one of type deps. */
template <typename... Deps> struct few_deps {
	ktrt_dep raw[sizeof...(Deps) + 1];

	explicit few_deps(const Deps &...deps) : raw{ deps.raw... }
	{
	}
	void give_to(ktrt_attr &attr) const
	{
		attr.deps = raw;
		attr.nr_deps = sizeof...(Deps);
	}
};

template <typename... Deps> struct deps_of {
	using type = few_deps<Deps...>;
};

template <typename One> struct deps_of<One> {
	using type = typename std::conditional<std::is_same<One, dep>::value,
					       few_deps<One>, deps>::type;
};

template <typename F> int spawn_body(F &&f, ktrt_attr &attr)
{
	return spawn_attr(std::forward<F>(f), attr,
			  passing<typename std::decay<F>::type>());
}

template <typename F> int spawn_body(F &&f)
{
	return spawn_plain(std::forward<F>(f),
			   passing<typename std::decay<F>::type>());
}

template <typename F, typename... Deps>
int spawn(F &&f, ktrt_attr &attr, const Deps &...deps)
{
	typename deps_of<Deps...>::type all(deps...);

	all.give_to(attr);
	return spawn_body(as_body(std::forward<F>(f), varying<F>()), attr);
}

} /* namespace detail */

class group {
    public:
	group() : unwinding_(detail::unwinding())
	{
		detail::check(ktrt_group_new(&group_), "making a group");
	}
	group(const group &) = delete;
	group &operator=(const group &) = delete;
	/* Does not throw because the group was cancelled. */
	~group() noexcept(false)
	{
		int code = detail::wait_at_end(group_);

		ktrt_group_free(group_);
		if (!cancelled_ || code != -ECANCELED)
			detail::check_at_end(code, unwinding_,
					     "a task of a group");
	}
	void wait()
	{
		int error, code = detail::wait_anywhere(group_, error);

		detail::check(error, "waiting for a group");
		detail::check(code, "a task of a group");
	}
	/* Make a task of the group, with dependences as for spawn(). */
	template <typename F, typename... Deps>
	void run(F &&f, const Deps &...deps)
	{
		ktrt_attr attr = KTRT_ATTR_INIT;

		attr.group = group_;
		detail::check(detail::spawn(std::forward<F>(f), attr, deps...),
			      "making a task");
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
	/* Run even if the group was cancelled or the data is spoilt. */
	bool always = false;
	/* Run inside spawn(), so objects captured by reference may be local.  A wait
	 * for the task throws what it threw. */
	bool undeferred = false;
	/* All tasks that it makes are undeferred, and all that these make. */
	bool final = false;
	/* When it has returned, only those of its children use its data that name
	 * the data. */
	bool early_release = false;
};

/* spawn - with dependences of type dep, or one of type deps */
template <typename F, typename... Deps>
void spawn(const settings &with, F &&f, const Deps &...deps)
{
	ktrt_attr attr = KTRT_ATTR_INIT;

	attr.priority = with.priority;
	attr.node = with.node;
	attr.group = with.group;
	attr.flags = (with.always ? KTRT_ALWAYS : 0) |
		     (with.undeferred ? KTRT_UNDEFERRED : 0) |
		     (with.final ? KTRT_FINAL : 0) |
		     (with.early_release ? KTRT_EARLY_RELEASE : 0);
	detail::check(detail::spawn(std::forward<F>(f), attr, deps...),
		      "making a task");
}

template <typename F, typename Dep, typename... Deps,
	  typename = typename std::enable_if<!std::is_same<
		  typename std::decay<F>::type, settings>::value>::type>
void spawn(F &&f, const Dep &dep, const Deps &...deps)
{
	ktrt_attr attr = KTRT_ATTR_INIT;

	detail::check(detail::spawn(std::forward<F>(f), attr, dep, deps...),
		      "making a task");
}

/* Costs as much as ktrt_spawn_copy(), or as ktrt_spawn() if the callable is no larger than
 * a pointer. */
template <typename F> void spawn(F &&f)
{
	detail::check(detail::spawn_body(detail::as_body(
			      std::forward<F>(f), detail::varying<F>())),
		      "making a task");
}

inline void wait()
{
	detail::check(ktrt_wait(), "a task");
}

/* Say that neither the calling task nor tasks that it makes from now on use some data,
 * given as in(x) and the like, that it named weakly or with settings::early_release. */
template <typename... Deps> void release(const dep &first, const Deps &...more)
{
	const detail::few_deps<dep, Deps...> all(first, more...);

	detail::check(ktrt_release(all.raw, 1 + sizeof...(Deps)),
		      "releasing data");
}

/* Is the caller a task that was made with settings::final, or a descendant of one? */
inline bool in_final() noexcept
{
	return ktrt_in_final();
}

namespace detail
{

inline int return_code(void *code)
{
	return static_cast<int>(reinterpret_cast<std::intptr_t>(code));
}

/* A wait for the caller's children tells it, also if the caller's group was cancelled. */
inline void pass_on(int code) noexcept
{
	ktrt_attr attr = KTRT_ATTR_INIT;

	attr.flags = KTRT_ALWAYS;
	if (ktrt_spawn_attr(return_code,
			    reinterpret_cast<void *>(std::intptr_t(code)),
			    &attr))
		ktrt_code_drop(code);
}

/* The result of a task; empty for void. */
template <typename T> struct outcome {
	typename std::aligned_storage<sizeof(T), alignof(T)>::type room;
	bool is_there = false;

	template <typename F> void keep(F &f)
	{
		::new (&room) T(f());
		is_there = true;
	}
	T take()
	{
		return std::move(*reinterpret_cast<T *>(&room));
	}
	~outcome()
	{
		if (is_there)
			reinterpret_cast<T *>(&room)->~T();
	}
};

template <> struct outcome<void> {
	template <typename F> void keep(F &f)
	{
		f();
	}
	void take()
	{
	}
};

template <typename F, typename T> struct keeps_outcome {
	F f;
	outcome<T> *kept;

	void operator()()
	{
		kept->keep(f);
	}
};

} /* namespace detail */

template <typename F, typename T>
struct varies<detail::keeps_outcome<F, T>> : varies<F> {};

/*
 * The result that a task will return.
 *
 *	ktrt::future<double> mean = ktrt::async([&] { return f(); });
 *	use(mean.get());
 *
 * get() waits for the task, and throws what the task threw.  The destructor of a future
 * whose get() was not called waits as well; an exception is then thrown by a wait for the
 * caller's children.  A thread that is not attached is attached while it waits; there, and
 * after the runtime has ended, the destructor drops an exception.  What get() returns or
 * throws is there after the runtime, too.
 */
template <typename T> class future {
    public:
	future() = default;
	future(future &&other) noexcept
	{
		std::swap(task_, other.task_);
	}
	future &operator=(future &&other) noexcept
	{
		std::swap(task_, other.task_);
		return *this;
	}
	~future()
	{
		if (task_)
			let_go();
	}
	bool valid() const noexcept
	{
		return task_;
	}
	void wait()
	{
		int error, code = detail::wait_anywhere(asked()->group, error);

		detail::check(error, "waiting for a task");
		if (code)
			task_->code = code;
	}
	/* May be called once. */
	T get()
	{
		struct guard {
			shared *task;
			~guard()
			{
				ktrt_group_free(task->group);
				delete task;
			}
		};

		wait();
		guard guard = { task_ };
		int code = task_->code;

		task_ = nullptr;
		detail::check(code, "a task");
		return guard.task->kept.take();
	}

    private:
	static_assert(!std::is_reference<T>::value, "a value, or nothing");

	struct shared {
		detail::outcome<T> kept;
		ktrt_group *group = nullptr;
		int code = 0;
	};
	shared *task_ = nullptr;

	shared *asked()
	{
		if (!task_)
			throw error(-EINVAL, "a future without a task");
		return task_;
	}
	void let_go() noexcept
	{
		int code = 0;

		if (task_->group)
			code = detail::wait_at_end(task_->group);
		if (task_->code)
			std::swap(code, task_->code);
		ktrt_code_drop(task_->code);
		ktrt_group_free(task_->group);
		delete task_;
		if (code)
			detail::pass_on(code);
	}

	template <typename F, typename... Deps>
	friend auto async(F &&f, const Deps &...deps)
		-> future<decltype(f())>;
};

/* async - make a task that returns a result, with dependences as for spawn() */
template <typename F, typename... Deps>
auto async(F &&f, const Deps &...deps) -> future<decltype(f())>
{
	using result = decltype(f());
	using body = typename std::decay<F>::type;
	future<result> made;
	ktrt_attr attr = KTRT_ATTR_INIT;

	made.task_ = new typename future<result>::shared();
	detail::check(ktrt_group_new(&made.task_->group), "making a task");
	attr.group = made.task_->group;
	detail::check(detail::spawn(
			      detail::keeps_outcome<body, result>{
				      std::forward<F>(f), &made.task_->kept },
			      attr, deps...),
		      "making a task");
	return made;
}

namespace detail
{

template <typename I, typename F> struct loop {
	I first;
	F &f;

	static int run(std::size_t from, std::size_t to, void *arg)
	{
		const loop &self = *static_cast<loop *>(arg);
		auto chunk = [&] {
			for (std::size_t i = from; i < to; i++)
				self.f(static_cast<I>(self.first + i));
		};

		return guarded(chunk);
	}
};

/* Values are passed by pointer; null stands for the neutral value. */
template <typename I, typename T, typename F, typename Op> struct reduction {
	I first;
	const T &neutral;
	F &f;
	Op &op;

	static int add(std::size_t from, std::size_t to, void *value, void *arg)
	{
		const reduction &self = *static_cast<reduction *>(arg);
		T *&sum = *static_cast<T **>(value);
		auto chunk = [&] {
			if (!sum)
				sum = new T(self.neutral);
			for (std::size_t i = from; i < to; i++)
				*sum = self.op(
					std::move(*sum),
					self.f(static_cast<I>(self.first + i)));
		};

		return neutral_if(guarded(chunk), sum);
	}
	static int combine(void *into, void *from, void *arg)
	{
		const reduction &self = *static_cast<reduction *>(arg);
		T *&left = *static_cast<T **>(into);
		std::unique_ptr<T> right(*static_cast<T **>(from));
		auto both = [&] {
			if (left && right)
				*left = self.op(std::move(*left),
						std::move(*right));
			else if (right)
				left = right.release();
		};

		return neutral_if(guarded(both), left);
	}
	/* If op() threw, the value may have been moved from: do not combine it. */
	static int neutral_if(int failed, T *&value)
	{
		if (failed) {
			delete value;
			value = nullptr;
		}
		return failed;
	}
};

/* The signed type may be too small for the difference. */
template <typename I>
std::size_t distance(I first, I last, std::true_type /* a whole number */)
{
	return static_cast<std::size_t>(last) - static_cast<std::size_t>(first);
}

template <typename I> std::size_t distance(I first, I last, std::false_type)
{
	return static_cast<std::size_t>(last - first);
}

template <typename I> std::size_t distance(I first, I last)
{
	return first < last ? distance(first, last, std::is_integral<I>()) : 0;
}

} /* namespace detail */

/*
 * Call f(i) for each i in [first, last), by any number of workers, and wait.  At least
 * @grain calls in a row; 0: as many as measured; see ktrt_for().
 */
template <typename I, typename F>
void parallel_for(I first, I last, F &&f, std::size_t grain = 0)
{
	using loop = detail::loop<I, typename std::remove_reference<F>::type>;
	loop self = { first, f };

	detail::check(ktrt_for(0, detail::distance(first, last), grain,
			       loop::run, &self),
		      "a loop");
}

/*
 * Return: op(... op(op(neutral, f(first)), f(first + 1)) ...), in that order; op() must be
 * associative; see ktrt_reduce().
 */
template <typename I, typename T, typename F, typename Op>
T reduce(I first, I last, T neutral, F &&f, Op &&op, std::size_t grain = 0)
{
	using reduction =
		detail::reduction<I, T, typename std::remove_reference<F>::type,
				  typename std::remove_reference<Op>::type>;
	reduction self = { first, neutral, f, op };
	T *value = nullptr;
	int code = ktrt_reduce(0, detail::distance(first, last), grain,
			       reduction::add, reduction::combine, &value,
			       sizeof(value), &self);
	std::unique_ptr<T> sum(value);

	detail::check(code, "a reduction");
	return sum ? std::move(*sum) : std::move(neutral);
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
	/* Add a node, with dependences as for spawn().  Return: its number, from 0 on. */
	template <typename F, typename... Deps>
	int add(F &&f, const Deps &...deps)
	{
		using body = typename std::decay<F>::type;
		typename detail::deps_of<Deps...>::type all(deps...);
		holder<body> *held = new holder<body>(std::forward<F>(f));
		ktrt_attr attr = KTRT_ATTR_INIT;
		int node;

		held->next = kept_;
		kept_ = held;
		all.give_to(attr);
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

/* wait_for - wait for tasks that use these data; dependences as for spawn() */
template <typename... Deps> void wait_for(const Deps &...deps)
{
	typename detail::deps_of<Deps...>::type all(deps...);
	ktrt_attr attr = KTRT_ATTR_INIT;

	all.give_to(attr);
	detail::check(ktrt_wait_for(attr.deps, attr.nr_deps),
		      "waiting for data");
}

/*
 * One object for each thread that runs tasks, for sums and buffers that need no lock: no
 * other task uses it as long as the task does not wait.
 */
template <typename T> class per_thread {
    public:
	explicit per_thread(const T &first = T())
	{
		int nr = ktrt_thread_indices();

		detail::check(nr < 0 ? nr : 0, "an object for each thread");
		objects_.reserve(nr);
		while (nr--)
			objects_.emplace_back(new apart(first));
	}
	T &local()
	{
		int index = ktrt_thread_index();

		if (index < 0)
			throw error(-ESRCH, "an object for each thread");
		return objects_[index]->object;
	}
	/* Call f(object) for all objects; only while no task uses them. */
	template <typename F> void each(F &&f)
	{
		for (auto &one : objects_)
			f(one->object);
	}

    private:
	/* Keeps two objects out of one cache line. */
	struct apart {
		char before[64];
		T object;
		char after[64];
		explicit apart(const T &first) : object(first)
		{
		}
	};
	std::vector<std::unique_ptr<apart>> objects_;
};

/*
 * Waits at the end of its block for all tasks that the calling task or thread has made,
 * even if an exception leaves the block.  Declare it after the objects that these tasks
 * use, so that they live long enough:
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

/*
 * A total to which tasks add at the same time, each thread to a copy of the neutral value.
 * op() combines the copies before another task uses the total and before ktrt::wait()
 * returns.  The reducer must exist until then.
 *
 *	ktrt::reducer<double> sum(total, 0.0, std::plus<double>());
 *	for (auto &part : parts)
 *		ktrt::spawn([&] { sum.local() += f(part); }, sum.dep());
 *	ktrt::spawn([&] { use(total); }, ktrt::in(total));
 *
 * op(total, copy) is associative and commutative and throws nothing.
 */
template <typename T> class reducer {
    public:
	template <typename Op>
	reducer(T &total, T neutral, Op op)
		: total_(total), neutral_(std::move(neutral)),
		  op_(new operation<Op>(std::move(op)))
	{
		raw_.data = &total;
		raw_.bytes = sizeof(T *);
		raw_.combine = combine;
		raw_.arg = this;
	}
	reducer(const reducer &) = delete;
	reducer &operator=(const reducer &) = delete;
	ktrt::dep dep() const
	{
		return { { &raw_, 0, KTRT_REDUCTION } };
	}
	/* The thread's copy, in a task that names dep() or a descendant.  No other task
	 * uses it as long as the task does not wait. */
	T &local()
	{
		void *copy = ktrt_reduction_copy(&raw_);

		if (!copy)
			throw error(-EINVAL, "a copy of a reduction");
		T *&value = *static_cast<T **>(copy);
		if (!value)
			value = new T(neutral_);
		return *value;
	}

    private:
	struct any_operation {
		virtual ~any_operation() = default;
		virtual void add(T &total, T &copy) = 0;
	};
	template <typename Op> struct operation : any_operation {
		Op op;
		explicit operation(Op &&given) : op(std::move(given))
		{
		}
		void add(T &total, T &copy) override
		{
			total = op(std::move(total), std::move(copy));
		}
	};
	static void combine(void *, void *copy, void *arg) noexcept
	{
		reducer &self = *static_cast<reducer *>(arg);
		std::unique_ptr<T> value(*static_cast<T **>(copy));

		if (value)
			self.op_->add(self.total_, *value);
	}

	T &total_;
	const T neutral_;
	std::unique_ptr<any_operation> op_;
	ktrt_reduction raw_ = KTRT_REDUCTION_INIT;
};

inline void yield()
{
	ktrt_yield();
}

/* run - call @f on a worker, and wait for it */
template <typename F> void run(F &&f)
{
	using body = typename std::decay<F>::type;
	body local(std::forward<F>(f));

	detail::check(ktrt_run(detail::run_inside<body>, &local), "a task");
}

/*
 * Starts the runtime, and stops it at the end of the scope.  The destructor waits for the
 * thread's tasks and throws what they threw.  It throws EBUSY if another thread is still
 * attached; then the runtime goes on.  So when exit() destroys a static object, in the thread
 * that made it, no other thread may be attached or in run(): the process would abort.
 *
 * It does nothing where no runtime runs, nor in the child of a fork.  In a task, or in another
 * thread than the constructor, which is where exit() destroys a static object, it lets the
 * runtime go on unless that can end there: the process ends with the status given.
 */
class runtime {
    public:
	explicit runtime(unsigned workers = 0, unsigned flags = 0)
		: unwinding_(detail::unwinding()), maker_(pthread_self()),
		  process_(getpid())
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
		if (!runs_ || !detail::runs() || process_ != getpid())
			return;
		int code = ktrt_stop();

		if (detail::runs() && !ends_block())
			ktrt_code_drop(code);
		else
			detail::check_at_end(code, unwinding_,
					     "stopping the runtime");
	}
	/* Stop it earlier; may be tried again after EBUSY. */
	void stop()
	{
		int code = ktrt_stop();

		runs_ = detail::runs();
		detail::check(code, "stopping the runtime");
	}

    private:
	/* Else exit() was called, in a task or another thread. */
	bool ends_block() const noexcept
	{
		return !ktrt_self() && pthread_equal(maker_, pthread_self());
	}

	const int unwinding_;
	const pthread_t maker_;
	const pid_t process_; /* a child of fork() may have a runtime of its own */
	bool runs_ = true;
};

} /* namespace ktrt */

#endif /* KTASK_RUNTIME_HPP */
