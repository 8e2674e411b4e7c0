# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Compilers that miss headers and libraries: what they look for first is broken.
# Does not change the machine.

package Missing;

use strict;
use warnings;
use Exporter qw(import);
use House;

our @EXPORT = qw(compilers_without);

# compilers_without(DIR, PATH...): scripts DIR/cc, DIR/g++ and DIR/clang, for
# which each PATH is unusable: lib/libNAME.so, or a header.
sub compilers_without
{
	my ($dir, @missing) = @_;

	for my $path (@missing) {
		spew("$dir/lib/" . ($path =~ s{^lib/}{}r), "no library\n")
			if $path =~ m{^lib/};
		spew("$dir/include/$path", "#error there is no $path\n")
			if $path !~ m{^lib/};
	}
	my %real = (cc => $cc, 'g++' => $cxx, clang => 'clang');
	while (my ($name, $command) = each %real) {
		spew("$dir/$name", "#!/bin/sh\nexec $command "
		     . "-I$dir/include -L$dir/lib \"\$@\"\n", 0755);
	}
	return $dir;
}

1;
