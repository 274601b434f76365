#!/bin/sh
# Runs other generators of IDs with a clock that stands still and that is set back, and two of each
# at once, and prints the rows of the table in docs/worker-ids.md. It installs pinned packages in a
# temporary directory, and moves no clock but that of its processes: with clock.c below, and in Go
# with a copy of time.go. It takes about ten minutes.
#
#	scripts/peers.sh [go|java|node|python...]
#
# A row has what happens to 10,000 IDs in one moment of the clock, after steps back of 5 ms, 1 s
# and 1 h to a time at which IDs were made, and how many IDs of 1,000 two processes share that start
# at the same time with the library's defaults; in Python, that os.fork makes of one.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# The clock of a process: the nanoseconds since 1970 at which it stands still, or 0 if it runs.
cat >"$dir/clock.c" <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);
static volatile int64_t *set;

int clock_gettime(clockid_t id, struct timespec *t) {
	if (!set) {
		real = dlsym(RTLD_NEXT, "clock_gettime");
		set = mmap(0, 8, PROT_READ, MAP_SHARED, open(getenv("PEER_CLOCK"), O_RDONLY), 0);
	}
	int code = real(id, t);
	if (*set && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		t->tv_sec = *set / 1000000000;
		t->tv_nsec = *set % 1000000000;
	}
	return code;
}

int gettimeofday(struct timeval *restrict v, void *restrict zone) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	v->tv_sec = t.tv_sec;
	v->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *p) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (p) *p = t.tv_sec;
	return t.tv_sec;
}
EOF
cc -shared -fPIC -O1 -o "$dir/clock.so" "$dir/clock.c" -ldl

# Each driver makes the generator that is its argument. For each line "COUNT MICROSECONDS" of its
# input, it prints as many IDs with such a pause after each, or an error, and then "done".

mkdir "$dir/go"
cat >"$dir/go/main.go" <<'EOF'
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
)

