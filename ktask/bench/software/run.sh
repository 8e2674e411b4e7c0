#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Real programs with much memory, without and with `ktask run`:
#
#   ktask/bench/software/run.sh BUILD [PART [ROUNDS [MIB]]]
#
#   postgresql       shared buffers of MIB, small pages: start to the answer to
#                    a first query, a first reading of a 512 MiB table into
#                    the buffers, and stopping
#   postgresql-huge  the same with huge_pages=on; sets the pool, as root
#   jvm              a heap of MIB that is touched before use (AlwaysPreTouch):
#                    start to the first line of `java -version`
#   pinned           MIB that are mapped and locked, and unmapped
#   pinned-huge      the same with transparent huge pages
#
# A round runs every side once, and each begins with another one; the first is
# not counted.  Before each start three times as much memory is taken and given
# back, where there is as much: what the host of a virtual machine took back is so
# fetched untimed, and the kernel need not give out what was fetched last.
#
# Behaves badly on a busy machine: it has no more than medians against that.

set -u -o pipefail
export LC_ALL=C.UTF-8

build=$(realpath "${1:?usage: run.sh BUILD [PART [ROUNDS [MIB]]]}")
part=${2:-all}
rounds=${3:-5}
mib=${4:-}
here=$(dirname "$(realpath "$0")")
ktask=$build/ktask
work=
server=
sides=()
old_pool=
pool=/proc/sys/vm/nr_hugepages

fail() {
	echo "ktask: bench: $*" >&2
	exit 1
}

# Whoever runs out of time has the rounds that there were.
tidy() {
	[ -z "${sides[*]}" ] || {
		echo "  interrupted in round $round"
		table "${sides[@]}"
	}
	[ -z "$server" ] || { kill -QUIT "$server" && wait "$server"; } \
		2>/dev/null
	[ -z "$old_pool" ] || echo "$old_pool" >"$pool"
	[ -z "$work" ] || rm -rf "$work"
}
trap tidy EXIT
trap 'exit 130' INT TERM

# since TIME: seconds from then until now
since() {
	awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.6f", b - a }'
}

# What each side of the present part was measured to take: by "figure/side".
declare -A samples
figures=()

# note FIGURE SIDE SECONDS
note() {
	[[ " ${figures[*]-} " == *" $1 "* ]] || figures+=("$1")
	((round == 0)) || samples[$1/$2]+=" $3"
}

# One row of each side: median, spread, and how many times as fast as the first.
table() {
	local figure side

	for figure in "${figures[@]}"; do
		printf '\n  %-44s %9s %9s %9s %8s\n' "$figure" \
			'median s' least most speed
		for side; do
			[ -n "${samples[$figure/$side]-}" ] || continue
			echo "$side:${samples[$figure/$side]-}"
		done | awk -F: '{
			n = split($2, x, " ")
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && x[j-1] + 0 > x[j] + 0; j--) {
					t = x[j]; x[j] = x[j-1]; x[j-1] = t
				}
			m = (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2
			if (NR == 1) first = m
			printf "  %-44s %9.3f %9.3f %9.3f %7.2fx\n", $1, m,
				x[1], x[n], m ? first / m : 0
		}'
	done
}

fetch() {
	local most

	most=$(awk '/^MemAvailable:/ { print int($2 / 1024 * 0.85) }' /proc/meminfo)
	"$ktask" populate --anon "$((3 * mib < most ? 3 * mib : most))M" >/dev/null
}

# measure SIDE...: rounds over the sides, each by "start_PART SIDE"
measure() {
	local nr=$# turn

	sides=("$@")
	for ((round = 0; round <= rounds; round++)); do
		for ((turn = 0; turn < nr; turn++)); do
			local index=$(((turn + round) % nr + 1))

			fetch
			"start_${part%%-*}" "${!index}"
		done
	done
	table "$@"
	sides=()
}

begin_part() {
	[ -n "$4" ] || fail "$1: not found; run: make deps NEED='software database'"
	part=$1
	mib=${asked_mib:-$2}
	figures=()
	samples=()
	echo
	echo "$part: $mib MiB, $rounds rounds, $3"
}

# PostgreSQL, as an ordinary user.

who=(--pdeathsig KILL)
[ "$(id -u)" != 0 ] ||
	who+=(--reuid=nobody "--regid=$(id -g nobody)" --clear-groups)

as_user() {
	setpriv "${who[@]}" -- "$@"
}

sql() {
	as_user "$pg/psql" -XAtq -h "$work" -U ktask postgres -c "$1" \
		2>/dev/null
}

# Until a process has $mib MiB; helpers for which no CPU is idle never come.
await_memory() {
	local try

	for ((try = 0; try < 200; try++)); do
		awk -v want=$((mib * 1024)) '/^Rss|_Hugetlb/ { sum += $2 }
			END { exit sum < want }' "/proc/$1/smaps_rollup" && return
		sleep 0.05
	done
	echo '  (a server whose memory did not come within ten seconds)'
	return 1
}

