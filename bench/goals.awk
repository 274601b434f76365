# Prints what go test prints, and at the end each figure that has a goal in
# docs/performance.md, on which processor. It fails if a benchmark fails.
BEGIN {
	rows = split("Next/clock=counter x-add-clock <= 1.3, Fill/threads=1 x-add <= 0.5, Prefetch/n=1000/threads=1 x-add <= 1," \
		"Burst x-bwmarrin >= 10, Sustained/firn %-core <= 15, ServerRESP/P=1 x-redis >= 0.95, ServerRESP/P=1 x-redis-cpu <= 1.1," \
		"ServerRESP/P=16 x-redis >= 1.1, ServerRESP/P=16 x-redis-cpu <= 0.85, ServerRESP/P=100 x-redis >= 1.8," \
		"ServerRESP/P=100 x-redis-cpu <= 0.5, ServerHTTP x-bare >= 0.85, ServerHTTP x-bare-cpu <= 1.15," \
		"ServerPacked/http/batch=10000 x-resp >= 0.9," \
		"ServerClient/batch=1000 x-add <= 2.5, ServerJava/firn x-cosid <= 1, ServerJava/firn x-cosid-2 <= 1, ServerStart ms/first-ID <= 30," \
		"ServerIdle %-core <= 0.1, ServerIdle MiB <= 30, ServerJoin s/join <= 1.5, ServerJoin cpu-s/join <= 0.6," \
		"ServerConnections/resp x-redis <= 0.7, ServerConnections/http x-redis <= 1, ServerTenants/other-names x-alone-p99 <= 1.5," \
		"ServerTenants/connections x-alone-p99 <= 1.5, ServerTenants/reads-slowly x-alone-p99 <= 1.5," \
		"ServerIssueLog/resp/n=1 x-without >= 0.85, ServerIssueLog/resp/n=100 x-without >= 0.97," \
		"ServerIssueLog/http/n=100 x-without >= 0.97", goals, /, */)
}
{ print; fflush() }
/^cpu: / { cpu = substr($0, 6) }
/^(--- )?FAIL/ { failed = 1 }
/^Benchmark/ {
	name = substr($1, 10)
	sub(/-[0-9]+$/, "", name)
	for (i = 3; i < NF; i += 2)
		got[name " " $(i + 1)] = $i
}
END {
	for (n = split("x-atomic x-atomic-2", threads, " "); n > 0; n--)
		if (cosid = got["ServerJava/cosid-segment-chain " threads[n]])
			got["ServerJava/firn x-cosid" substr(threads[n], 9)] = sprintf("%.3f", got["ServerJava/firn " threads[n]] / cosid)
	print "\ngoals, on " cpu ":"
	for (i = 1; i <= rows; i++) {
		split(goals[i], g, " ")
		if ((g[1] " " g[2]) in got) {
			x = got[g[1] " " g[2]]
			holds = g[3] == "<=" ? x + 0 <= g[4] + 0 : x + 0 >= g[4] + 0
			printf "%-36s %10s %-12s %s %s%s\n", g[1], x, g[2], g[3], g[4], holds ? "" : "  short"
		}
	}
	exit failed
}
