#!/bin/sh
# @peculiar/asn1-schema: a 64-bit INTEGER that was parsed is serialized as one
# without any byte.
#
# Packages: @peculiar/asn1-schema 2.11.1, asn1js 4.0.0 (npm).
# Guess: what AsnParser reads from DER, AsnSerializer writes as the same DER. A
#   property of type Integer holds any INTEGER, or refuses it.
# Behaviour: an INTEGER of up to three bytes is a number, and a longer one is
#   the string of its digits. The serializer makes a number of the string again,
#   and beyond 2^53 the content of the INTEGER is empty, which no DER allows and
#   this package reads as 0. A bigint is refused. With the converter
#   AsnIntegerBigIntConverter both ways are exact.
# Seen 2026-11-29: 0208105d4cf9dd309c07 comes back as 0200, two IDs are the same
#   bytes then; 2^53 - 1 comes back as it was.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	@peculiar/asn1-schema@2.11.1 asn1js@4.0.0 >npm.log

cat >main.cjs <<'EOF'
const schema = require('@peculiar/asn1-schema')
const { Integer, Sequence } = require('asn1js')

const { AsnIntegerBigIntConverter, AsnParser, AsnProp, AsnPropTypes, AsnSerializer } = schema

class Order {}
AsnProp({ type: AsnPropTypes.Integer })(Order.prototype, 'id')

class BigOrder {}
AsnProp({ type: AsnPropTypes.Integer, converter: AsnIntegerBigIntConverter })(BigOrder.prototype, 'id')

const hex = (bytes) => Buffer.from(bytes).toString('hex')
for (const id of [128n, 2n ** 31n, 2n ** 53n - 1n, 1179183313482456071n, 1179183313482456072n]) {
  const der = new Sequence({ value: [Integer.fromBigInt(id)] }).toBER()
  const order = AsnParser.parse(der, Order)
  const back = AsnSerializer.serialize(order)
  const big = AsnSerializer.serialize(AsnParser.parse(der, BigOrder))
  console.log(`${hex(der)}: ${typeof order.id} ${order.id}, back ${hex(back)}, with the converter ${hex(big)}`)
}
EOF
cat >want <<'EOF'
300402020080: number 128, back 300402020080, with the converter 300402020080
300702050080000000: string 2147483648, back 300702050080000000, with the converter 300702050080000000
300902071fffffffffffff: string 9007199254740991, back 300902071fffffffffffff, with the converter 300902071fffffffffffff
300a0208105d4cf9dd309c07: string 1179183313482456071, back 30020200, with the converter 300a0208105d4cf9dd309c07
300a0208105d4cf9dd309c08: string 1179183313482456072, back 30020200, with the converter 300a0208105d4cf9dd309c08
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "asn1-schema-writes-an-id-back-as-nothing: no longer holds" >&2; exit 1; }