start_postgresql() {
	local run=() begin=$EPOCHREALTIME said=

	case $1 in
	plain) ;;
	*'one thread') run=("$work/ktask" run --threads 1 "${1%%,*}" --) ;;
	*) run=("$work/ktask" run "$1" --) ;;
	esac
	setpriv "${who[@]}" -- "${run[@]}" "$pg/postgres" -D "$work/data" \
		-c shared_buffers="${mib}MB" -c huge_pages="$huge_pages" \
		>>"$work/log" 2>&1 &
	server=$!
	# A client that is refused costs 15 ms of CPU, which a helper may want.
	until [ -S "$work/.s.PGSQL.5432" ] || ! kill -0 "$server" 2>/dev/null; do
		read -r -t 0.02 <&6 || :
	done
	until said=$(sql 'select count(*) from small') && [ "$said" = 1000 ]; do
		kill -0 "$server" 2>/dev/null ||
			fail "PostgreSQL: $(tail -n 1 "$work/log")"
		sleep 0.01
	done
	note 'start to the first answer' "$1" "$(since "$begin")"
	[ "$1" = plain ] || ! await_memory "$server" ||
		note 'start to all buffers present' "$1" "$(since "$begin")"
	begin=$EPOCHREALTIME
	sql "select pg_prewarm('large')" >/dev/null || fail "no pg_prewarm"
	note 'first reading of 512 MiB' "$1" "$(since "$begin")"
	begin=$EPOCHREALTIME
	kill -INT "$server"
	wait "$server"
	server=
	note 'stop' "$1" "$(since "$begin")"
}

make_database() {
	work=$(mktemp -d /tmp/ktask-bench.XXXXXX)
	cp "$ktask" "$ktask-commands" "$build/libktask-preload.so" "$work"
	# To wait at, without a process for it.
	mkfifo "$work/never"
	exec 6<>"$work/never"
	[ "$(id -u)" != 0 ] || chown nobody "$work"
	as_user "$pg/initdb" -D "$work/data" -U ktask -A trust -N --locale=C \
		-E UTF8 >/dev/null || fail "initdb failed"
	cat >>"$work/data/postgresql.conf" <<-EOF
		listen_addresses = ''
		unix_socket_directories = '$work'
		fsync = off
		wal_level = minimal
		max_wal_senders = 0
		jit = off
	EOF
	# A row of a page's size is stored in it as it is.
	as_user "$pg/postgres" --single -D "$work/data" -E postgres \
		>"$work/log" 2>&1 <<-EOF
		create extension pg_prewarm
		create unlogged table small as select generate_series(1, 1000) n
		create unlogged table large (text text)
		alter table large alter text set storage plain
		insert into large select repeat(n::text, 8000 / length(n::text)) from generate_series(1, 65536) n
		checkpoint
	EOF
}

part_postgresql() {
	pg=$(find /usr/lib/postgresql/*/bin -name pgbench 2>/dev/null |
		sort -V | tail -n 1)
	pg=${pg%/*}
	begin_part "postgresql$1" 6144 "$("$pg/postgres" --version), huge_pages=$2" "$pg"
	huge_pages=$2
	make_database
	measure plain '--prefault=wait, one thread' --prefault=wait --prefault
	rm -rf "$work"
	work=
}

part_postgresql-huge() {
	local pages=$((${asked_mib:-6144} / 2 + 200))

	[ -w "$pool" ] || fail "postgresql-huge: setting the pool takes root"
	old_pool=$(cat "$pool")
	echo $((old_pool + pages)) >"$pool"
	(($(cat "$pool") >= old_pool + pages)) ||
		fail "postgresql-huge: the machine has no $pages huge pages"
	part_postgresql -huge on
	echo "$old_pool" >"$pool"
	old_pool=
}

# The JVM.

start_jvm() {
	local run=() options=() begin line

	case $1 in
	*--prefault*) run=("$ktask" run "${1#*, }" --) ;;
	esac
	case $1 in
	serial*) options=(-XX:+UseSerialGC) ;;
	G1*) options=(-XX:+UseG1GC -XX:ParallelGCThreads=2) ;;
	esac
	begin=$EPOCHREALTIME
	exec 5< <(exec "${run[@]}" java -XX:+AlwaysPreTouch -XX:-UsePerfData \
		"-Xms${mib}m" "-Xmx${mib}m" "${options[@]}" -version 2>&1)
	read -r line <&5
	note 'start to the first line' "$1" "$(since "$begin")"
	[[ $line == *version* ]] || fail "the JVM: $line"
	cat <&5 >/dev/null
	exec 5<&-
	wait $! || fail "the JVM ended with status $?"
}

part_jvm() {
	local java

	java=$(command -v java)
	begin_part jvm 4096 "$(java -version 2>&1 | head -n 1)" "$java"
	measure serial 'serial, --prefault=wait' 'serial, --prefault' \
		'G1 with 2 threads' 'G1 with 2 threads, --prefault=wait' \
		'G1 with 2 threads, --prefault'
}

# Pinned memory.

start_pinned() {
	local run=() said

	[[ $1 != ktask* ]] || run=("$ktask" run --)
	said=$("${run[@]}" "$build/bench/pin" "$mib" "${part#pinned-}") ||
		fail "locking $mib MiB: run as root"
	note lock "$1" "${said% *}"
	note unmap "$1" "${said#* }"
}

part_pinned() {
	begin_part "pinned$1" 4096 "$2" "$build/bench/pin"
	measure plain 'ktask run'
}

asked_mib=$mib
case $part in
all)
	for each in postgresql postgresql-huge jvm pinned pinned-huge; do
		"$0" "$build" "$each" "$rounds" "$asked_mib" || exit
	done
	;;
postgresql) part_postgresql '' off ;;
postgresql-huge | jvm) "part_$part" ;;
pinned) part_pinned '' 'pages of 4 KiB' ;;
pinned-huge) part_pinned -huge 'transparent huge pages' ;;
*) fail "no such part: $part" ;;
esac
