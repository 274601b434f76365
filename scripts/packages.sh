#!/bin/sh
# Installs Debian packages that tests need: COMMAND=PACKAGE for each, if the command is
# missing. It does so only as root and with apt-get. Otherwise it prints what is missing
# and succeeds, because tests that need it report that they are skipped.
#
#	scripts/packages.sh redis-cli=redis-tools mariadbd=mariadb-server
#
# It starts no services.
set -u
PATH=$PATH:/usr/sbin:/sbin:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')
missing=
for pair in "$@"; do
	command -v "${pair%%=*}" >/dev/null 2>&1 || missing="$missing ${pair#*=}"
done
test -n "$missing" || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "SKIPPED: not installed and cannot be installed:$missing"
	exit 0
fi

policy=/usr/sbin/policy-rc.d
if ! [ -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy
	trap 'rm -f $policy' EXIT
	trap 'exit 1' HUP INT TERM # some shells do not run the EXIT trap then
fi
install() {
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive timeout 1800 apt-get install -y -qq --no-install-recommends $missing </dev/null >/dev/null 2>&1
}
install || { timeout 600 apt-get update -qq </dev/null >/dev/null 2>&1 && install; } ||
	echo "SKIPPED: apt-get failed to install:$missing"
