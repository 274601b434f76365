#!/bin/sh
# Prints what is kept. deb: $1 is remove, purge, upgrade and others.
# rpm: $1 is the number of versions that stay installed.
set -e
root=${DPKG_ROOT:-}
case "$1" in
remove | purge | 0)
	if [ -d "$root/var/lib/firn" ]; then
		echo "firn: kept $root/var/lib/firn and the user firn. It records which node IDs were used until when:"
		echo "firn: without it, Firn would repeat IDs on this machine after a new installation."
		echo "firn: delete it only if none of its IDs is in use any more."
	fi
	if [ -z "$root" ] && [ -d /run/systemd/system ]; then
		systemctl daemon-reload
	fi
	;;
esac
