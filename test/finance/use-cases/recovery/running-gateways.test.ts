import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { doesGatewayRun } from '../../../../src/finance/use-cases/recovery/running-gateways.ts';
import { forgetGateway, sendGatewayHeartbeat } from '../../../../src/ledger/store/processes.ts';
import { createDatabase } from '../../../support/database.ts';

test('a gateway runs while its heartbeats arrive, whatever the clock does; one that was killed or has ended runs no more', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const [killed, running] = [randomUUID(), randomUUID()];
  expect(await doesGatewayRun(pool)).toBe(false);
  await database.moveClock(86_400);
  await sendGatewayHeartbeat(pool, killed);
  await database.moveClock(0);
  expect(await doesGatewayRun(pool, 300)).toBe(false);
  const asked = doesGatewayRun(pool);
  await sendGatewayHeartbeat(pool, running);
  expect(await asked).toBe(true);
  await forgetGateway(pool, running);
  await forgetGateway(pool, killed);
  expect(await doesGatewayRun(pool)).toBe(false);
});
