#!/bin/sh
# snowflakify: with the preset "mac", all hosts whose address begins with
# 02:42:ac have one network ID; with "ipv4", two hosts of a network can have it.
#
# Package: snowflakify 1.0.7 (npm). os.networkInterfaces of Node.js is replaced
#   by one that returns the address of another host.
# Guess: the 10 bits of the network ID are the low bits of the address, or of a
#   hash of it: neighbouring addresses have different ones.
# Behaviour: the numbers of the address are written in base 2 and joined without
#   zeros in front, and the low 10 bits taken. A part of a MAC address that has
#   a letter is no number to it and ends the text: 02:42:ac:... is 170 whatever
#   follows. In 192.168.7.0/24, whose third number ends in three ones, n and
#   n + 128 are one for n from 64 to 126.
# Seen 2026-11-30: 254 MAC addresses after 02:42:ac:11:00 have one ID, and after
#   52:54:00:12:34 100; the 254 hosts of 192.168.7.0/24 have 191 and those of
#   172.17.0.0/24 have 254.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error snowflakify@1.0.7 >npm.log

cat >main.cjs <<'EOF'
const os = require('os')
const { default: Snowflakify } = require('snowflakify')

function networkID(preset, address, mac) {
  os.networkInterfaces = () => ({ eth0: [{ family: 'IPv4', internal: false, address, mac }] })
  const generator = new Snowflakify({ preset })
  return generator.destructure(generator.nextId())[1].value
}

const hosts = Array.from({ length: 254 }, (_, i) => i + 1)
const hex = (n) => n.toString(16).padStart(2, '0')
for (const mac of ['02:42:ac:11:00:', '52:54:00:12:34:']) {
  const ids = hosts.map((n) => networkID('mac', '10.0.0.1', mac + hex(n)))
  console.log(`${mac}01 to fe: ${new Set(ids).size} IDs, the first is ${ids[0]}`)
}
for (const net of ['192.168.6.', '192.168.7.', '172.17.0.']) {
  const ids = hosts.map((n) => networkID('ipv4', net + n, '02:42:ac:11:00:02'))
  console.log(`${net}1 to 254: ${new Set(ids).size} IDs, 100 is ${ids[99]}, 228 is ${ids[227]}`)
}
EOF
cat >want <<'EOF'
02:42:ac:11:00:01 to fe: 1 IDs, the first is 170
52:54:00:12:34:01 to fe: 100 IDs, the first is 581
192.168.6.1 to 254: 253 IDs, 100 is 868, 228 is 740
192.168.7.1 to 254: 191 IDs, 100 is 996, 228 is 996
172.17.0.1 to 254: 254 IDs, 100 is 356, 228 is 740
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "snowflakify-hosts-share-a-worker: no longer holds" >&2; exit 1; }
