#!/bin/sh
# Runs published Redis clients against a server, and prints the rows of the tables in docs/resp.md:
# what each sends first, whether it works by default after 11 silent seconds, and what to set. It
# fails if a row has changed. It installs the versions below in a temp folder; clients of Debian
# run if they are installed:
#
#	apt install redis-tools libhiredis-dev libredis-perl libredis-fast-perl libanyevent-redis-perl \
#		ruby-redis ruby-hiredis php-cli php-redis php-predis lua5.1 luajit lua-redis
#	make build && scripts/resp-clients.sh [LANGUAGE...]
set -eu
cd "$(dirname "$0")/.."
root=$(pwd) src=$(pwd)/server/internal/protocol/respapi/testdata/clients/table
export SILENT="${SILENT:-11}" GOWORK=off GOFLAGS=-mod=mod
dir=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server"; fi; rm -rf "$dir"' EXIT
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
bin/firn serve --listen "127.0.0.1:$port" --node 1 --log-level error &
server=$!
mkdir "$dir/rows"
rows=0 running=
wanted=${*:-python node go java rust c perl ruby php lua cli}

# row NAME SET COMMAND... runs a client, six at a time.
row() {
	rows=$((rows + 1))
	name=$1 set=$2
	shift 2
	python3 "$src/row.py" "$name" "$set" "$port" "$@" >"$dir/rows/$(printf %03d $rows)" &
	running="$running $!"
	if [ $((rows % 6)) -eq 0 ]; then rest; fi
}
rest() {
	for pid in $running; do wait "$pid" || true; done
	running=
}
refused() { # NAME COMMAND... runs a client for several servers, which must get an error
	name=$1
	shift
	row "$name" "" --refused "$@"
}
skip() { echo "SKIPPED: $1" >&2; }
has() { # LANGUAGE COMMAND...
	case " $wanted " in *" $1 "*) ;; *) return 1 ;; esac
	shift
	for command; do
		command -v "$command" >/dev/null || { skip "$command is not installed"; return 1; }
	done
}
debian() { # PACKAGE prints its version
	dpkg-query -W -f '${Version}' "$1" 2>/dev/null | sed 's/^[0-9]*://; s/[-+~].*//'
}
poms() { # GROUP:NAME:VERSION[:CLASSIFIER]...
	echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
	echo '<groupId>c</groupId><artifactId>c</artifactId><version>1</version><dependencies>'
	for a; do
		echo "$a::" | sed 's|^\([^:]*\):\([^:]*\):\([^:]*\):\([^:]*\):.*|<dependency><groupId>\1</groupId><artifactId>\2</artifactId><version>\3</version><classifier>\4</classifier></dependency>|; s|<classifier></classifier>||'
	done
	echo '</dependencies></project>'
}
java_with() { # CLASS GROUP:NAME:VERSION... installs into a directory of that name
	mkdir "$dir/$1" && cd "$dir/$1"
	class=$1
	shift
	poms "$@" >pom.xml
	mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >log 2>&1 && javac -nowarn -cp 'lib/*' -d . "$src/java/$class.java" 2>>log
	status=$?
	cd "$root"
	return $status
}

if has python python3; then
	python3 -m venv "$dir/py"
	if "$dir/py/bin/pip" install -q --disable-pip-version-check redis==8.1.0 valkey==6.2.0 coredis==6.9.0 valkey-glide==2.6.0 valkey-glide-sync==2.6.0; then
		py() { row "$1" "$2" "$dir/py/bin/python" "$src/python.py" "$3"; }
		py "redis-py 8.1.0" '`execute_command("NEXT", name)`' redis-py
		py "redis-py 8.1.0, asyncio" '`await r.execute_command("NEXT", name)`' redis-py-asyncio
		py 'redis-py 8.1.0, `protocol=2`' "" redis-py-2
		py 'redis-py 8.1.0, `cache_config`' "caches nothing" redis-py-cache
		py "valkey-py 6.2.0" '`execute_command("NEXT", name)`' valkey-py
		py "coredis 6.9.0" '`create_request(b"NEXT", name, callback=…)`' coredis
		py "valkey-glide 2.6.0, Python" '`custom_command(["NEXT", name])`' glide
		py "valkey-glide-sync 2.6.0" '`custom_command(["NEXT", name])`' glide-sync
		for mode in cluster sentinel; do refused "redis-py 8.1.0, $mode" "$dir/py/bin/python" "$src/python.py" redis-py-$mode; done
	else skip "the clients for Python cannot be installed"; fi
