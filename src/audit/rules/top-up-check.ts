import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';
import type { QuoteCheck } from './payment-check.ts';

interface TopUp {
  readonly accountId: number;
  readonly micros: bigint;
  readonly atoms: bigint;
  reversedMicros: bigint;
  reversedAtoms: bigint;
}

/** Bought credit: once per paid call, and reversed in proportion to the part of the payment that is taken back, at most as a whole. */
export class TopUpCheck {
  /** By call. */
  readonly #topUps = new Map<number, TopUp>();

  /** Applies the next event. Returns the problem, or undefined. `quoteOf` finds the stream of a quote. */
  apply(event: LedgerEvent, quoteOf: (digest: string) => QuoteCheck | undefined): string | undefined {
    if (event.type === 'credit_topped_up') return this.#topUp(event.data, quoteOf(event.data.quote_digest));
    if (event.type === 'credit_reversed') return this.#reverse(event.data, quoteOf(event.data.quote_digest));
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
    const given = { accountId, micros: BigInt(micros), atoms: BigInt(data.atoms) };
    this.#topUps.set(callId, { ...given, reversedMicros: 0n, reversedAtoms: 0n });
    return undefined;
  }

  #reverse(data: EventData<'credit_reversed'>, quote: QuoteCheck | undefined): string | undefined {
    const { call_id: callId, account_id: accountId, amount_micros: taken, missing_micros: missing } = data;
    const toppedUp = this.#topUps.get(callId);
    if (toppedUp?.accountId !== accountId || toppedUp.reversedAtoms >= toppedUp.atoms)
      return `call ${callId} has bought no credit for account ${accountId}, or it was reversed before`;
    const { micros, atoms, reversedMicros } = toppedUp;
    const reversedAtoms = data.atoms === undefined ? atoms : toppedUp.reversedAtoms + BigInt(data.atoms);
    if (reversedAtoms === toppedUp.reversedAtoms || reversedAtoms > atoms)
      return `it reverses the credit of ${data.atoms} atoms, which are not left of the ${atoms} that call ${callId} was paid with`;
    if (data.atoms !== undefined && reversedAtoms > (quote?.refundedOf(callId) ?? 0n))
      return `it reverses the credit of more atoms than were refunded of the payment of call ${callId}`;
    const due = (micros * reversedAtoms) / atoms;
    if (BigInt(taken) + BigInt(missing) !== due - reversedMicros)
      return `call ${callId} has bought ${micros} micros, but the reversed and missing amounts add up to another sum`;
    this.#topUps.set(callId, { ...toppedUp, reversedAtoms, reversedMicros: due });
    return undefined;
  }
}
