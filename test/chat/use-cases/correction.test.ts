import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { recoverChats } from '../../../src/chat/use-cases/recover-chats.ts';
import { findAccount } from '../../../src/accounts/store/credit.ts';
import { expectBooks, laneOn } from '../../support/credit.ts';
import { ask, startChatGateway } from '../../support/chat-gateway.ts';
import { eventually } from '../../support/wait.ts';
import { presence } from '../../../src/base/values/presence.ts';

const { silentSecs } = presence;

test('a gateway whose heartbeats were missing returns the excess of a captured hold when it ends the stream itself', async () => {
  const gateway = await startChatGateway();
  const { database } = gateway;
  const key = await gateway.key();
  const disconnect = new AbortController();
  const stream = await gateway
    .client(key)
    .chat.completions.create(
      { ...ask('fault:stall_mid_stream one two three'), stream: true },
      { signal: disconnect.signal },
    );
  const read = Array.fromAsync(stream).catch(() => {});
  await eventually(async () => {
    const { rows } = await database.pool.query('select from tollbook.chat_hold where started_at is not null');
    expect(rows).toHaveLength(1);
  });

  // from here on only the other one is seen
  const other = {
    ...database,
    lane: laneOn(database),
    processId: randomUUID(),
    log: pino({ level: 'silent' }),
  };
  await database.asOwner(async (owner) => {
    await owner.query(`create or replace function tollbook.heartbeat(p_process uuid, p_gap_secs float8) returns void
      language sql as 'select'`);
    await owner.query(`update tollbook.process set heartbeat_at = heartbeat_at - interval '1 minute'`);
    await owner.query(`update tollbook.chat_hold set created_at = created_at - interval '1 minute'`);
    await owner.query(
      `insert into tollbook.process values ($1, now() + interval '1 minute', now() - interval '1 minute')`,
      [other.processId],
    );
  });
  expect(await recoverChats(other, silentSecs)).toBe(1);
  disconnect.abort();
  await read;
  await eventually(async () => {
    const events = await expectBooks(database);
    expect(events.filter(({ type }) => type === 'credit_corrected')).toHaveLength(1);
  });
  const completed = (await expectBooks(database)).flatMap((event) =>
    event.type === 'chat_completed' ? [event.data] : [],
  );
  expect(completed).toMatchObject([{ ending: 'recovered' }, { ending: 'client_left' }]);
  const [recovered, own] = completed.map(({ cost_micros }) => Number(cost_micros));
  expect(own).toBeLessThan(recovered ?? 0);
  expect(await findAccount(database.db, { accountId: 1 })).toMatchObject({ heldMicros: 0, usedMicros: own });
});
