#!/bin/sh
# Creates the user and the store's directory. DPKG_ROOT is the root to which dpkg
# installs, if it is not this system. deb: $1 is configure, and $2 the previous version,
# if any. rpm: $1 is the number of installed versions.
set -e
root=${DPKG_ROOT:-}

if ! grep -q '^firn:' "$root/etc/passwd" 2>/dev/null; then
	if command -v systemd-sysusers >/dev/null 2>&1; then
		systemd-sysusers ${root:+--root="$root"} firn.conf
	else
		useradd ${root:+--prefix "$root"} --system --user-group --home-dir /var/lib/firn --shell /usr/sbin/nologin firn
	fi
fi
if ! [ -d "$root/var/lib/firn" ]; then
	owner=$(sed -n 's/^firn:[^:]*:\([0-9]*\):\([0-9]*\):.*/\1 \2/p' "$root/etc/passwd")
	install -d -m 2770 -o "${owner% *}" -g "${owner#* }" "$root/var/lib/firn"
fi

if [ -z "$root" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart firn.service || true # only if it runs; the upgrade itself has succeeded
fi

case "$1:${2:-}" in
configure: | 1:)
	echo 'firn: installed. To start it now and at every boot: systemctl enable --now firn'
	;;
esac
