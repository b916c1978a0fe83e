import type { EventData, LedgerEvent } from '../events/event.ts';
import type { QuoteCheck } from './payment-check.ts';

interface Given {
  readonly accountId: number;
  readonly amountMicros: bigint;
}

/** Credit that was bought: once for each paid call, and taken back at most once. */
export class TopUpCheck {
  /** By call; undefined where it was taken back. */
  readonly #given = new Map<number, Given | undefined>();

  /** Takes the next event. What is wrong with it; undefined where nothing is. `quoteOf` finds the stream of a quote. */
  apply(event: LedgerEvent, quoteOf: (digest: string) => QuoteCheck | undefined): string | undefined {
    if (event.type === 'credit_topped_up') return this.#give(event.data, quoteOf(event.data.quote_digest));
    if (event.type === 'credit_reversed') return this.#takeBack(event.data);
    return undefined;
  }

  #give(data: EventData<'credit_topped_up'>, quote: QuoteCheck | undefined): string | undefined {
    const { call_id: callId, account_id: accountId, amount_micros: micros } = data;
    if (this.#given.has(callId)) return `call ${callId} has bought credit before: it does so once`;
    if (!quote?.hasPaid(data)) return `nobody has paid ${data.atoms} atoms for call ${callId} of that quote`;
    this.#given.set(callId, { accountId, amountMicros: BigInt(micros) });
    return undefined;
  }

  #takeBack(data: EventData<'credit_reversed'>): string | undefined {
    const { call_id: callId, account_id: accountId, amount_micros: taken, missing_micros: missing } = data;
    const given = this.#given.get(callId);
    if (given?.accountId !== accountId) return `call ${callId} has bought that account no credit`;
    if (BigInt(taken) + BigInt(missing) !== given.amountMicros)
      return `call ${callId} has bought ${given.amountMicros} micros, which is not what is taken back or missing`;
    this.#given.set(callId, undefined);
    return undefined;
  }
}