fi
if has node node npm; then
	if npm install --silent --no-audit --no-fund --prefix "$dir/js" ioredis@6.0.0 redis@6.3.1 iovalkey@0.4.0 @valkey/valkey-glide@2.5.2 bun@1.4.5 >/dev/null; then
		js() { row "$1" "$2" env -C "$dir/js" node "$src/node.mjs" "$3"; }
		js "ioredis 6.0.0" '`call("NEXT", name)`; or `stringNumbers: true`' ioredis
		js 'ioredis 6.0.0, `stringNumbers`' "" ioredis-strings
		js "iovalkey 0.4.0" '`call("NEXT", name)`; or `stringNumbers: true`' iovalkey
		js 'iovalkey 0.4.0, `stringNumbers`' "" iovalkey-strings
		js "node-redis 6.3.1" '`sendCommand(["NEXT", name])`; or `withTypeMapping({ [RESP_TYPES.NUMBER]: String })`' node-redis
		js 'node-redis 6.3.1, `withTypeMapping`' "" node-redis-strings
		js 'node-redis 6.3.1, `clientSideCache`' "as without" node-redis-cache
		js "valkey-glide 2.5.2, Node" '`customCommand(["NEXT", name])`' glide
		row "Bun 1.4.5" '`send("NEXT", [name])`' env -C "$dir/js" node_modules/.bin/bun "$src/node.mjs" bun
		for client in ioredis node-redis; do
			for mode in cluster sentinel; do refused "$client, $mode" env -C "$dir/js" node "$src/node.mjs" $client-$mode; done
		done
	else skip "the clients for Node cannot be installed"; fi
fi
if has go go; then
	mkdir "$dir/go" && cp "$src/go/main.go" "$src/go/glide.go" "$dir/go"
	if (cd "$dir/go" && go mod init example.org/c && go get github.com/redis/go-redis/v9@v9.23.0 github.com/redis/rueidis@v1.0.79 github.com/valkey-io/valkey-go@v1.0.79 github.com/mediocregopher/radix/v4@v4.1.4 github.com/gomodule/redigo@v1.9.3 github.com/valkey-io/valkey-glide/go/v2@v2.5.3 && go build -o client .) >"$dir/go/log" 2>&1; then
		gor() { row "$1" "$2" "$dir/go/client" "$3"; }
		gor "go-redis 9.23.0" '`Do(ctx, "NEXT", name)`' go-redis
		gor "rueidis 1.0.79" '`B().Arbitrary("NEXT").Keys(name)`' rueidis
		gor "valkey-go 1.0.79" '`B().Arbitrary("NEXT").Keys(name)`' valkey-go
		gor "radix 4.1.4" '`radix.Cmd(&id, "NEXT", name)`' radix
		gor "redigo 1.9.3" '`Do("NEXT", name)`' redigo
		gor "valkey-glide 2.5.3, Go" '`CustomCommand(ctx, …)`' glide
		for mode in cluster sentinel; do refused "go-redis 9.23.0, $mode" "$dir/go/client" go-redis-$mode; done
	else skip "the clients for Go cannot be built: $(tail -1 "$dir/go/log")"; fi
fi
if has java java javac mvn; then
	if java_with Clients redis.clients:jedis:8.0.2 io.lettuce:lettuce-core:7.7.0.RELEASE org.redisson:redisson:4.7.0 io.vertx:vertx-redis-client:5.2.3 io.valkey:valkey-glide:2.3.1:linux-x86_64; then
		jv() { row "$1" "$2" env -C "$dir/Clients" java -cp 'lib/*:.' Clients "$3"; }
		jv 'Jedis 8.0.2, `Jedis`' '`sendCommand(() -> "NEXT".getBytes(), name)`' jedis
		jv 'Jedis 8.0.2, `RedisClient`' '`sendCommand(() -> "NEXT".getBytes(), name)`' jedis-pool
		jv 'Jedis 8.0.2, `cacheConfig`' "caches nothing" jedis-cache
		jv "Lettuce 7.7.0" '`dispatch(NEXT, new ValueOutput<>(…), …)`; `ArrayOutput` for several' lettuce
		jv 'Lettuce 7.7.0, `ClientSideCaching`' "caches nothing" lettuce-cache
		jv "Redisson 4.7.0" '`incrementAndGet()`. Never `getAndIncrement()`: it subtracts 1' redisson
		jv "Vert.x 5.2.3" '`send(Command.create("NEXT"), name)`' vertx
		jv "valkey-glide 2.3.1, Java" '`customCommand(…)`' glide
		for mode in cluster sentinel; do
			refused "Jedis 8.0.2, $mode" env -C "$dir/Clients" java -cp 'lib/*:.' Clients jedis-$mode
			refused "Lettuce 7.7.0, $mode" env -C "$dir/Clients" java -cp 'lib/*:.' Clients lettuce-$mode
		done
	else skip "the clients for Java cannot be installed: $(tail -1 "$dir/Clients/log")"; fi
	if java_with Spring org.springframework.data:spring-data-redis:4.1.2 io.lettuce:lettuce-core:7.5.2.RELEASE redis.clients:jedis:7.4.1; then
		sp() { row "Spring Data Redis 4.1.2, $1" "$2" env -C "$dir/Spring" java -cp 'lib/*:.' Spring "$3"; }
		sp "Lettuce 7.5.2" 'the others are lost; take the output type from the next row, or `executePipelined`' lettuce
		sp '`LettuceConnection`' '`execute("NEXT", new ArrayOutput<>(…), name, count)`' lettuce-typed
		sp "Jedis 7.4.1" '`execute("NEXT", name, count)`' jedis
	else skip "Spring Data Redis cannot be installed: $(tail -1 "$dir/Spring/log")"; fi
