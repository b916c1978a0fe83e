import type { RecordedEvent } from '../../../ledger/rules/event.ts';

/**
 * The request id under which a paid call buys its credit, once. It contains a colon, so that no operator's idempotency key can be
 * the same.
 */
export function topUpId(callId: number): string {
  return `top_up:${callId}`;
}

/**
 * The request id under which that credit is reversed, or a part of it, once.
 * @param reversedAtoms how much of the payment was reversed before
 */
export function reversalId(callId: number, reversedAtoms: bigint): string {
  return reversedAtoms === 0n ? `reverse:${callId}` : `reverse:${callId}:${reversedAtoms}`;
}

/** Bought credit, and the part that was taken back. Credit in micros; atoms of the token that paid for it. */
export interface TopUpState {
  readonly micros: bigint;
  readonly atoms: bigint;
  readonly reversedMicros: bigint;
  readonly reversedAtoms: bigint;
}

/** The credit of a call by the events of its account; undefined if none was given. */
export function foldTopUp(events: readonly RecordedEvent[], callId: number): TopUpState | undefined {
  let state: TopUpState | undefined;
  for (const { type, data } of events) {
    if (type === 'credit_topped_up' && data.call_id === callId)
      state = {
        micros: BigInt(data.amount_micros),
        atoms: BigInt(data.atoms),
        reversedMicros: 0n,
        reversedAtoms: 0n,
      };
    if (type === 'credit_reversed' && data.call_id === callId && state)
      state = {
        ...state,
        reversedMicros: state.reversedMicros + BigInt(data.amount_micros) + BigInt(data.missing_micros),
        reversedAtoms: data.atoms === undefined ? state.atoms : state.reversedAtoms + BigInt(data.atoms),
      };
  }
  return state;
}

/** The credit to take back so that it is reversed for this many atoms in all: in proportion, rounded down, and with the last atom all. */
export function microsToReverse({ micros, atoms, reversedMicros }: TopUpState, reversedFor: bigint): bigint {
  return (micros * reversedFor) / atoms - reversedMicros;
}
