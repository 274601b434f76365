#!/bin/sh
# Builds the package in build/typescript, a copy of this directory with what package-lock.json
# names from the registry. It does nothing if nothing has changed. It exits with 3 and a line that
# says why if a program is missing. Run by npm, as in npm install ./sdk/typescript, it copies the
# result to dist.
#
#	sdk/typescript/prepare.sh
set -eu
cd "$(dirname "$0")"
for program in node npm; do
	command -v $program >/dev/null || {
		echo "skipped sdk/typescript: no $program here"
		exit 3
	}
done
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
	echo "skipped sdk/typescript: node $(node --version) is older than 20"
	exit 3
fi
work=$(cd ../.. && pwd)/build/typescript
mkdir -p "$work"
(
	# One at a time.
	if command -v flock >/dev/null; then flock 9; fi
	lock=$(cat package.json package-lock.json | cksum)
	stamp=$lock\ $(find . -type f -not -path './node_modules/*' -not -path './dist/*' | sort | xargs cat | cksum)
	test "$(cat "$work/stamp" 2>/dev/null)" != "$stamp" || exit 0
	rm -rf "$work/stamp" "$work/src" "$work/test" "$work/dist"
	tar cf - --exclude ./node_modules --exclude ./dist . | (cd "$work" && tar xf -)
	cd "$work"
	npm pkg delete scripts.prepare
	echo 'module ignored' >go.mod # go's ./... leaves out a directory with a module of its own
	if [ "$(cat node_modules/.stamp 2>/dev/null)" != "$lock" ]; then
		# Of what this npm inherits from the one that runs this script, some leaves out the compiler.
		npm ci --include=dev --dry-run=false --no-audit --no-fund --loglevel=error >&2
		test -e node_modules/.bin/tsc
		echo "$lock" >node_modules/.stamp
	fi
	npm run --silent build >&2
	echo "$stamp" >stamp
) 9>"$work/.lock"
if [ "${npm_lifecycle_event-}" = prepare ]; then
	rm -rf dist
	cp -R "$work/dist" .
fi
