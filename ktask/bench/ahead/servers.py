# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Servers that read a table into buffers which nobody has touched: the rows of databases.

Owns the servers: none outlives the run that started it.
"""
import datetime
import glob
import os
import shlex
import shutil
import subprocess
import sys
import time

import sides

# One statement a line, as a server without clients reads them.
FILL_TABLE = """create database texts;
use texts;
create table texts.numbered (n int primary key, text char(250)) engine=innodb character set latin1;
insert into texts.numbered select seq, concat(md5(seq), repeat('y', 210)) from seq_1_to_%d;
"""
# A server that reads its statements from a file says nothing; it writes the time to files.
SCAN_TABLE = """select sysdate(6) into outfile '{0}.begin';
select count(*) from texts.numbered where text like '%q%';
select sysdate(6) into outfile '{0}.end';
"""
# A table above a quarter of the buffers would be read through a ring of 256 KiB.
PARTS = 5
# Rows of a MiB of such a table, nearly.
ROWS_OF_MIB = 3600
# From the connection to the scan.
CONNECTED_S = 0.1
# Whom PostgreSQL runs as: not as root.
NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]


def unpacked(build):
    return os.path.join(build, "servers", "root")


def libraries(build, program):
    """The environment of a server that is unpacked and not installed."""
    root = unpacked(build)
    if not program.startswith(root):
        return {}
    return {"LD_LIBRARY_PATH": os.path.join(root, "usr/lib", f"{os.uname().machine}-linux-gnu")}


# ---- MariaDB ----

class Statements:
    """What sides.Command is for a program: a whole server that reads its statements from a
    file and ends; the seconds of its scan, and its memory."""

    def __init__(self, command, times):
        self.command, self.times = command, times

    def run(self):
        _, mib = self.command.run()
        begin, end = map(self.read_time, ("begin", "end"))
        return (end - begin).total_seconds(), mib

    def read_time(self, name):
        path = f"{self.times}.{name}"
        with open(path, encoding="ascii") as file:
            found = datetime.datetime.fromisoformat(file.read().strip())
        os.unlink(path)
        return found


def mariadb(build, directory, mib):
    path = ":".join([os.environ["PATH"], "/usr/sbin", os.path.join(unpacked(build), "usr/sbin")])
    server = shutil.which("mariadbd", path=path)
    if not server:
        return None
    data = os.path.join(directory, "mariadb")
    os.mkdir(data)
    words = [server, "--no-defaults", "--bootstrap", "--user=root", "--datadir=" + data,
             f"--innodb-buffer-pool-size={mib}M", "--innodb-flush-method=fsync",
             "--innodb-buffer-pool-load-at-startup=0", "--innodb-doublewrite=0",
             "--innodb-buffer-pool-dump-at-shutdown=0"]
    share = glob.glob(os.path.join(unpacked(build), "usr/share/mysql"))
    if server.startswith(unpacked(build)) and share:
        words.append("--lc-messages-dir=" + share[0])
    environment = libraries(build, server)
    rows = mib * 9 // 10 * ROWS_OF_MIB
    filled = subprocess.run(words, input=(FILL_TABLE % rows).encode(), check=False,
                            env={**os.environ, **environment}, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE)
    if filled.returncode:
        sys.exit("ktask: bench: MariaDB: " + filled.stderr.decode()[-500:])
    scan = os.path.join(directory, "scan.sql")
    times = os.path.join(directory, "scanned")
    with open(scan, "w", encoding="ascii") as file:
        file.write(SCAN_TABLE.format(times))

    def server_of(*prefix, **more):
        assign = [f"{name}={value}" for name, value in {**environment, **more}.items()]
        line = shlex.join(assign + list(prefix) + words)
        return Statements(sides.Command(["sh", "-c", f"exec env {line} <{shlex.quote(scan)} "
                                         "2>/dev/null"]), times)

    run = [os.path.join(build, "ktask"), "run"]
    return {
        "plain": server_of(),
        "ktask": server_of(*run, "--"),
        "tunable": server_of(**sides.HUGE),
        "present": server_of(*run, "--prefault=wait", "--"),
    }


# ---- PostgreSQL ----

def with_descendants(pid):
    """The numbers of a process and of all that it has started."""
    children = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(words[1]), []).append(int(path.split("/")[2]))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def proportional_mib(pids):
    """Memory of processes, in which what some of them share counts once."""
    kib = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                kib += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    return kib / 1024


def make_present(pid):
    """Put all of the shared memory of a process into its own page table, as only it could
    have done: whoever reads a page through this file makes it for that process."""
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as file:
        shared = [line.split()[0] for line in file if "/dev/zero (deleted)" in line]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for addresses in shared:
            begin, end = (int(word, 16) for word in addresses.split("-"))
            memory.seek(begin)
            while begin < end:
                begin += len(memory.read(min(1 << 20, end - begin)))


class Postgresql:
    """A cluster of its own; a server is started for each run, and the scan is timed."""

    def __init__(self, directory, build, binaries, mib):
        self.directory, self.binaries, self.mib = directory, binaries, mib
        self.data = os.path.join(directory, "data")
        self.as_nobody = NOBODY if os.getuid() == 0 else []
        self.environment = {**os.environ, **libraries(build, binaries), "HOME": directory}
        for name in ("ktask", "ktask-commands", "libktask-preload.so"):
            shutil.copy(os.path.join(build, name), directory)
        self.ktask = os.path.join(directory, "ktask")

    def command(self, name, *words):
        return self.as_nobody + [os.path.join(self.binaries, name), *words]

    def call(self, name, *words):
        return subprocess.run(self.command(name, *words), check=True, env=self.environment,
                              cwd=self.directory, capture_output=True)

    def client(self, *words):
        return ("psql", "-XAtq", "-h", self.directory, "-U", "ktask", "-d", "postgres", *words)

    def query(self, text):
        return self.call(*self.client("-c", text))

    def start(self, prefix):
        server = self.command("postgres", "-D", self.data)
        words = self.as_nobody + prefix + server[len(self.as_nobody):]
        with open(os.path.join(self.directory, "log"), "ab") as log:
            child = subprocess.Popen(words, env=self.environment, cwd=self.directory, stdout=log,
                                     stderr=log)
        for _ in range(600):
            try:
                self.query("select 1")
                return child
            except subprocess.CalledProcessError:
                if child.poll() is not None:
                    break
                time.sleep(0.1)
        child.kill()
        sys.exit(f"ktask: bench: PostgreSQL does not start: {self.directory}/log")

    def stop(self, child):
        self.call("pg_ctl", "-D", self.data, "-m", "fast", "stop")
        child.wait()

    def fill(self):
        self.call("initdb", "-D", self.data, "-U", "ktask", "-A", "trust", "-k", "-N",
                  "--locale=C", "-E", "UTF8")
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="ascii") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{self.directory}'\n"
                       f"shared_buffers = {self.mib}MB\nfsync = off\njit = off\n"
                       "huge_pages = off\nautovacuum = off\nwal_level = minimal\n"
                       "max_wal_senders = 0\nmax_parallel_workers_per_gather = 0\n")
        child = self.start([])
        rows = self.mib * 9 // 10 // PARTS * ROWS_OF_MIB
        for part in range(PARTS):
            self.query(f"create table part{part} as select n, repeat('y', 240) || n::text as text"
                       f" from generate_series(1, {rows}) n")
        self.query("vacuum")
        self.stop(child)

    def scan(self, server, prepare):
        """Its seconds, and the server's MiB while the process lives that has scanned.

        prepare: called with the number of that process once it is connected; untimed
        """
        with subprocess.Popen(self.command(*self.client()), env=self.environment, text=True,
                              cwd=self.directory, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as child:
            prepare(int(self.ask(child, "select pg_backend_pid();\n")[0]))
            # A client that has just connected does not ask at once.
            time.sleep(CONNECTED_S)
            begin = time.monotonic()
            self.ask(child, "".join(f"select count(*) from part{part} where n = 0;\n"
                                    for part in range(PARTS)))
            return time.monotonic() - begin, proportional_mib(with_descendants(server.pid))

    @staticmethod
    def ask(child, statements):
        """What a client says to them, line by line."""
        child.stdin.write(statements + "\\echo done\n")
        child.stdin.flush()
        said = []
        while not said or said[-1] != "done\n":
            said.append(child.stdout.readline())
            if not said[-1]:
                sys.exit("ktask: bench: PostgreSQL ends during a scan")
        return said


class Scan:
    """What sides.Command is for a program: the seconds of the first scan, and the memory of
    all processes behind it."""

    def __init__(self, cluster, prefix, prepare=lambda pid: None):
        self.cluster, self.prefix, self.prepare = cluster, prefix, prepare

    def run(self):
        child = self.cluster.start(self.prefix)
        found = self.cluster.scan(child, self.prepare)
        self.cluster.stop(child)
        return found


def postgresql(build, directory, mib):
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres") +
                   glob.glob(unpacked(build) + "/usr/lib/postgresql/*/bin/postgres"))
    if not found:
        return None
    # Nobody else may look into the other one.
    own = os.path.join(directory, "postgresql")
    os.mkdir(own)
    os.chmod(directory, 0o711)
    if os.getuid() == 0:
        shutil.chown(own, "nobody", "nogroup")
    cluster = Postgresql(own, build, os.path.dirname(found[-1]), mib)
    cluster.fill()
    return {
        "plain": Scan(cluster, []),
        "ktask": Scan(cluster, [cluster.ktask, "run", "--"]),
        "present": Scan(cluster, [], make_present),
    }
