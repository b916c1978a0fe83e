import { z } from 'zod';
import type { Records } from '../chaos/records.ts';
import { type Exchange, isRefusedBeforePayment, judge, type Outage } from './judge.ts';

/** The requests for completions. */
export function* completionsOf({ completions }: Records): Generator<Exchange> {
  for (const { attempts } of completions)
    for (const { sentAt, endedAt, status, code, end } of attempts) {
      const isWhole = end === 'whole';
      yield {
        operation: 'completion',
        path: '/v1/chat/completions',
        sentAt,
        endedAt,
        status: isWhole ? status : undefined,
        code: isWhole ? code : `${status ?? 'no answer'}, ${end}`,
      };
    }
}

const startedShape = z.object({
  type: z.literal('settlement_started'),
  at: z.string(),
  data: z.object({ payment: z.object({ nonce: z.string() }) }),
});

/** Requests that failed, and refusals that came after their payment was started. `ledger` has an event a line. */
export function* failuresOf(
  exchanges: readonly Exchange[],
  outages: readonly Outage[],
  ledger: string,
): Generator<string> {
  const starts = new Map<string, number>();
  for (const line of ledger.split('\n').filter((text) => text.includes('"settlement_started"'))) {
    const { at, data } = startedShape.parse(JSON.parse(line));
    if (!starts.has(data.payment.nonce)) starts.set(data.payment.nonce, Date.parse(at));
  }
  for (const exchange of exchanges) {
    const { operation, path: where, nonce, sentAt, endedAt } = exchange;
    const words = `${new Date(sentAt).toISOString()} ${operation} ${where}: ${answerOf(exchange)} after ${endedAt - sentAt} ms`;
    const verdict = judge(exchange, outages);
    if (verdict === 'failed') yield words;
    if (verdict === 'named' && !isRefusedBeforePayment(exchange, starts.get(nonce ?? '')))
      yield `${words}, although the payment was started`;
  }
}

export function answerOf({ status, code }: Exchange): string {
  return `${status ?? 'no answer'} ${code ?? ''}`.trim();
}
