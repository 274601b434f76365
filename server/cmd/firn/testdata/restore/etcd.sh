# etcd, which loses its disk and gets an old one.
etcd() { exec "$ETCD" --log-level error --listen-peer-urls http://127.0.0.1:$PORT2 --initial-advertise-peer-urls http://127.0.0.1:$PORT2 "$@"; }
systemctl() {
	if [ $1 = stop ]; then
		kill $(cat pid)
		while [ -e /proc/$(cat pid)/exe ]; do sleep 0.1; done
		return
	fi
	etcd --name etcd-1 --data-dir "$DIR/etcd" --initial-cluster etcd-1=http://127.0.0.1:$PORT2 \
		--listen-client-urls http://127.0.0.1:$PORT --advertise-client-urls http://127.0.0.1:$PORT >>log 2>&1 &
	echo $! >pid
	until (: </dev/tcp/127.0.0.1/$PORT) 2>/dev/null; do kill -0 $!; sleep 0.1; done # a unit starts others once etcd listens
}
setup() { systemctl start etcd; }
backup() {
	systemctl stop etcd
	cp -a etcd base
	systemctl start etcd
}
fails() {
	systemctl stop etcd
	rm -r etcd
	cp -a base etcd
}
