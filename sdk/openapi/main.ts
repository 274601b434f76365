// Uses a server through a client that openapi-generator made.
import * as assert from 'node:assert/strict';
import { type IDs, type Runs, Configuration, IdsApi, ResponseError, SequencersApi } from './index';

const configuration = new Configuration({ basePath: process.argv[2] });
const ids = new IdsApi(configuration);
const sequencers = new SequencersApi(configuration);

async function main() {
  const made = ((await ids.next({ name: 'orders', count: 3 })) as IDs).ids;
  const runs = ((await ids.next({ name: 'orders', count: 3, runs: true })) as Runs).runs;
  assert.deepEqual([made.length, runs[0].count], [3, 3]);
  const read = await ids.inspect({ id: made[0], layout: 'default' });
  assert.deepEqual([read.dec, read.others], [made[0], []]);
  const uuid = await ids.inspect({ id: '919108f7-52d1-4320-9bac-f847db4148a8' });
  assert.deepEqual([uuid.layout, uuid.time ?? null], ['uuidv4', null]);
  const column = await ids.inspectColumn({ body: made.join('\n') });
  assert.ok(column.count === 3 && column.lastMs! > 2 ** 40);
  const settings = { window: '20s' };
  assert.equal((await sequencers.createSequencer({ name: 'typescript', settings })).window, '20s');
  assert.equal((await sequencers.getSequencer({ name: 'orders' })).nodes.length, 1);
  assert.ok((await sequencers.listSequencers()).sequencers.length > 1);
  assert.equal((await sequencers.listMembers()).members.length, 1);
  await assert.rejects(ids.next({ name: 'orders', format: 'nonsense' }), (error) => {
    return error instanceof ResponseError && error.response.status === 400;
  });
}
main().catch((error) => {
  console.error(error);
  process.exit(1);
});
