#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The shell and its everyday programs on inputs large enough to be mapped and
# buffered in large pieces: output, exit status and the files that are left.

load software.bash

# In a directory of its own; what it says, its status, and every file's account.
script() {
	local status=0

	mkdir "$BATS_TEST_TMPDIR/in-$HOW"
	cd "$BATS_TEST_TMPDIR/in-$HOW"
	[ "$HOW" = plain ] || software grep -q libktask-preload /proc/self/maps
	software bash -c "$1" >../said-$HOW 2>&1 || status=$?
	# Without the process in "line 7: 123 Killed".
	sed 's/\(: line [0-9]*:\) *[0-9][0-9]* /\1 /' ../said-$HOW
	echo "status $status"
	find . -type f -printf '%p %s %m\n' | sort
	find . -type f -exec sha256sum {} + | sort
	cd ..
}

@test "sorting, joining and counting" {
	same script 'seq 400000 | sed "s/\(.*\)\(.\)/\2\1 \1/" >lines
		sort -S 64M --parallel=2 lines -o sorted
		sort -S 1M -k2,2n -T . lines >merged
		sort -u -r lines | sha256sum; sort -c lines; echo $?
		comm -12 sorted <(sort lines) | wc; join sorted sorted | tail -2
		uniq -c sorted | awk "{ n += \$1 } END { print n }"
		tac lines | cmp - <(tac lines); cut -c1-3 lines | sort | uniq -c | head
		shuf --random-source=lines lines | md5sum; grep -c 7 lines'
}

@test "archives and compression" {
	same script 'mkdir -p a/b/c; for i in {1..200}; do
			seq $i 997 200000 >a/b/c/$i; ln a/b/c/$i a/$i; done
		ln -s /nowhere a/link; mkfifo a/fifo
		how="--sort=name --owner=0 --group=0 --mtime=@0 --numeric-owner"
		tar $how -cf a.tar a; tar $how -czf a.tgz a; tar -tzf a.tgz | wc -l
		mkdir x; tar -xf a.tar -C x; diff -r --no-dereference a x/a; echo $?
		gzip -n -9 -k a.tar; gzip -t a.tar.gz; zcat a.tar.gz | cmp - a.tar
		head -c 1000 a.tar.gz | gzip -dc 2>&1 >/dev/null; echo $?
		bzip2 -k a.tar && bunzip2 -c a.tar.bz2 | cmp - a.tar
		! command -v xz >/dev/null || xz -T2 -1 -c a.tar | xz -dc | cmp - a.tar
		find a -newer a.tar; find a -type f -size +4k | sort | tail -3'
}

@test "copying in large blocks" {
	same script 'dd if=/dev/zero bs=64M count=1 status=none | tr "\0" a >big
		dd if=big of=copy bs=48M iflag=fullblock 2>/dev/null
		dd if=big of=part bs=1M skip=3 count=5 seek=2 status=none
		dd if=big of=/nonexistent/file bs=32M; echo $?
		dd if=big of=/dev/full bs=32M 2>/dev/null; echo $?
		cp --sparse=always part sparse; cp big same; cmp big same; cmp big part
		truncate -s 100M hole; fallocate -l 8M pre; fallocate -p -l 4M pre
		cat big hole | wc -c; split -b 20M big piece-; cat piece-* | cmp - big
		head -c 40M hole | md5sum; tail -c 5 big; shred -n1 -u --random-source=big same
		ls'
}

@test "shell scripts, their variables, traps and jobs" {
	same script 'text=$(head -c 40000000 /dev/zero | tr "\0" x)
		echo ${#text} ${text: -3}; unset text
		declare -A words; for i in {1..50000}; do words[$((i % 977))]+=$i; done
		echo ${#words[@]} ${#words[5]}
		trap "echo got USR1" USR1; kill -USR1 $$; trap "echo leaving" EXIT
		(exit 7); echo $?; false | true; echo ${PIPESTATUS[@]}
		sleep 9 & kill -9 $!; wait $!; echo $?
		timeout 0.2 sleep 9; echo $?; nice -n 5 true; echo $?
		(ulimit -v 100000; perl -e "\$x = q(a) x (200 << 20)") 2>/dev/null; echo $?
		(ulimit -f 1; head -c 9999999 /dev/zero >limited) 2>/dev/null; echo $?
		coproc cat; echo hello >&${COPROC[1]}; read -u ${COPROC[0]} word; echo $word
		read -r first < <(yes); echo $first; yes | head -100000 | md5sum
		cat /nonexistent; exit 3'
}

@test "interpreters with large data" {
	command -v perl >/dev/null || skip "no perl"
	same script 'perl -e "@a = map { \$_ * 7919 % 1000003 } 1..300000;
			print join(q( ), (sort { \$a <=> \$b } @a)[0..9]), qq(\n);
			\$s = join q(,), @a; print length(\$s), qq(\n)"
		awk "BEGIN { for (i = 0; i < 300000; i++) a[i] = i * i
			for (i in a) n += a[i]; print n }"
		perl -e "\$| = 1; fork or exit 5; wait; print \$? >> 8, qq(\n); kill 11, \$\$"; echo $?'
}

@test "the libraries of an unpacked server are for the server alone" {
	local root=$BATS_TEST_TMPDIR/servers/root
	mkdir -p "$root/usr/bin"
	printf '#!/bin/sh\necho "server [$LD_LIBRARY_PATH]"\n' >"$root/usr/bin/server"
	chmod +x "$root/usr/bin/server"
	run env -u LD_LIBRARY_PATH -u SERVER_ROOT KTASK_BUILD="$BATS_TEST_TMPDIR" \
		bash -c '. "$1"
			echo "[$LD_LIBRARY_PATH]"
			software sh -c "echo \"[\$LD_LIBRARY_PATH]\""
			software server' bash "$BATS_TEST_DIRNAME/software.bash"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "[]" ]
	[ "${lines[1]}" = "[]" ]
	[[ ${lines[2]} == "server [$root/usr/lib/"*"]" ]]
}
