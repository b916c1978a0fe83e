import { expect, test } from 'vitest';
import { startNetwork } from '../chaos/environment.ts';
import { createRandom } from '../chaos/random.ts';
import { createDatabase } from '../support/database.ts';
import { withRig } from '../chaos/rig.ts';
import { isInstalled, notChecked } from '../support/installed.ts';
import { type Exchange, isRefusedBeforePayment, judge, type Outage } from './judge.ts';
import { runLoadBalancer } from './run.ts';

const absence = notChecked('LOAD BALANCER', isInstalled('haproxy', '-v') ? [] : ['haproxy']);

test('an answer about an unreachable peer, before any payment, is the only one that does not count as a failure', () => {
  const away: Outage = { peer: 'facilitator', how: 'cut', from: 1_000, to: 2_000 };
  const exchange = { operation: 'payment', path: '/', sentAt: 1_500, endedAt: 1_600 } as const;
  const verdict = (status: number | undefined, code?: string, more: Partial<Exchange> = {}) =>
    judge({ ...exchange, status, code, ...more }, [away]);
  expect(verdict(202)).toBe('served');
  expect(verdict(503, 'facilitator_unavailable')).toBe('named');
  expect(verdict(503, 'facilitator_unavailable', { sentAt: 100_000, endedAt: 100_001 })).toBe('failed');
  expect(verdict(503, 'facilitator_unavailable', { operation: 'receipt' })).toBe('failed');
  // by the balancer
  expect(verdict(503)).toBe('failed');
  expect(verdict(502)).toBe('failed');
  expect(verdict(undefined, 'fetch failed: other side closed')).toBe('failed');
  expect(verdict(500, 'internal_error')).toBe('failed');
  expect(verdict(402, 'payment_invalid')).toBe('failed');
  const refused = { ...exchange, status: 503, code: 'facilitator_unavailable' };
  expect([undefined, 1_700, 1_550].map((startedAt) => isRefusedBeforePayment(refused, startedAt))).toEqual([
    true,
    true,
    false,
  ]);
});

test.skipIf(absence !== '')(
  `behind a load balancer no honest request fails while gateways restart, peers are away and a service is poisoned${absence}`,
  async () => {
    const random = createRandom(String(Date.now()));
    const database = await createDatabase();
    const { failures, violations, restarts, payments } = await withRig(async (rig) =>
      runLoadBalancer({
        rig,
        network: await startNetwork(rig, random.fork('network')),
        databaseUrl: database.url,
        random,
        restarts: 1,
        outages: [
          { peer: 'facilitator', how: 'cut', ms: 1_000 },
          { peer: 'chain', how: 'error', ms: 1_000 },
          { peer: 'model', how: 'cut', ms: 1_000 },
          { peer: 'push runner', how: 'silent', ms: 1_000 },
        ],
        buyers: 2,
        chatters: 1,
        say() {},
      }),
    );
    expect({ failures, violations }).toEqual({ failures: [], violations: [] });
    // a load that does nothing would not fail either
    expect({ restarts, pays: payments.accepted > 10 }).toEqual({ restarts: 2, pays: true });
  },
);