fi
if has rust cargo; then
	if (mkdir "$dir/rust" && cd "$dir/rust" && cargo init -q --name client && cp "$src/rust/main.rs" src && cargo add -q redis@1.8.1 --no-default-features && cargo add -q fred@10.1.0 && cargo add -q tokio@1 --features full && cargo build -q) >"$dir/rust.log" 2>&1; then
		rs() { row "$1" "$2" "$dir/rust/target/debug/client" "$3"; }
		rs "redis-rs 1.8.1" '`cmd("NEXT").arg(name)`' redis-rs
		rs 'redis-rs 1.8.1, `?protocol=resp3`' "" redis-rs-3
		rs "fred 10.1.0" '`custom(CustomCommand::new_static("NEXT", …), …)`' fred
	else skip "the clients for Rust cannot be built: $(tail -1 "$dir/rust.log")"; fi
fi
if has c cc; then
	if cc -o "$dir/hiredis" "$src/hiredis.c" -lhiredis 2>/dev/null; then
		row "hiredis $(debian libhiredis-dev)" '`redisCommand(c, "NEXT %s", name)`' "$dir/hiredis"
	else skip "hiredis is not installed"; fi
fi
if has perl perl; then
	for class in Redis Redis::Fast AnyEvent::Redis; do
		if version=$(perl -M"$class" -e "print $class->VERSION" 2>/dev/null); then
			row "Perl $class $version" '`$r->next($name)`' perl "$src/perl.pl" "$class"
		else skip "Perl's $class is not installed"; fi
	done
fi
if has ruby ruby; then
	for driver in ruby hiredis; do
		if ruby -r redis -r "redis/connection/$driver" -e '' 2>/dev/null; then
			row "redis-rb $(debian ruby-redis), driver $driver" '`call("NEXT", name)`' ruby "$src/ruby.rb" $driver
		else skip "redis-rb with driver $driver is not installed"; fi
	done
fi
if has php php; then
	if php -r 'exit(extension_loaded("redis") ? 0 : 1);'; then
		row "phpredis $(php -r 'echo phpversion("redis");')" '`rawCommand("NEXT", $name)`' php "$src/php.php" phpredis
		refused "phpredis, cluster" php "$src/php.php" phpredis-cluster
	else skip "phpredis is not installed"; fi
	if php -r 'exit((@include "Predis/Autoloader.php") ? 0 : 1);'; then
		row "Predis $(debian php-predis)" '`executeRaw(["NEXT", $name])`' php "$src/php.php" predis
	else skip "Predis is not installed"; fi
fi
if has lua; then
	for lua in lua5.1 luajit; do
		if $lua -e 'require("redis")' 2>/dev/null; then
			row "redis-lua $(debian lua-redis), $lua" '`redis.command("NEXT")`; leave the ID a string' $lua "$src/lua.lua"
		else skip "redis-lua with $lua is not installed"; fi
	done
fi
if has cli redis-cli; then
	row "redis-cli $(redis-cli --version | cut -d ' ' -f 2)" '`NEXT name`' sh "$src/cli.sh"
fi
rest
changed=0
for file in "$dir"/rows/*; do
	line=$(cat "$file")
	echo "$line"
	case $line in
	"| "*) grep -Fqx -- "$line" docs/resp.md || changed=$((changed + 1)) ;;
	*": an error: "*) ;;
	*) changed=$((changed + 1)) ;;
	esac
done
echo "$rows clients, $changed not as in docs/resp.md" >&2
[ "$changed" -eq 0 ]
