#!/bin/sh
# Stops the service before its files are removed. deb: $1 is remove, upgrade or deconfigure.
# rpm: $1 is the number of versions that stay installed.
set -e
case "$1" in
remove | deconfigure | 0)
	if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now firn.service
	fi
	;;
esac
