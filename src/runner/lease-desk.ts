import { randomUUID } from 'node:crypto';
import {
  type LeaseGrant,
  type LeaseWish,
  mostWishes,
  openLeaseAnswer,
  sealLeaseRequest,
} from '../base/values/broker/lease-messages.ts';
import { deferred, type Deferred } from '../base/runtime/deferred.ts';
import { pause } from '../base/runtime/pause.ts';
import type { BrokerConnection } from './broker.ts';

/** Takes and extends leases over the broker, many in one request. */
export interface LeaseDesk {
  /** Never rejects. `unanswered`: the gateway may or may not have granted it; the same wish can be sent again. */
  hold(wish: LeaseWish, timeoutMs: number): Promise<LeaseGrant | { readonly kind: 'unanswered' }>;
}

type Answer = Awaited<ReturnType<LeaseDesk['hold']>>;

interface Waiting {
  readonly wish: LeaseWish;
  readonly deadlineMs: number;
  readonly answer: Deferred<Answer>;
}

interface DeskOptions {
  readonly connection: BrokerConnection;
  readonly subject: string;
  readonly token: string;
  readonly leaseSecs: number;
}

/** Others wait meanwhile, and share the next request. */
const requestsAtOnce = 4;
const requestTimeoutMs = 2_000;
const retryMs = 200;
const unanswered: Answer = { kind: 'unanswered' };

export function createLeaseDesk({ connection, subject, token, leaseSecs }: DeskOptions): LeaseDesk {
  let waiting: Waiting[] = [];
  let open = 0;

  const ask = async (batch: readonly Waiting[]): Promise<void> => {
    const wishes = batch.map(({ wish }) => wish);
    const request = { nonce: randomUUID(), atSecs: Math.floor(Date.now() / 1_000), leaseSecs, wishes };
    let grants: readonly LeaseGrant[] | undefined;
    try {
      const reply = await connection.request(subject, sealLeaseRequest(token, request), {
        timeout: requestTimeoutMs,
      });
      grants = openLeaseAnswer(token, request, reply.data);
    } catch {
      // no gateway is there, or none answered in time
      grants = undefined;
    }
    if (grants)
      for (const [index, { answer }] of batch.entries()) answer.resolve(grants[index] ?? unanswered);
    else await retry(batch);
  };

  const retry = async (batch: readonly Waiting[]): Promise<void> => {
    await pause(retryMs);
    const now = performance.now();
    for (const one of batch) {
      if (one.deadlineMs <= now) one.answer.resolve(unanswered);
      else waiting.push(one);
    }
  };

  const send = (): void => {
    while (open < requestsAtOnce && waiting.length > 0) {
      const batch = waiting.slice(0, mostWishes);
      waiting = waiting.slice(mostWishes);
      open += 1;
      void ask(batch).finally(() => {
        open -= 1;
        send();
      });
    }
  };

  return {
    hold(wish, timeoutMs) {
      const answer = deferred<Answer>();
      waiting.push({ wish, deadlineMs: performance.now() + timeoutMs, answer });
      // those that come in the same moment share a request
      setImmediate(send);
      return answer.promise;
    },
  };
}
