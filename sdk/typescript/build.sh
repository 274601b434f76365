#!/bin/sh
# Builds the npm package into a directory, installs it from the file into an empty directory, and
# runs it there; with FIRN_URL set to the URL of a server, also against that. The same sources give
# the same file.
#
#	sdk/typescript/build.sh OUT VERSION
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd) version=${2#v}
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
sh prepare.sh || {
	test $? -eq 3 && exit 0
	exit 1
}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 1' INT TERM HUP
mkdir "$stage/package" "$stage/empty"
cp -R "$root/build/typescript/dist" README.md "$root/LICENSE" "$stage/package"
# The tools of the tests are of no use in the package.
node -e '
	const { scripts, devDependencies, ...rest } = JSON.parse(require("fs").readFileSync("package.json"));
	console.log(JSON.stringify({ ...rest, version: process.argv[1] }, null, 2));
' "$version" >"$stage/package/package.json"
(cd "$stage/package" && npm pack --loglevel=error --pack-destination "$out" >/dev/null)
file=$out/firnid-client-$version.tgz

cd "$stage/empty"
npm init -y >/dev/null 2>&1
npm install --offline --no-audit --no-fund --loglevel=error "$file" >/dev/null
cat >smoke.mjs <<'EOF'
import { Client } from "@firnid/client";
import { FakeClient } from "@firnid/client/testing";
if ((await new FakeClient().sequencer("smoke").next()) !== 65592203673600001n) throw new Error("the fake gives another ID");
const url = process.env.FIRN_URL;
const client = new Client([url ?? "http://127.0.0.1:3476"]);
const s = client.sequencer("smoke");
if (url) console.log("IDs:", await s.next(), ...(await s.take(2)));
await client.close();
EOF
node smoke.mjs
echo "$file"
