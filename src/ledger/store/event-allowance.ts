import type pg from 'pg';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { callFunction } from './functions.ts';

/**
 * What strangers may cause to be recorded. Beyond the allowance of its kind it is summed, in one event a second and gateway; a quote of a
 * pricing service and a key, which need an event, are refused. Refused completions have two kinds of their own: `tollbook.admit_chat`
 * takes from them.
 */
type StrangersEvent =
  | 'quote'
  | 'pricing_quote'
  | 'rejected_payment'
  | 'refused_sign_in'
  /** Of a user who never had credit: anyone can be as many as they like. */
  | 'session'
  /** Of the others, so that strangers cannot prevent a separate event for a customer's sign-in. */
  | 'customer_session'
  /** Of a user who never had credit. */
  | 'key';

/** Limits the events of one kind that strangers leave in the ledger, over all gateways together. */
export interface EventAllowance {
  /** Whether one more may be recorded by itself; counts it if so. Never waits: decided before the database is asked for more. */
  take(): boolean;
}

/** A gateway that has no more than this share of the burst in memory asks for more, at most once a second when it gets less. */
const pauseMs = 1_000;

/**
 * The allowance is a row that all gateways take from. Each holds a quarter of the burst (200 events, or those of four seconds) in
 * memory, so one gateway alone leaves at most the burst and `perSecond` events a second, and each further one a quarter more.
 */
export async function createEventAllowance(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  kind: StrangersEvent,
  perSecond: number,
): Promise<EventAllowance> {
  const mostHeld = Math.max(50, perSecond);
  const ask = (wanted: number): Promise<number> =>
    callFunction(pool, 'take_event_allowance', [kind, wanted, perSecond, 3 * mostHeld]);
  let held = await ask(mostHeld);
  let asksFromMs = 0;
  let isAsking = false;

  const refill = async (): Promise<void> => {
    isAsking = true;
    const wanted = mostHeld - held;
    let taken = 0;
    try {
      taken = await ask(wanted);
    } catch (error) {
      log.warn({ err: error, kind }, 'the ledger was not asked how many more events may be recorded');
    }
    held += taken;
    if (taken < wanted) asksFromMs = performance.now() + pauseMs;
    isAsking = false;
  };

  return {
    take() {
      if (held < mostHeld / 2 && !isAsking && performance.now() >= asksFromMs) void refill();
      if (held < 1) return false;
      held -= 1;
      return true;
    },
  };
}
