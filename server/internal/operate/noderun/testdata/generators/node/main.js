// Writes IDs of flake-idgen, with the node ID of the environment, to used-PID in a directory.
const FlakeId = require('flake-idgen')
const fs = require('node:fs')
const path = require('node:path')

const generator = new FlakeId({ id: Number(process.env.WORKER_ID) })
const file = fs.openSync(path.join(process.argv[3], `used-${process.pid}`), 'w')
setInterval(() => fs.writeSync(file, `${generator.next().readBigUInt64BE()}\n`), 1)
