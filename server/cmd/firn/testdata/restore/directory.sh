# A directory: members keep running.
systemctl() { :; }
setup() { mkdir backup; }
backup() {
	mkdir backup/firn-2026-11-21
	tar -C firn -c --exclude='tmp+*' . | tar -C backup/firn-2026-11-21 -x
}
