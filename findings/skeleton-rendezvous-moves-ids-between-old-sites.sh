#!/bin/sh
# skeleton-rendezvous: a new site that sorts first among 40 moves two fifths of
# the IDs, and the 32nd site nearly all.
#
# Package: skeleton-rendezvous 1.1.3 (npm).
# Guess: with rendezvous hashing a new site takes its share from each other one,
#   and no ID moves between two old sites: of 40 sites and a new one, 1 ID of
#   41 moves.
# Behaviour: the sites are sorted by name and cut into clusters of 16, and an ID
#   chooses a cluster first. A site that sorts last is added to the last
#   cluster. One that sorts first shifts every cluster by one site. Up to 31
#   sites are one cluster, and the next makes them two. targetClusterSize sets
#   the size. The README does not mention it.
# Seen 2026-11-30: with 40 sites, 460 of 20,000 IDs move when the new one sorts
#   last, and 8,204 when it sorts first, 492 of them to it. The 32nd site moves
#   19,372, wherever it sorts. With 16 sites all that move go to the new one.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error skeleton-rendezvous@1.1.3 >npm.log

cat >main.cjs <<'EOF'
const Rendezvous = require('skeleton-rendezvous')

const ids = Array.from({ length: 20000 }, (_, i) => String(1179183313482456071n + BigInt(i)))
for (const count of [16, 31, 40]) {
  const sites = Array.from({ length: count }, (_, i) => `10.0.1.${i + 1}:11211`)
  const before = new Rendezvous({ sites })
  for (const site of ['10.0.0.1:11211', '10.0.2.1:11211']) {
    const after = new Rendezvous({ sites: [...sites, site] })
    const moved = ids.filter((id) => before.findSite(id) !== after.findSite(id))
    const taken = moved.filter((id) => after.findSite(id) === site)
    console.log(`${count} sites and ${site}: ${moved.length} of 20000 move, ${taken.length} to the new one`)
  }
}
EOF
cat >want <<'EOF'
16 sites and 10.0.0.1:11211: 1188 of 20000 move, 1188 to the new one
16 sites and 10.0.2.1:11211: 1213 of 20000 move, 1213 to the new one
31 sites and 10.0.0.1:11211: 19372 of 20000 move, 639 to the new one
31 sites and 10.0.2.1:11211: 19371 of 20000 move, 602 to the new one
40 sites and 10.0.0.1:11211: 8204 of 20000 move, 492 to the new one
40 sites and 10.0.2.1:11211: 460 of 20000 move, 460 to the new one
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "skeleton-rendezvous-moves-ids-between-old-sites: no longer holds" >&2; exit 1; }
