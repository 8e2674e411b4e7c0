#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# KTRT_TRACE writes each task that ran, once, on its thread, with what kept it
# waiting and its dependences; KTRT_DOT the graph.  Without them there is nothing.

load support/cxx

setup_file() {
	command -v python3 >/dev/null || skip "no python3"
	compile_cxx mixed <<-'END'
		#include <chrono>
		#include <thread>

		static void spin(int rounds)
		{
			for (volatile int i = 0; i < rounds * 1000; i++)
				;
		}

		static void nest(int depth)
		{
			for (int i = 0; depth && i < 2; i++)
				ktrt::spawn([=] { nest(depth - 1); });
			spin(1);
			if (depth % 2)
				ktrt::wait();
		}

		int main()
		{
			int x = 0, y = 0;
			char bytes[64];
			ktrt_info info = KTRT_INFO_INIT;
			ktrt::runtime runtime;

			/* Writer, three readers, writer: 3 + 3 edges. */
			ktrt::spawn([] { spin(5); }, ktrt::out(x));
			for (int i = 0; i < 3; i++)
				ktrt::spawn([] { spin(5); }, ktrt::in(x));
			ktrt::spawn([] { spin(5); }, ktrt::out(x));
			/* Two halves and the whole: 2 edges. */
			ktrt::spawn([] { spin(5); }, ktrt::range(KTRT_OUT, bytes, 32));
			ktrt::spawn([] { spin(5); },
				    ktrt::range(KTRT_OUT, bytes + 32, 32));
			ktrt::spawn([] { spin(5); }, ktrt::range(KTRT_IN, bytes, 64));
			ktrt::wait();
			/* A chain of three, twice: 4 edges. */
			ktrt::graph graph;
			for (int i = 0; i < 3; i++)
				graph.add([] { spin(5); }, ktrt::inout(y));
			graph.run();
			graph.run();
			for (int i = 0; i < 20; i++)
				ktrt::spawn([] {
					std::this_thread::sleep_for(
						std::chrono::milliseconds(2));
				});
			for (int i = 0; i < 20; i++)
				ktrt::spawn([] { nest(5); });
			for (int i = 0; i < 5000; i++)
				ktrt::spawn([] {});
			ktrt::wait();
			ktrt_info_get(&info);
			std::printf("%llu\n", (unsigned long long)info.tasks);
		}
	END
	cat >"$BATS_FILE_TMPDIR/check.py" <<-'END'
		import collections, json, sys

		trace = json.load(open(sys.argv[1]))
		events = trace["traceEvents"]
		assert trace["otherData"]["lost"] == 0
		tasks = [e for e in events if e.get("cat") == "task"]
		assert len(tasks) == int(sys.argv[2]), (len(tasks), sys.argv[2])
		ids = {t["args"]["task"]: t for t in tasks}
		assert len(ids) == len(tasks)
		for t in tasks:
		    above = t["args"]["parent"]
		    assert above == 0 or ids[above]["ts"] <= t["ts"]
		    assert t["args"]["core"] >= 0 and t["args"]["code"] == 0

		# Slices of a thread stand side by side or in each other.
		threads = collections.defaultdict(list)
		for e in events:
		    if e["ph"] == "X":
		        threads[e["tid"]].append((e["ts"], -e["dur"]))
		for slices in threads.values():
		    open_ends = []
		    for start, minus in sorted(slices):
		        end = start - minus
		        while open_ends and open_ends[-1] <= start + 0.0005:
		            open_ends.pop()
		        assert not open_ends or end <= open_ends[-1] + 0.0005
		        open_ends.append(end)

		# Flows go from a task to a later one, and there are as many as are known.
		flows = collections.defaultdict(dict)
		for e in events:
		    if e["ph"] in "sf":
		        assert e["ph"] not in flows[e["id"]]
		        flows[e["id"]][e["ph"]] = e
		assert len(flows) == 12, len(flows)
		for flow in flows.values():
		    assert flow["s"]["ts"] <= flow["f"]["ts"]
		    assert any(t["tid"] == flow["f"]["tid"] and t["ts"] == flow["f"]["ts"]
		               for t in tasks)

		# A core has a task or more, and at the end none.
		last = {}
		for e in events:
		    if e["ph"] == "C":
		        last[e["name"]] = e["args"]["tasks"]
		        assert last[e["name"]] >= 0
		assert last and not any(last.values()), last

		# Those that slept had no CPU meanwhile.
		assert sum(t["args"]["off_cpu_us"] > 1900 for t in tasks) >= 20
		names = {e["tid"] for e in events if e["name"] == "thread_name"}
		assert all(t["tid"] in names for t in tasks)
	END
}

