import http from 'node:http';
import { expect } from 'vitest';
import type { ConstantChanges } from '../../../src/base/config/constants.ts';
import type { EventType } from '../../../src/ledger/rules/event.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import type { TestChain } from '../../support/devnet.ts';
import { type FacilitatorProxy, startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { allEvents } from '../../support/invariants.ts';
import { header, type Payment } from '../../support/payer.ts';
import { type Delivery, type Reaction, startTestRunner } from '../../support/runner.ts';
import { askNode } from '../../support/tokens.ts';
import { eventually } from '../../support/wait.ts';
import { listening } from '../../support/listening.ts';

export const job = '/x402/jobs/1/0';
export const price = 3_264_000n;

interface Behind {
  /** Of the facilitator, from the start. */
  readonly faults?: FacilitatorProxy['faults'];
  readonly top?: string;
  readonly tables?: string;
  readonly constants?: ConstantChanges;
  readonly isServed?: boolean;
  readonly rpcUrl?: string;
  /** Changes the configuration's text. */
  readonly change?: (text: string) => string;
  /** How long the gateway waits for a settlement. */
  readonly settleMs?: number;
  /** What the runner does with a call. */
  readonly react?: Parameters<typeof startTestRunner>[0];
}

const echo = ({ body }: Delivery): Reaction => ({ status: 200, body: `did ${body.toString('utf8')}` });

/** A gateway with a facilitator with the given faults, and a runner, unless no runner serves the job. */
export async function behindProxy(
  chain: TestChain,
  {
    top = '',
    tables = '',
    constants = {},
    isServed = true,
    rpcUrl = chain.rpcUrl,
    settleMs = 20_000,
    react = echo,
    change = (text) => text,
    faults = {},
  }: Behind = {},
) {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  Object.assign(proxy.faults, faults);
  const runner = await startTestRunner(react);
  const database = await createDatabase();
  const setup = {
    database,
    chain: { ...chain, rpcUrl, token: chain.token, secondToken: chain.secondToken },
    facilitatorUrl: proxy.url,
    runnerUrl: isServed ? runner.url : undefined,
    // only if a settlement never answers is its time-out waited for
    top: `facilitator_settle_timeout_ms = ${settleMs}\n${top}`,
    tables,
    constants: { ...constants, jobs: { facilitatorVerifyTimeoutMs: 20_000, ...constants.jobs } },
    change,
  };
  const gateway = await startTestGateway(setup);
  const typesOf = async (digest: string): Promise<EventType[]> =>
    (await allEvents(database.db)).filter(({ stream }) => stream === digest).map(({ type }) => type);
  // what is open is looked after at once, instead of seconds later
  const hurry = () => database.moveClock(6);
  return { proxy, runner, database, gateway, setup, typesOf, hurry };
}

export const digestOf = (payment: Pick<Payment, 'accepted'>): string =>
  payment.accepted.extra['quoteDigest'] ?? '';
export const pay = (gateway: TestGateway, payment: Pick<Payment, 'accepted'>) =>
  gateway.post(job, { body: 'x', headers: header(payment) });

export async function receiptOf(gateway: TestGateway, payment: Pick<Payment, 'accepted'>) {
  return (await gateway.get(`/x402/receipts/${digestOf(payment)}`)).json;
}

/** With the database, the gateway looks after it at every step until then. */
export async function reaches(
  gateway: TestGateway,
  payment: Pick<Payment, 'accepted'>,
  state: string,
  database?: TestDatabase,
): Promise<void> {
  const isReached = async () => expect((await receiptOf(gateway, payment)).state).toBe(state);
  await (database ? soon(database, isReached) : eventually(isReached));
}

/** The times of later blocks are this much later, for all later tests of the file as well. */
export async function moveChainClock({ rpcUrl }: TestChain, secs: number): Promise<void> {
  await askNode(rpcUrl, 'evm_increaseTime', [secs]);
  await askNode(rpcUrl, 'evm_mine', []);
}

/** The end of an authorization, Unix seconds: before a test of a slow machine could reach it. */
export const inMinutes = (minutes: number): string => String(Math.floor(Date.now() / 1_000 + 60 * minutes));

/** Repeats the assertion until it holds. Meanwhile each settlement that the gateway follows is due: it looks at every step, not later and later. */
export function soon<T>({ asOwner }: TestDatabase, assertion: () => Promise<T>): Promise<T> {
  return asOwner((owner) =>
    eventually(async () => {
      await owner.query(`update tollbook.follow_up set retry_at = null, due_at = created_at where topic in ('confirm', 'resolve');
        update tollbook.call set due_at = created_at where status in ('pending', 'watched')`);
      return assertion();
    }),
  );
}

/** A webhook of the operator's. */
export async function startReceiver() {
  const alerts: { type: string; text: string; quote_digest: string }[] = [];
  const server = http.createServer((request, response) => {
    const receive = async (): Promise<void> => {
      alerts.push(JSON.parse(Buffer.concat(await request.toArray()).toString('utf8')));
      response.end();
    };
    void receive();
  });
  const at = await listening(server);
  return { alerts, url: `${at}/alerts` };
}
