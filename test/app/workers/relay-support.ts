import { expect, onTestFinished } from 'vitest';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import type { TestDatabase } from '../../support/database.ts';
import type { Answer, TestGateway } from '../../support/gateway.ts';
import { payFor } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const job = '/x402/jobs/1/0';

export interface PaidCall {
  readonly digest: string;
  readonly callId: number;
  receipt(at?: TestGateway): Promise<Answer['json']>;
}

export async function pay(gateway: TestGateway, body = 'a body'): Promise<PaidCall> {
  const { status, json } = await payFor(gateway, job, body);
  expect(status).toBe(202);
  const { quote_digest: digest, call_id: callId, receipt_token: token } = json;
  const receipt = async (at = gateway) =>
    (await at.get(`/x402/receipts/${digest}`, { authorization: `Bearer ${token}` })).json;
  return { digest, callId, receipt };
}

export function reachesState(call: PaidCall, state: string, at?: TestGateway): Promise<Answer['json']> {
  return eventually(async () => {
    const receipt = await call.receipt(at);
    expect(receipt.state).toBe(state);
    return receipt;
  });
}

/** What happened to a call since it was enqueued. */
export async function spendEventsOf(database: TestDatabase, { digest }: PaidCall): Promise<LedgerEvent[]> {
  const { events } = await readStream(database.pool, digest);
  return events
    .slice(events.findIndex(({ type }) => type === 'enqueued') + 1)
    .map(({ type, data }) => ({ type, data }) as LedgerEvent);
}

export async function typesOf(database: TestDatabase, call: PaidCall): Promise<string[]> {
  return (await spendEventsOf(database, call)).map(({ type }) => type);
}

/** What the operator's commands work with. */
export function operatorOf(database: TestDatabase) {
  const lane = openLane({ url: database.url, role: writerRole, flushers: 1 });
  onTestFinished(() => lane.close(1_000));
  return { pool: database.pool, db: database.db, lane };
}
