import { expect, test } from 'vitest';
import { expectBooks } from '../../support/credit.ts';
import { paidModel, startChatGateway } from '../../support/chat-gateway.ts';
import { allEvents } from '../../support/invariants.ts';
import { eventually } from '../../support/wait.ts';

const holdsOf = 'select started_at from tollbook.chat_hold';

test('a stopped gateway leaves no holds: completions are finished, or charged as far as they were written', async () => {
  const gateway = await startChatGateway({
    top: 'shutdown_grace_secs = 8',
    model: { slowMs: 700 },
  });
  const { pool } = gateway.database;
  const authorization = `Bearer ${await gateway.key()}`;
  const faults = ['stall_mid_stream', 'slow_first_byte', 'hang', 'stall_mid_stream', 'slow_first_byte'];
  const answers = faults.map(async (fault, at) => {
    const messages = [{ role: 'user', content: `fault:${fault}` }];
    const answer = await gateway.post({ model: paidModel, messages, stream: at < 3 }, { authorization });
    return answer.text();
  });
  const settled = Promise.allSettled(answers);
  await eventually(async () => {
    // the slow ones may have ended before the last one is admitted
    const admitted = (await allEvents(gateway.database.db)).filter(({ type }) => type === 'chat_admitted');
    expect(admitted).toHaveLength(faults.length);
    const { rows } = await pool.query<{ started_at: Date | null }>(holdsOf);
    expect(rows.filter(({ started_at }) => started_at !== null).length).toBeGreaterThan(0);
  });
  await gateway.stop();
  await settled;
  expect((await pool.query(holdsOf)).rowCount).toBe(0);
  const events = await expectBooks(gateway.database);
  const ends = events.filter(({ type }) => type === 'chat_completed' || type === 'chat_failed');
  expect(ends).toHaveLength(faults.length);
  expect(JSON.stringify(ends)).not.toContain('recovered');
});
