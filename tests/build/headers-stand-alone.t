#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Each public header compiles as the only include of a C and of a C++ file,
# twice over, without a warning, and its macros can be used in both languages.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $dir = scratch();
my @includes = glob "$top/{ktask,umt,ktrt}/include";
my $strict = "-Wall -Wextra -Wshadow -Wundef -Werror -fsyntax-only "
	. join(' ', map { "-I$_" } @includes);
my %languages = (
	"$cc -x c -std=c99 -pedantic" => 'C99',
	"$cc -x c -std=gnu11 -Wstrict-prototypes" => 'GNU C11',
	"$cxx -x c++ -std=c++11" => 'C++11',
	"$cxx -x c++ -std=c++20 -pedantic" => 'C++20',
);

# What a user of the header writes first, in the common part of C and C++.
my %use = ('ktask.h' => <<'C');
static int chunk(void *start, void *end, void *arg)
{
	return start == end || arg != NULL;
}
int use_it(char *memory, size_t size);
int use_it(char *memory, size_t size)
{
	DEFINE_KTASK_CTL(ctl, chunk, NULL, 4096);
	struct ktask_ctl other;
	ktask_ctl_init(&other, chunk, NULL, 4096);
	ktask_ctl_set_max_threads(&ctl, 2);
	return ktask_run(memory, size, &ctl) || ktask_run(memory, size, &other);
}
C
$use{'runtime.h'} = <<'C';
static int body(void *arg)
{
	return arg == NULL;
}
int use_it(char *memory, size_t size);
int use_it(char *memory, size_t size)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_info info = KTRT_INFO_INIT;
	struct ktrt_dep dep;
	dep.addr = memory;
	dep.len = size;
	dep.mode = KTRT_INOUT;
	attr.deps = &dep;
	attr.nr_deps = 1;
	return ktrt_start(&options) || ktrt_spawn_attr(body, memory, &attr)
		|| ktrt_info_get(&info) || ktrt_stop();
}
C
$use{'umt.h'} = <<'C';
int use_it(struct umt *user);
int use_it(struct umt *user)
{
	struct umt_options options = { 0, 0, 0, 0 };
	struct umt_event event;
	options.size = sizeof(options);
	if (umt_open(&user, &options) || umt_thread_add(user))
		return 1;
	umt_want(user, 1);
	while (umt_next(user, &event) == 1)
		if (event.kind == UMT_IDLE)
			return umt_ready(umt_cores(user), event.cpu);
	return 0;
}
C

sub compiles
{
	my ($compiler, $what, $text) = @_;
	my $file = spew("$dir/source", $text);
	my ($status, $said) = capture("$compiler $strict $file");

	is($status, 0, $what) or diag($said);
}

for my $path (map { glob "$_/ktask/*.h $_/*.h" } @includes) {
	my $name = $path =~ s{.*/}{}r;
	my $inside = $path =~ s{^.*/include/}{}r;
	my $include = "#include <$inside>\n";

	for my $compiler (sort keys %languages) {
		my $language = $languages{$compiler};
		compiles($compiler, "$name is valid $language",
			 $include . $include . "extern int nothing;\n");
		compiles($compiler, "$name can be used from $language",
			 $include . $use{$name}) if $use{$name};
	}
}

# The cover for C++ alone.
for my $compiler (grep { /c\+\+/ } sort keys %languages) {
	my $include = "#include <ktask/runtime.hpp>\n";
	compiles($compiler, "runtime.hpp is valid $languages{$compiler}",
		 $include . $include . <<'C');
int use_it(int *data);
int use_it(int *data)
{
	ktrt::runtime runtime;
	ktrt::group group;
	ktrt::settings settings;
	settings.group = group.raw();
	ktrt::spawn([=] { *data = 1; }, ktrt::out(*data));
	ktrt::spawn(settings, [=] { return *data; }, ktrt::in(*data),
		    ktrt::range(KTRT_IN, data, 4));
	group.run([=] { *data = 3; }, ktrt::deps(nullptr, 0));
	*data = ktrt::async([] { return 4; }).get();
	ktrt::parallel_for(0, 4, [=](int i) { data[i] = i; });
	*data = ktrt::reduce(0, 4, 0, [](int i) { return i; },
			     [](int a, int b) { return a + b; });
	ktrt::graph graph;
	graph.add([=] { *data = 2; }, ktrt::out(*data));
	graph.run();
	ktrt::wait();
	group.wait();
	return *data;
}
C
}

# A header that leans on another would not pass.
spew("$dir/include/ktask/leans.h", "size_t leans(void);\n");
my ($status) = capture("$cc -x c $strict -I$dir/include "
	. spew("$dir/source", "#include <ktask/leans.h>\n"));
isnt($status, 0, 'a header that forgets an include is noticed');

done_testing();