@test "each task is in the trace, with its dependences and cores" {
	cd "$BATS_TEST_TMPDIR"
	tasks=$(KTRT_TRACE=trace.json "$BATS_FILE_TMPDIR/mixed")
	python3 "$BATS_FILE_TMPDIR/check.py" trace.json "$tasks"
	tasks=$(KTRT_UMT=0 KTRT_WORKERS=1 KTRT_TRACE=one.json \
		"$BATS_FILE_TMPDIR/mixed")
	python3 "$BATS_FILE_TMPDIR/check.py" one.json "$tasks"
}

@test "the graph of tasks is one for Graphviz" {
	cd "$BATS_TEST_TMPDIR"
	tasks=$(KTRT_DOT=graph.dot "$BATS_FILE_TMPDIR/mixed")
	[ "$(grep -c '\[label=' graph.dot)" = "$tasks" ]
	[ "$(grep -c 't[0-9]* -> t[0-9]*;' graph.dot)" = 12 ]
	[ "$(head -n 1 graph.dot)" = "digraph ktrt {" ]
	[ "$(tail -n 1 graph.dot)" = "}" ]
	command -v dot >/dev/null || skip "no Graphviz to read it"
	dot -Tcanon graph.dot >again.dot
}

@test "the name of a file may have that of the process" {
	cd "$BATS_TEST_TMPDIR"
	KTRT_TRACE=a%p.json "$BATS_FILE_TMPDIR/mixed" &
	wait $!
	[ -s "a$!.json" ]
}

@test "without a trace there is no file, and none is no error" {
	cd "$BATS_TEST_TMPDIR"
	"$BATS_FILE_TMPDIR/mixed"
	[ -z "$(ls -A)" ]
	KTRT_TRACE=/nowhere/trace.json KTRT_DOT=/nowhere/graph.dot \
		"$BATS_FILE_TMPDIR/mixed"
	KTRT_TRACE= KTRT_DOT= "$BATS_FILE_TMPDIR/mixed"
	[ -z "$(ls -A)" ]
}

@test "tasks that fail and threads that end are in it" {
	compile_cxx failing <<-'END'
		#include <pthread.h>

		int main()
		{
			int x = 0;
			ktrt::runtime runtime;

			for (int i = 0; i < 20; i++) {
				ktrt::spawn([] { return 5; }, ktrt::out(x));
				ktrt::spawn([] {}, ktrt::in(x));
				ktrt::spawn([] { pthread_exit(nullptr); });
			}
			check(ktrt_wait() != 0);
		}
	END
	cd "$BATS_TEST_TMPDIR"
	KTRT_TRACE=trace.json KTRT_DOT=graph.dot "$BATS_FILE_TMPDIR/failing"
	python3 - <<-'END'
		import collections, json
		events = json.load(open("trace.json"))["traceEvents"]
		codes = collections.Counter(e["args"]["code"] for e in events
		                            if e.get("cat") == "task")
		assert sum(codes.values()) == 60 and codes[5] == 20, codes
		skipped = sum(e["name"] == "skipped" for e in events)
		assert codes[-125] == 20 + skipped, (codes, skipped)
		assert sum(e["ph"] == "s" for e in events) == 39
	END
	grep -q "color=red" graph.dot
}

