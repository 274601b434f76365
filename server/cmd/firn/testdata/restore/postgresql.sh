# PostgreSQL, whose backup is of the kind in $1.
export PGDATA="$DIR/data" PGPORT=$PORT
systemctl() {
	pg_ctl start -w -D "$PGDATA" -l "$DIR/log" -o "-c listen_addresses=127.0.0.1 -c unix_socket_directories=$DIR" >/dev/null
}
finally() { for d in "$DIR"/data "$DIR"/replica; do pg_ctl stop -D $d -m immediate || true; done; }
setup() {
	initdb -D "$PGDATA" -U postgres -A trust --no-sync --locale=C --encoding=UTF8
	systemctl start postgresql
	psql -h "$DIR" -c 'CREATE ROLE firn LOGIN' -c 'CREATE DATABASE firn OWNER firn' postgres
}
backup() {
	case $1 in
	base) pg_basebackup -D "$DIR/base" -h "$DIR" -U postgres -X fetch -c fast ;;
	dump) pg_dumpall -h "$DIR" -U postgres >dump.sql ;;
	replica) pg_basebackup -D "$DIR/replica" -h "$DIR" -U postgres -R -X fetch -c fast ;; # it is behind from here on
	esac
}
fails() {
	[ "$1" = replica ] || return 0
	pg_ctl stop -D "$PGDATA" -m immediate
	PGDATA="$DIR/replica" PGPORT=$PORT2
	systemctl start postgresql
}
