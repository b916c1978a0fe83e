import type { EventData, LedgerEvent } from '../events/event.ts';
import type { QuoteCheck } from './payment-check.ts';

interface TopUp {
  readonly accountId: number;
  readonly amountMicros: bigint;
}

/** Bought credit: once per paid call, and reversed at most once. */
export class TopUpCheck {
  /** By call; undefined where it was reversed. */
  readonly #topUps = new Map<number, TopUp | undefined>();

  /** Applies the next event. Returns the problem, or undefined. `quoteOf` finds the stream of a quote. */
  apply(event: LedgerEvent, quoteOf: (digest: string) => QuoteCheck | undefined): string | undefined {
    if (event.type === 'credit_topped_up') return this.#topUp(event.data, quoteOf(event.data.quote_digest));
    if (event.type === 'credit_reversed') return this.#reverse(event.data);
    return undefined;
  }

  #topUp(data: EventData<'credit_topped_up'>, quote: QuoteCheck | undefined): string | undefined {
    const { call_id: callId, account_id: accountId, amount_micros: micros } = data;
    if (this.#topUps.has(callId)) return `call ${callId} has bought credit before: a call buys credit once`;
    if (!quote?.hasPaid(data))
      return `there is no payment of ${data.atoms} atoms for call ${callId} of that quote`;
    if (!quote.sellsCredit(data)) return `its quote does not sell ${micros} micros for that payment`;
    const creditFor = quote.creditFor(callId);
    if (creditFor !== undefined && creditFor !== accountId)
      return `its payer has ordered the credit for account ${creditFor}, but account ${accountId} has it`;
    this.#topUps.set(callId, { accountId, amountMicros: BigInt(micros) });
    return undefined;
  }

  #reverse(data: EventData<'credit_reversed'>): string | undefined {
    const { call_id: callId, account_id: accountId, amount_micros: taken, missing_micros: missing } = data;
    const toppedUp = this.#topUps.get(callId);
    if (toppedUp?.accountId !== accountId)
      return `call ${callId} has bought no credit for account ${accountId}, or it was reversed before`;
    if (BigInt(taken) + BigInt(missing) !== toppedUp.amountMicros)
      return `call ${callId} has bought ${toppedUp.amountMicros} micros, but the reversed and missing amounts add up to another sum`;
    this.#topUps.set(callId, undefined);
    return undefined;
  }
}
