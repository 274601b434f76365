# MariaDB, whose backup is of the kind in $1; the files of a replica end with $N.
configure() { # PORT SETTING…
	printf '%s\n' '[mysqld]' "datadir=$DIR/mysql$N" "tmpdir=$DIR" bind-address=127.0.0.1 "port=$1" "socket=$DIR/s$N" "pid-file=$DIR/pid$N" \
		innodb-buffer-pool-size=16M innodb-log-file-size=8M log-bin=log sync-binlog=1 "${@:2}" >my$N.cnf
}
mariadbd() { exec mariadbd --defaults-file="$DIR/my$N.cnf" "$@"; }
mariadb() { command mariadb --no-defaults -u root "$@"; }
mariadb-admin() { command mariadb-admin --no-defaults -u root "$@"; }
mariadb-install-db() { command mariadb-install-db --defaults-file="$DIR/my$N.cnf" --auth-root-authentication-method=normal --skip-test-db "$@"; }
systemctl() {
	if [ $1 = stop ]; then
		mariadb-admin --socket="$DIR/s$N" shutdown
		while [ -e "$DIR/pid$N" ]; do sleep 0.1; done
		return
	fi
	mariadbd --user=mysql >>"$DIR/log" 2>&1 &
	until mariadb --socket="$DIR/s$N" -e 'SELECT 1'; do sleep 0.2; done
}
setup() {
	configure $PORT server-id=1
	mariadb-install-db --user=mysql
	systemctl start mariadb
	mariadb --socket="$DIR/s" -e "CREATE DATABASE firn; CREATE USER firn@'127.0.0.1'; GRANT ALL ON firn.* TO firn@'127.0.0.1'"
}
backup() {
	case $1 in
	base)
		systemctl stop mariadb
		cp -a mysql base
		systemctl start mariadb
		;;
	dump) command mariadb-dump --no-defaults -u root --socket="$DIR/s" --all-databases --single-transaction >dump.sql ;;
	replica)
		mariadb --socket="$DIR/s" -e "CREATE USER replica@'127.0.0.1'; GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'"
		N=2
		configure $PORT2 server-id=2 read-only=1
		mariadb-install-db --user=mysql
		systemctl start mariadb
		mariadb --socket="$DIR/s2" -e "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$PORT, MASTER_USER='replica', MASTER_USE_GTID=slave_pos; START SLAVE"
		until mariadb --socket="$DIR/s2" -e 'SELECT k FROM firn.firn_grants' | grep /n/; do sleep 0.2; done
		mariadb --socket="$DIR/s2" -e 'STOP SLAVE' # it is behind from here on
		;;
	esac
}
fails() {
	[ "$1" = replica ] || return 0
	systemctl stop mariadb
	N=2
}
