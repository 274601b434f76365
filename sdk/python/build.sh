#!/bin/sh
# Builds the wheel and the source distribution of VERSION in OUT, the same bytes
# each time, installs the wheel into an empty environment and tries it. With
# FIRN_URL, it also takes IDs from that server.
#
#	sdk/python/build.sh OUT v1.2.3
set -eu
if [ $# -ne 2 ]; then
	echo 'usage: sdk/python/build.sh OUT VERSION' >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
# 1.2.3-rc.1 is 1.2.3rc1 in Python.
version=$(echo "${2#v}" | sed 's/-rc\.\{0,1\}/rc/')
cd "$(dirname "$0")"
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/package"
cp -R firn pyproject.toml README.md LICENSE "$work/package"
find "$work/package" -name __pycache__ -prune -exec rm -rf {} +
find "$work/package" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
sed -i.old "s/^__version__ = .*/__version__ = \"$version\"/" "$work/package/firn/__init__.py"
rm "$work/package/firn/__init__.py.old"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH

"$python" -m venv "$work/build"
"$work/build/bin/python" -m pip install --quiet --disable-pip-version-check \
	"$(grep '^flit_core' requirements-dev.txt)"
(cd "$work/package" && "$work/build/bin/python" -c "
from flit_core import buildapi
print(buildapi.build_sdist('$out'))
print(buildapi.build_wheel('$out'))")

for file in "$out/firn_id-$version-py3-none-any.whl" "$out/firn_id-$version.tar.gz"; do
	"$python" -m venv --clear "$work/empty"
	"$work/empty/bin/python" -m pip install --quiet --disable-pip-version-check "$file"
	(cd "$work" && "$work/empty/bin/python" -I -c "
import os, firn, firn.aio, firn.testing
assert firn.__version__ == '$version', firn.__version__
assert os.path.exists(os.path.join(os.path.dirname(firn.__file__), 'py.typed'))
print(firn.testing.FakeClient().sequencer('orders').take(2))
if os.environ.get('FIRN_URL'):
    with firn.Client([os.environ['FIRN_URL']]) as client:
        print(client.sequencer('orders').next())
")
done