// faked sets the clock from the file of clock.c.
func faked() {
	fixed := int64(binary.LittleEndian.Uint64(must(os.ReadFile(os.Getenv("PEER_CLOCK")))))
	if fixed > time.Fixed && time.Fixed != 0 {
		time.Ahead += fixed - time.Fixed // the monotonic clock goes forward alone
	}
	time.Fixed = fixed
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func main() {
	faked()
	var next func() (string, error)
	switch os.Args[1] {
	case "bwmarrin/snowflake 0.3.0":
		node := must(snowflake.NewNode(1))
		next = func() (string, error) { return node.Generate().String(), nil }
	case "Sonyflake 2.2.0":
		flake := must(sonyflake.New(sonyflake.Settings{MachineID: func() (int, error) { return 1, nil }}))
		next = func() (string, error) { id, err := flake.NextID(); return fmt.Sprint(id), err }
	case "yitter (Go) 1.3.3":
		idgen.SetIdGenerator(idgen.NewIdGeneratorOptions(1))
		next = func() (string, error) { return fmt.Sprint(idgen.NextId()), nil }
	case "oklog/ulid 2.1.2":
		next = func() (string, error) { return ulid.Make().String(), nil }
	case "rs/xid 1.6.0":
		next = func() (string, error) { return xid.New().String(), nil }
	case "google/uuid 1.6.0 v7":
		next = func() (string, error) { id, err := uuid.NewV7(); return id.String(), err }
	default:
		panic(os.Args[1])
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		faked()
		var count, pause int
		fmt.Sscan(in.Text(), &count, &pause)
		for range count {
			id, err := next()
			if err != nil {
				fmt.Println("error", err)
				break
			}
			fmt.Println(id)
			time.Sleep(time.Duration(pause) * time.Microsecond)
		}
		fmt.Println("done")
	}
}
EOF

cat >"$dir/Main.java" <<'EOF'
import cn.hutool.core.lang.Snowflake;
import cn.hutool.core.util.IdUtil;
import com.baomidou.mybatisplus.core.toolkit.Sequence;
import com.github.f4b6a3.tsid.TsidCreator;
import com.github.yitter.contract.IdGeneratorOptions;
import com.github.yitter.idgen.YitIdHelper;
import com.xfvape.uid.impl.DefaultUidGenerator;
import io.hypersistence.tsid.TSID;
import java.util.Scanner;
import java.util.function.LongSupplier;
import me.ahoo.cosid.snowflake.ClockSyncSnowflakeId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;
import org.apache.seata.common.util.IdWorker;

class Main {
  static LongSupplier generator(String name) throws Exception {
    switch (name) {
      case "yitter (Java) 1.0.6":
        YitIdHelper.setIdGenerator(new IdGeneratorOptions((short) 1));
        return YitIdHelper::nextId;
      case "Seata 2.5.0":
        return new IdWorker(null)::nextId;
      case "Hutool 5.8.44":
        return IdUtil.getSnowflake()::nextId;
      case "MyBatis-Plus 3.5.17":
        return new Sequence(null)::nextId;
      case "CosId 2.13.3":
        return new ClockSyncSnowflakeId(new MillisecondSnowflakeId(1))::generate;
      case "uid-generator 0.0.4":
        DefaultUidGenerator uid = new DefaultUidGenerator();
        uid.setWorkerIdAssigner(() -> 1);
        uid.setTimeBits(29); // the default of 28 ended in 2024
        uid.setWorkerBits(21);
        uid.afterPropertiesSet();
        return uid::getUID;
      case "tsid-creator 5.2.6":
        return () -> TsidCreator.getTsid1024().toLong();
      case "hypersistence-tsid 2.1.4":
        return () -> TSID.Factory.getTsid1024().toLong();
      default:
        throw new IllegalArgumentException(name);
    }
  }

  public static void main(String[] args) throws Exception {
    LongSupplier next = generator(args[0]);
    for (Scanner in = new Scanner(System.in); in.hasNextInt();) {
      int count = in.nextInt(), pause = in.nextInt();
      for (int i = 0; i < count; i++) {
        try {
          System.out.println(next.getAsLong());
        } catch (Exception e) {
          System.out.println("error " + e);
          break;
        }
        if (pause > 0) {
          Thread.sleep(0, pause * 1000);
        }
      }
      System.out.println("done");
    }
    System.exit(0);
  }
}
EOF

cat >"$dir/main.js" <<'EOF'
const fs = require("fs"), readline = require("readline");
const generators = {
  "flake-idgen 1.4.0": () => {
    const flake = new (require("flake-idgen"))();
    return () => flake.next().readBigUInt64BE().toString();
  },
  "nodejs-snowflake 2.0.1": () => {
    const flake = new (require("nodejs-snowflake").Snowflake)({ custom_epoch: 1767225600000 });
    return () => flake.getUniqueID().toString();
  },
  "@sapphire/snowflake 3.5.5": () => {
    const flake = new (require("@sapphire/snowflake").Snowflake)(1767225600000n);
    return () => flake.generate().toString();
  },
  "snowflake-id 1.1.0 (npm)": () => {
    const flake = new (require("snowflake-id").default)();
    return () => flake.generate();
  },
  "ulid 3.0.2, monotonicFactory": () => require("ulid").monotonicFactory(),
  "uuid 14.0.3 v7": () => require("uuid").v7,
  "uuidv7 1.2.1": () => require("uuidv7").uuidv7,
};
const next = generators[process.argv[2]]();
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const [count, pause] = line.split(" ").map(Number);
  for (let i = 0; i < count; i++) {
    try {
      fs.writeSync(1, next() + "\n");
    } catch (e) {
      fs.writeSync(1, `error ${e.message}\n`);
      break;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause / 1000);
  }
  fs.writeSync(1, "done\n");
});
EOF

cat >"$dir/main.py" <<'EOF'
import os, sys, time


def generator(name):
    if name == "snowflake-id 1.0.2 (PyPI)":
        from snowflake import SnowflakeGenerator
        return SnowflakeGenerator(1, epoch=1767225600000).__next__
    if name == "sonyflake-py 1.3.0":
        from sonyflake import SonyFlake
        return SonyFlake(machine_id=lambda: 1).next_id
    if name == "python-ulid 4.1.0":
        from ulid import ULID
        return ULID
    if name == "uuid-utils 1.2.0 v7":
        from uuid_utils import uuid7
        return uuid7
    if name == "uuid6 2025.0.1 v7":
        from uuid6 import uuid7
        return uuid7


next = generator(sys.argv[1])
for line in sys.stdin:
    count, pause = map(int, line.split())
    child = 0
    if count < 0:  # with a fork, whose IDs are printed after those of the process
        count = -count
        next()
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(into, 1)
    try:
        for _ in range(count):
            id = next()
            if id is None:
                raise RuntimeError("None")
            print(id, flush=True)
            time.sleep(pause / 1e6)
    except Exception as e:
        print("error", e, flush=True)
    if count and child == 0 and "into" in globals():
        os._exit(0)
    if child:
        print("child", flush=True)
        os.close(into)
        print(os.fdopen(out).read(), end="")
        os.wait()
        del into
    print("done", flush=True)
EOF

