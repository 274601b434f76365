# A bucket: a gateway to the files of a directory.
versitygw() { exec "$GATEWAY" --access "$AWS_ACCESS_KEY_ID" --secret "$AWS_SECRET_ACCESS_KEY" "$@"; }
systemctl() {
	if [ $1 = stop ]; then
		kill $(cat pid)
		while [ -e /proc/$(cat pid)/exe ]; do sleep 0.1; done
		return
	fi
	versitygw --port 127.0.0.1:$PORT --quiet posix "$DIR/objects" >>log 2>&1 &
	echo $! >pid
}
setup() {
	mkdir -p backup objects/ids
	systemctl start versitygw
}
backup() { cp -a objects backup/objects-2026-11-21; }
