// Holds a lock or a job of a library for Node, or waits for one.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'

const [name, who, address, key] = process.argv.slice(2)
const [host, port] = address.split(':')
const say = (...words) => console.log(words.join(' ').replaceAll('\n', ' '))
process.on('uncaughtException', (e) => say('LATER', e.name, e.message))
const quiet = (x) => x.on('error', () => {})
const work = async (signal) => {
  say('HAVE')
  signal?.addEventListener('abort', () => say('TOLD signal aborted'))
  await sleep(200_000)
}

if (name.startsWith('redlock')) {
  const { default: Redlock } = await import('redlock')
  const client = quiet(new Redis({ host, port, ...(name === 'redlock-1s' ? { commandTimeout: 1000, maxRetriesPerRequest: 0 } : {}) }))
  const redlock = quiet(new Redlock([client], who === 'second' ? { retryCount: 1000, retryDelay: 100 } : {}))
  await redlock.using([key], 10_000, work)
}
if (name === 'bullmq') {
  const { Queue, Worker } = await import('bullmq')
  const connection = { host, port: Number(port) }
  const worker = quiet(new Worker(key, (job, token, signal) => work(signal), { connection: { ...connection, maxRetriesPerRequest: null } }))
  worker.on('lockRenewalFailed', () => say('LATER event lockRenewalFailed'))
  if (who === 'holder') {
    const queue = quiet(new Queue(key, { connection }))
    await queue.add('job', {})
    await queue.close()
  }
}
if (name === 'pg-boss') {
  const { PgBoss } = await import('pg-boss')
  const boss = quiet(new PgBoss({ connectionString: `postgres://postgres@${address}/postgres` }))
  await boss.start()
  await boss.createQueue(key, { retryLimit: 5 })
  if (who === 'holder') await boss.send(key, {}, { expireInSeconds: 20, retryLimit: 5 })
  await boss.work(key, async ([job]) => work(job.signal))
}
