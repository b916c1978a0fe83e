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
    if (this.#topUps.has(callId)) return `call ${callId} has bought credit before: it does so once`;
    if (!quote?.hasPaid(data)) return `nobody has paid ${data.atoms} atoms for call ${callId} of that quote`;
    this.#topUps.set(callId, { accountId, amountMicros: BigInt(micros) });
    return undefined;
  }

  #reverse(data: EventData<'credit_reversed'>): string | undefined {
    const { call_id: callId, account_id: accountId, amount_micros: taken, missing_micros: missing } = data;
    const given = this.#topUps.get(callId);
    if (given?.accountId !== accountId) return `call ${callId} has bought that account no credit`;
    if (BigInt(taken) + BigInt(missing) !== given.amountMicros)
      return `call ${callId} has bought ${given.amountMicros} micros, which is not what is taken back or missing`;
    this.#topUps.set(callId, undefined);
    return undefined;
  }
}