cat >"$dir/table.py" <<'EOF'
import os, queue, struct, subprocess, sys, threading, time

dir, language, command = sys.argv[1], sys.argv[2], sys.argv[3].split()
digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def number(text):
    "An ID as a number; order is what matters."
    text = text.replace("-", "")
    return int(text) if text.isdigit() and len(text) < 20 else int(text, 36)


class Process:
    def __init__(self, name, clock):
        self.file = f"{dir}/clock{time.monotonic_ns()}"
        self.clock(clock)
        env = dict(os.environ, PEER_CLOCK=self.file)
        if language != "go":
            env["LD_PRELOAD"] = f"{dir}/clock.so"
        self.p = subprocess.Popen(command + [name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=open(f"{dir}/stderr", "w"), text=True, bufsize=1, env=env, cwd=dir)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.p.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def clock(self, still):
        with open(self.file, "r+b" if os.path.exists(self.file) else "wb") as f:
            f.write(struct.pack("<q", still))

    def ask(self, count, pause):
        print(count, pause, file=self.p.stdin, flush=True)

    def answer(self, idle=60):
        "The IDs; the error, if any; and whether it has ended, or printed nothing for some seconds."
        ids, error = [], ""
        while True:
            try:
                line = self.lines.get(timeout=idle)
            except queue.Empty:
                return ids, error, False
            if line is None:
                raise SystemExit(f"{command}: {open(dir + '/stderr').read()[-600:]}")
            if line == "done":
                return ids, error, True
            if line.startswith("error"):
                error = line
            else:
                ids.append(line)

    def end(self):
        self.p.kill()
        self.p.wait()


def shared(ids, others):
    return len(ids) - len(set(ids) - set(others))


def still(ms):
    "A clock that stands still, some milliseconds after the time in two hours."
    return (start + ms) * 1_000_000


def burst(name):
    p = Process(name, 0)
    p.ask(1, 0)
    p.answer()
    p.clock(still(0))
    p.ask(10_000, 0)
    ids, error, ended = p.answer(10)
    p.end()
    twice = len(ids) - len(set(ids))
    print(name, "burst", len(ids), "twice", twice, error, ended, file=sys.stderr)
    if twice:
        return f"repeats from ID {next(i for i, id in enumerate(ids) if id in ids[:i]) + 1}"
    if error:
        return f"error from ID {len(ids) + 1}"
    if not ended:
        return f"waits after {len(ids):,}"
    values = [number(id) for id in ids]
    return "no limit" + ("" if values == sorted(values) else ", unordered")


def back(name, step):
    "The clock stands still, and moves by a millisecond after each three IDs."
    def run(first, count):
        ids = []
        for moment in range(first, first + count):
            p.clock(still(moment))
            p.ask(3, 0)
            some, error, ended = p.answer(10)
            ids += some
            if error or not ended:
                break
        return ids, error, ended

    p = Process(name, 0)
    p.ask(1, 0)
    before = p.answer()[0] + run(1 - step, 20)[0] + run(21, 3)[0]
    ids, error, ended = run(2 - step if step > 5 else 19, 20)
    p.end()
    behind = sum(number(id) < max(map(number, before)) for id in ids)
    print(name, "back", step, len(ids), "repeated", shared(ids, before), "not in order", behind, error, ended, file=sys.stderr)
    if shared(ids, before) or len(ids) != len(set(ids)):
        return "**repeats**"
    if error:
        return "error"
    if not ended:
        return "waits" if not ids else f"waits after {len(ids)}"
    return "not in order" if behind else "in order"


def two(name):
    if language == "python":
        p = Process(name, 0)
        p.ask(-1000, 500)
        ids = p.answer()[0]
        p.end()
        middle = ids.index("child")
        equal = shared(ids[:middle], ids[middle + 1:])
    else:
        pair = [Process(name, 0), Process(name, 0)]
        for p in pair:
            p.ask(1, 0)
        for p in pair:
            p.answer()
        for p in pair:
            p.ask(1000, 500)
        ids = [p.answer()[0] for p in pair]
        for p in pair:
            p.end()
        equal = shared(*ids)
    print(name, "two", equal, file=sys.stderr)
    return f"**{equal}**" if equal else "0"


start = int(time.time() + 7200) * 1000
for name in sys.argv[4:]:
    print("|", " | ".join([name, two(name), burst(name), *(back(name, s) for s in (5, 1000, 3_600_000))]), "|", flush=True)
EOF

table() {
	language=$1 command=$2
	shift 2
	python3 "$dir/table.py" "$dir" "$language" "$command" "$@"
}

go_peers() {
	export GOWORK=off GOFLAGS=-mod=mod
	(
		cd "$dir/go"
		go mod init peers
		go get github.com/bwmarrin/snowflake@v0.3.0 github.com/google/uuid@v1.6.0 github.com/oklog/ulid/v2@v2.1.2 \
			github.com/rs/xid@v1.6.0 github.com/sony/sonyflake/v2@v2.2.0 github.com/yitter/idgenerator-go@v1.3.3
		# Now stands still at Fixed, and the monotonic clock with it.
		sed -e 's/runtimeNano()-startNano/mono()/' -e 's/:= runtimeNow()$/:= moved()/' "$(go env GOROOT)/src/time/time.go" >../time.go
		cat >>../time.go <<-'EOF'

			var Fixed, Ahead, started int64

			func mono() int64 { _, _, mono := moved(); return mono - startNano }

			func moved() (int64, int32, int64) {
				sec, nsec, mono := runtimeNow()
				wall := sec*1e9 + int64(nsec)
				if Fixed != 0 {
					if started == 0 {
						started = mono
					}
					wall, mono = Fixed, started+Ahead
				}
				return wall / 1e9, int32(wall % 1e9), mono
			}
		EOF
		echo '{"Replace": {"'"$(go env GOROOT)"'/src/time/time.go": "'"$dir"'/time.go"}}' >overlay.json
		go build -overlay overlay.json -o peers .
	) >&2
	table go "$dir/go/peers" 'bwmarrin/snowflake 0.3.0' 'Sonyflake 2.2.0' 'yitter (Go) 1.3.3' \
		'rs/xid 1.6.0' 'oklog/ulid 2.1.2' 'google/uuid 1.6.0 v7'
}

java_peers() {
	mkdir "$dir/java"
	{
		echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
		echo '<groupId>org.example</groupId><artifactId>peers</artifactId><version>1</version><dependencies>'
		printf '%s\n' org.apache.seata:seata-common:2.5.0 com.github.yitter:yitter-idgenerator:1.0.6 \
			cn.hutool:hutool-core:5.8.44 com.baomidou:mybatis-plus-core:3.5.17 org.mybatis:mybatis:3.5.19 \
			me.ahoo.cosid:cosid-core:2.13.3 com.xfvape.uid:uid-generator:0.0.4-RELEASE \
			com.github.f4b6a3:tsid-creator:5.2.6 io.hypersistence:hypersistence-tsid:2.1.4 |
			sed 's|\(.*\):\(.*\):\(.*\)|<dependency><groupId>\1</groupId><artifactId>\2</artifactId><version>\3</version></dependency>|'
		echo '</dependencies></project>'
	} >"$dir/java/pom.xml"
	(cd "$dir/java" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars) >&2
	javac -nowarn -cp "$dir/java/jars/*" -d "$dir/java" "$dir/Main.java" >&2
	table java "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp $dir/java:$dir/java/jars/* Main" \
		'yitter (Java) 1.0.6' 'Seata 2.5.0' 'Hutool 5.8.44' 'MyBatis-Plus 3.5.17' 'CosId 2.13.3' \
		'uid-generator 0.0.4' 'tsid-creator 5.2.6' 'hypersistence-tsid 2.1.4'
}

node_peers() {
	npm install --prefix "$dir" --no-audit --no-fund --silent flake-idgen@1.4.0 nodejs-snowflake@2.0.1 \
		@sapphire/snowflake@3.5.5 snowflake-id@1.1.0 ulid@3.0.2 uuid@14.0.3 uuidv7@1.2.1 >&2
	table node "node $dir/main.js" 'flake-idgen 1.4.0' 'nodejs-snowflake 2.0.1' '@sapphire/snowflake 3.5.5' \
		'snowflake-id 1.1.0 (npm)' 'ulid 3.0.2, monotonicFactory' 'uuid 14.0.3 v7' 'uuidv7 1.2.1'
}

python_peers() {
	python3 -m venv "$dir/v"
	"$dir/v/bin/pip" install -q --disable-pip-version-check snowflake-id==1.0.2 sonyflake-py==1.3.0 \
		python-ulid==4.1.0 uuid-utils==1.2.0 uuid6==2025.0.1 >&2
	table python "$dir/v/bin/python $dir/main.py" 'snowflake-id 1.0.2 (PyPI)' 'sonyflake-py 1.3.0' \
		'python-ulid 4.1.0' 'uuid-utils 1.2.0 v7' 'uuid6 2025.0.1 v7'
}

for language in ${*:-go java node python}; do
	(set -e; "${language}_peers") &
	wait $! || echo "NOT RUN: $language" >&2
done
