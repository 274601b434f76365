#!/bin/sh
# Makes the release VERSION of the commit that is checked out, in
# build/release/VERSION. It publishes nothing. See docs/release.md.
#
#	[TARGETS=linux/amd64,…] [LANGUAGES='python …'] [KEY=FILE] [OUT=DIR] scripts/release.sh v1.2.3
set -eu
cd "$(dirname "$0")/.."
version=${1:-}
targets=$(echo "${TARGETS:-linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64}" | tr , ' ')
out=${OUT:-$PWD/build/release/$version} # an absolute path
src=$out/repository
work=$out/parts

say() { echo "release: $*" >&2; }
fail() {
	say "$*"
	exit 1
}
url() { echo "file://$1" | sed 's/ /%20/g'; }

if [ -z "$version" ]; then
	echo 'usage: make release VERSION=v1.2.3' >&2
	exit 2
fi
number='(0|[1-9][0-9]*)'
echo "$version" | grep -Eqx "v$number\.$number\.$number(-[0-9A-Za-z.-]+)?" ||
	fail "version $version: write it like v1.2.3 or v1.2.3-rc.1"
case $version in
v[01].*) ;;
*) fail "version $version: Go needs /${version%%.*} at the end of every module path first" ;;
esac
for target in $targets; do
	go tool dist list | grep -qx "$target" || fail "unknown target $target"
done
number=${version#v}
changes=$(git status --porcelain)
[ -z "$changes" ] || fail "the working tree has changes that are not committed:
$changes"

say 'tools'
rm -rf "$out"
mkdir -p "$work/tools" "$out/proxy/github.com"
(cd tools/release && GOWORK=off go build -buildvcs=false -o "$work/tools/" . github.com/goreleaser/nfpm/v2/cmd/nfpm)

# No setting of the caller changes a binary. The module cache is separate, so
# that another release of the same version cannot be found in it, nor this one in
# the caller's. The tags are looked for in the release's own repository.
proxy="$(url "$(go env GOMODCACHE)/cache/download"),$(go env GOPROXY)"
export GOWORK=off GOENV=off GOFLAGS=-modcacherw GOPRIVATE=github.com/firnid GOPROXY="$proxy" GOMODCACHE="$work/modules"
export CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GODEBUG=
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.$src.insteadOf" GIT_CONFIG_VALUE_0=https://github.com/firnid/firn

# A commit in which deploy/ names the version, and the modules require each other by
# it. In the tree they require v0.0.0 and replace it by a directory: go install refuses
# such a module, and go get ignores the replacement. go.work lists each module after
# those that it requires.
say 'commit and modules'
git clone -q --shared . "$src"
cd "$src"
git checkout -q --detach
base=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git show -s --format=%ct)
GIT_COMMITTER_NAME=$(git show -s --format=%cn) GIT_COMMITTER_EMAIL=$(git show -s --format=%ce)
GIT_COMMITTER_DATE="$SOURCE_DATE_EPOCH +0000"
export SOURCE_DATE_EPOCH GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
export GIT_AUTHOR_NAME="$GIT_COMMITTER_NAME" GIT_AUTHOR_EMAIL="$GIT_COMMITTER_EMAIL" GIT_AUTHOR_DATE="$GIT_COMMITTER_DATE"
for file in deploy/compose/compose.yaml deploy/kubernetes/firn.yaml deploy/helm/firn/Chart.yaml; do
	sed "s|/firn:0\.0\.0|/firn:$number|; s|ersion: \(\"*\)0\.0\.0|ersion: \1$number|" $file >"$work/file"
	cat "$work/file" >$file
done
modules=$(sed -n 's|^	\./*||p' go.work) # "" is the root
tags=
echo 'module none' >"$work/go.mod" # where go mod download changes nothing
for dir in . $modules; do
	cd "$src/$dir"
	for other in $(sed -n 's|^replace \(github.com/firnid/[^ ]*\) => .*|\1|p' go.mod); do
		go mod edit -require "$other@$version" -dropreplace "$other"
		sums=$(cd "$work" && go mod download -json "$other@$version") || fail "$dir: $sums"
		echo "$sums" | sed -n "s|.*\"Sum\": \"\(.*\)\".*|$other $version \1|p; s|.*\"GoModSum\": \"\(.*\)\".*|$other $version/go.mod \1|p" >>go.sum
	done
	! grep '^replace' go.mod >&2 || fail "$dir/go.mod replaces a module, so go install would refuse it"
	git add -A "$src"
	commit=$(git commit-tree "$(git write-tree)" -p "$base" -m "firn $version")
	tags="$tags $(echo "$dir/$version" | sed 's|^\./||')"
	for tag in $tags; do
		git tag -f "$tag" "$commit" >/dev/null
	done
done
cd "$src"
git checkout -q --detach "$commit"
rm -rf "$GOMODCACHE" # which remembers where the tags were
for dir in . $modules; do
	path=$(cd "$dir" && go list -m)
	(cd "$work" && go mod download "$path@$version")
done
cp -R "$GOMODCACHE/cache/download/github.com/firnid" "$out/proxy/github.com/"
find "$out/proxy" -name '*.lock' -exec rm {} + -o -name '*.ziphash' -exec rm {} +

say 'binaries'
build() {
	(cd "$src/server" && go build -trimpath -buildvcs=true -tags grpcnotrace -ldflags "-s -w -buildid= -X main.version=$version" -o "$1" ./cmd/firn)
}
for target in $targets; do
	say "  $target"
	GOOS=${target%/*} GOARCH=${target#*/} build "$work/bin/$target/"
done

say 'manual pages and completions'
build "$work/tools/"
firn=$work/tools/firn
docs=$work/docs
mkdir -p "$docs/completions"
cp LICENSE README.md CHANGELOG.md "$docs"
"$firn" man --dir "$docs/man/man1"
"$firn" completion bash >"$docs/completions/firn.bash"
"$firn" completion zsh >"$docs/completions/_firn"
"$firn" completion fish >"$docs/completions/firn.fish"
"$firn" completion powershell >"$docs/completions/firn.ps1"

say 'archives, image, bills of materials and deployment files'
# shellcheck disable=SC2086
"$work/tools/release" "$version" "$commit" "$out" $targets

say 'Linux packages'
mkdir "$work/gz"
for page in "$docs/CHANGELOG.md" "$docs"/man/man1/*; do
	gzip -9n <"$page" >"$work/gz/$(basename "$page").gz"
done
for target in $targets; do
	case $target in linux/*) ;; *) continue ;; esac
	for format in deb rpm; do
		VERSION=$version ARCH=${target#*/} "$work/tools/nfpm" package --config deploy/package/nfpm.yaml --packager $format --target "$out" >&2
	done
done

say 'packages for other languages'
for language in ${LANGUAGES-python typescript java}; do
	case $language in python) program=python3 ;; typescript) program=npm ;; java) program=mvn ;; esac
	if ! command -v $program >/dev/null; then
		say "  $language: left out, $program is not installed"
	elif ! sh "sdk/$language/build.sh" "$out" "$version" >"$work/log" 2>&1; then
		fail "$language: $(cat "$work/log")"
	fi
done

say 'checksums'
cd "$out"
for file in *; do
	[ ! -f "$file" ] || sha256sum "$file"
done >"$work/checksums"
mv "$work/checksums" checksums.txt
[ -z "${KEY:-}" ] || minisign -S -s "$KEY" -m checksums.txt -t "firn $version"
rm -rf "$work"
echo "$version is in $out. Nothing is published yet:

  git -C $src push --atomic URL$tags"
