#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# scripts/deps on machines made of small stand-ins for dpkg-query, apt-get, id
# and sudo; and what `make` says where a compiler or a header is missing.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $bin = scratch();

# A machine: which packages it has, who asks, and what there is besides.
sub machine
{
	my (%is) = @_;
	my $has = join '', map { "echo 'installed $_';" } @{ $is{has} };

	unlink glob "$bin/*";
	symlink((capture("command -v $_"))[1] =~ s/\n//r, "$bin/$_")
		for qw(sh env sed cat);
	return if $is{not_debian};
	spew("$bin/dpkg-query", "#!/bin/sh\n$has\nexit 1\n", 0755);
	spew("$bin/apt-get", "#!/bin/sh\necho \"apt-get \$*\" >>$bin/log\n"
	     . "echo 'W: apt is not sure' >&2\necho 'Creating a user'\n"
	     . 'case "$*" in *' . ($is{fails} // 'nothing')
	     . "*) exit 100;; esac\n", 0755);
	spew("$bin/id", "#!/bin/sh\necho " . ($is{user} // 0) . "\n", 0755);
	spew("$bin/sudo", "#!/bin/sh\necho sudo >>$bin/log\nexec \"\$@\"\n",
	     0755) if $is{sudo};
}

sub deps
{
	my ($status, $said) =
		capture("env PATH=$bin $top/scripts/deps gcc make libx-dev");

	return ($status, $said, -e "$bin/log" ? slurp("$bin/log") : '');
}

machine(has => ['make', 'gcc', 'libx-dev'], user => 1000);
my ($status, $said, $log) = deps();
is($status, 0, 'all is there: nothing to do, no right needed');
is("$said$log", '', 'and nothing is said');

machine(has => ['gcc']);
($status, $said, $log) = deps();
is($status, 0, 'what is missing is installed');
like($log, qr/ update\n.* install make libx-dev$/s, 'that and no more');
like($log, qr/--no-install-recommends/, 'without what is recommended');
is($said, "ktask: installing make libx-dev\n",
   'it says so, and nothing of what apt and packages say');

machine(has => ['gcc', 'libx'], user => 1000, sudo => 1);
($status, $said, $log) = deps();
like($log, qr/^sudo\n.*update\nsudo\n.*install make libx-dev/s, 'with sudo');

machine(has => [], user => 1000);
($status, $said, $log) = deps();
isnt($status, 0, 'neither root nor sudo: fails');
like($said, qr/neither root nor sudo/, 'and says why');

machine(has => [], fails => 'update');
($status, $said, $log) = deps();
is($status, 0, 'old package lists may do');

machine(has => [], fails => 'install');
($status, $said, $log) = deps();
isnt($status, 0, 'a failing installation is a failure');
like($said, qr/apt is not sure.*apt-get failed/s, 'and what was said is shown');

machine(not_debian => 1);
($status, $said) = deps();
is($status, 0, 'elsewhere it goes on');
like($said, qr/not Debian.*gcc make libx-dev/, 'and says what is wanted');

# What tests can do without, on a machine with these and on one without.
for my $case (['go', 'NEED_OF_TESTS', 'go'], ['jlink', 'NEED_OF_TESTS', 'jvm'],
	      ['cargo', 'NEED_OF_CRATES', 'rust']) {
	my ($tool, $groups, $group) = @$case;

	for my $has (0, 1) {
		my $shell = spew("$bin/shell-$tool-$has", <<END, 0755);
#!/bin/sh
case "\$*" in *'command -v $tool'*) [ $has = 0 ] || echo /opt/bin/$tool; exit ;; esac
exec sh "\$@"
END
		(undef, $said) = capture("make -s -C $top SHELL=$shell "
			. "--eval='show:;\@echo \$($groups)' show");
		is(scalar $said =~ /\b$group\b/, !$has, "$tool is "
		   . ($has ? 'not asked for where it is' : 'asked for where it is missing'));
	}
}
(undef, $said) = capture("make -s -C $top packages");
like($said, qr/^$_$/m, "$_ is named among the packages") for qw(golang-go cargo-web);

my $empty = scratch();
my $make = "make -s -C $top B=$empty $empty/obj/ktask/user/user_port.o";
($status, $said) = capture("$make CC=no-such-compiler");
isnt($status, 0, 'no compiler: make fails');
like($said, qr/run "make deps"/, 'and says what to do');
($status, $said) = capture("$make CC='$cc -nostdinc'");
isnt($status, 0, 'no header: make fails');
like($said, qr/run "make deps"/, 'and says what to do');

done_testing();
