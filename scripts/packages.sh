#!/bin/sh
# Installs what tests need of Debian's packages: COMMAND=PACKAGE for each, where the
# command is not there. Only root does that, and only where there is apt-get; else it
# says what is missing and ends well, as those tests then say that they are skipped.
#
#	scripts/packages.sh redis-cli=redis-tools mariadbd=mariadb-server
#
# No service is started by it.
set -u
PATH=$PATH:/usr/sbin:/sbin:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')
missing=
for pair in "$@"; do
	command -v "${pair%%=*}" >/dev/null 2>&1 || missing="$missing ${pair#*=}"
done
test -n "$missing" || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "SKIPPED: not installed, and cannot be here:$missing"
	exit 0
fi

policy=/usr/sbin/policy-rc.d
if ! [ -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy
	trap 'rm -f $policy' EXIT
	trap 'exit 1' HUP INT TERM # some shells do not leave by EXIT then
fi
install() {
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive timeout 150 apt-get install -y -qq --no-install-recommends $missing </dev/null >/dev/null 2>&1
}
install || { timeout 100 apt-get update -qq </dev/null >/dev/null 2>&1 && install; } ||
	echo "SKIPPED: apt-get does not install:$missing"