@test "tasks that were cancelled are in it, refused ones are not" {
	compile_cxx cancelled <<-'END'
		#include <atomic>

		static void make_plain()
		{
			for (int i = 0; i < 300; i++)
				ktrt::spawn([] {});
			ktrt::wait();
		}

		static int do_nothing(void *)
		{
			return 0;
		}

		/* Only reads it, and so may its children. */
		static void be_refused(int &x)
		{
			ktrt_attr attr = KTRT_ATTR_INIT;
			ktrt_dep dep = { &x, 0, KTRT_OUT };

			attr.deps = &dep;
			attr.nr_deps = 1;
			for (int i = 0; i < 20; i++)
				check(ktrt_spawn_attr(do_nothing, nullptr, &attr) ==
				      -EINVAL);
			make_plain();
		}

		int main()
		{
			std::atomic<bool> begun{ false }, open{ false };
			int x = 0, y = 0, z = 0;
			ktrt_info info = KTRT_INFO_INIT;
			ktrt::runtime runtime;
			ktrt::group group;

			group.run([&] {
				begun = true;
				while (!open)
					ktrt::yield();
			}, ktrt::out(x));
			for (int i = 0; i < 50; i++)
				group.run([&] {}, ktrt::inout(x), ktrt::inout(y));
			while (!begun)
				ktrt::yield();
			group.cancel();
			open = true;
			check(ktrt_group_wait(group.raw()) == -ECANCELED);
			make_plain();
			ktrt::run(make_plain);
			ktrt::spawn([&] { be_refused(z); }, ktrt::weak_in(z));
			ktrt::wait();
			ktrt_info_get(&info);
			std::printf("%llu\n", (unsigned long long)info.tasks);
		}
	END
	cd "$BATS_TEST_TMPDIR"
	tasks=$(KTRT_TRACE=trace.json KTRT_DOT=graph.dot \
		"$BATS_FILE_TMPDIR/cancelled")
	python3 - "$tasks" <<-'END'
		import json, re, sys
		events = json.load(open("trace.json"))["traceEvents"]
		tasks = [e for e in events if e.get("cat") == "task"]
		assert len(tasks) == int(sys.argv[1]), (len(tasks), sys.argv[1])
		skipped = {e["args"]["task"] for e in tasks if e["name"] == "skipped"}
		assert len(skipped) == 50, len(skipped)
		assert all((e["args"]["task"] in skipped) == (e["args"]["code"] == -125)
		           for e in tasks)
		dot = open("graph.dot").read()
		assert dot.count("[label=") == len(tasks)
		arrows = re.findall(r"t(\d+) -> t(\d+);", dot)
		assert len(arrows) == 50, len(arrows)
		assert {int(after) for before, after in arrows} == skipped
	END
}

@test "what blocked a task is in it, with the reason" {
	compile_cxx blocked <<-'END'
		#include <chrono>
		#include <thread>
		#include <unistd.h>

		int main()
		{
			ktrt_info info = KTRT_INFO_INIT;
			int ends[2];
			ktrt::runtime runtime(0, KTRT_UMT_FIRST);

			check(!pipe(ends));
			for (int i = 0; i < 10; i++)
				ktrt::spawn([] {
					std::this_thread::sleep_for(
						std::chrono::milliseconds(20));
				});
			for (int i = 0; i < 5; i++)
				ktrt::spawn([=] {
					char byte;
					check(read(ends[0], &byte, 1) == 1);
				});
			std::this_thread::sleep_for(std::chrono::milliseconds(100));
			for (int i = 0; i < 5; i++)
				check(write(ends[1], "x", 1) == 1);
			ktrt::wait();
			ktrt_info_get(&info);
			std::puts(info.backend);
		}
	END
	cd "$BATS_TEST_TMPDIR"
	backend=$(KTRT_TRACE=trace.json "$BATS_FILE_TMPDIR/blocked")
	[ "$backend" = bpf ] || skip "UMT's backend is $backend"
	python3 - <<-'END'
		import json, re
		events = json.load(open("trace.json"))["traceEvents"]
		slices = [e for e in events if e["ph"] == "X"]
		tasks = [e for e in slices if e["cat"] == "task"]
		pauses = [e for e in slices if e["cat"] == "blocked"]
		assert len(tasks) == 15, len(tasks)
		reason = "blocked: (other|io|futex|fault|waiting|stopped)$"
		assert all(re.match(reason, p["name"]) for p in pauses), pauses
		long = 0
		for t in tasks:
		    inside = [p["dur"] for p in pauses if p["tid"] == t["tid"] and
		              t["ts"] <= p["ts"] <= t["ts"] + t["dur"]]
		    long += sum(inside) > 10000
		# Who reads may begin when all is written.
		assert long >= 10, (long, pauses)
	END
}
