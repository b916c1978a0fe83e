import { once } from 'node:events';
import net from 'node:net';
import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { soonMs } from '../../support/time-limits.ts';

const chain = useChain();

test('a connection on which nothing has come does not hold up the stop of a gateway', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  const silent = net.connect(Number(new URL(gateway.url).port), '127.0.0.1');
  await once(silent, 'connect');
  // the gateway has seen it before it answers a later one
  expect((await gateway.get('/x402/health')).status).toBe(200);
  const closed = once(silent, 'close');
  const beforeMs = performance.now();
  await gateway.stop();
  await closed;
  // a request would have 30 seconds
  expect(performance.now() - beforeMs).toBeLessThan(soonMs(1_000));
});
