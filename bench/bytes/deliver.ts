import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  collectFollowUps,
  endFollowUps,
  takeFinalSettlements,
  takeFollowUps,
} from '../../src/payments/store/follow-ups.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import { readLogTip } from '../../src/audit/store/log.ts';
import { readProjection } from '../../src/ledger/store/projection.ts';
import { readStream } from '../../src/ledger/store/streams.ts';
import { transferClaim } from '../../src/payments/store/claims.ts';
import type { Ledger } from '../ledger.ts';
import { signer } from '../log-load.ts';
import { terms } from '../terms.ts';

const atOnce = 100;
const inFlight = 16;

interface LeasedJson {
  readonly call_id: number;
  readonly lease_id: string;
}

/** Leases calls at a gateway and completes them, as a runner that polls, until none is left. Returns how many it completed. */
export async function deliver(gatewayUrl: string, token: string): Promise<number> {
  const post = async (path: string, body: object): Promise<unknown> => {
    const answer = await fetch(`${gatewayUrl}/runner/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const result = { content_type: 'application/json', body_base64: randomBytes(90).toString('base64') };
  let completed = 0;
  for (;;) {
    const { calls } = (await post('leases', { max: atOnce, lease_secs: 60 })) as { calls: LeasedJson[] };
    if (calls.length === 0) return completed;
    const next = calls.values();
    const one = async (): Promise<void> => {
      for (const { call_id, lease_id } of next) await post(`calls/${call_id}/complete`, { lease_id, result });
    };
    await Promise.all(Array.from({ length: inFlight }, one));
    completed += calls.length;
  }
}

/**
 * Confirms every settlement as the worker does that finds its transfer on the chain, and ends its follow-ups once its block
 * is final. The chain itself is left out: blocks and log entries are made up.
 */
export async function confirm({ url, pool }: Ledger): Promise<void> {
  const lane = openLane({ url });
  const collect = async (): Promise<void> => {
    while ((await collectFollowUps(pool, 5_000)) > 0);
  };
  await collect();
  for (;;) {
    const found = await takeFollowUps(pool, 'confirm', terms.network, atOnce);
    if (found.length === 0) break;
    await Promise.all(
      found.map(async ({ seq, stream }) => {
        const { events } = await readStream(pool, stream);
        const settled = events.find((event) => event.seq === seq);
        if (settled?.type !== 'payment_settled') throw new Error('no settlement');
        const { network, asset, payer, payment_nonce, transaction } = settled.data;
        const place = {
          transaction,
          block_number: '1',
          block_hash: transaction,
          block_time: Math.floor(Date.now() / 1_000),
          log_index: 1,
        };
        await lane.append({
          stream,
          expect: events.length,
          events: [
            { type: 'settlement_confirmed', data: { network, asset, payer, payment_nonce, ...place } },
          ],
          claims: [transferClaim(terms.network, transaction, 1, payment_nonce)],
        });
      }),
    );
    await endFollowUps(
      pool,
      'confirm',
      found.map(({ seq }) => seq),
    );
  }
  await lane.close();
  await collect();
  for (;;) {
    const final = await takeFinalSettlements(pool, terms.network, 1n, 1_000);
    if (final.length === 0) return;
    await endFollowUps(
      pool,
      'confirm',
      final.map(({ seq }) => seq),
    );
  }
}

/** Waits until the gateway's read models include every event. */
export async function readModelsFollow({ pool }: Ledger): Promise<void> {
  for (;;) {
    const { seq } = await readLogTip(pool, signer.name);
    if ((await readProjection(pool)).seq >= seq) return;
    await sleep(100);
  }
}
