import type { EventOf } from '../../../ledger/rules/event.ts';

/** The events that change how much granted and how much bought credit an account has. */
export type PartedEvent = EventOf<
  | 'credit_granted'
  | 'credit_topped_up'
  | 'credit_reversed'
  | 'credit_captured'
  | 'credit_corrected'
  | 'credit_expired'
>;

/** The fields of an event that decide which credit it moves. */
interface MovedCredit {
  readonly type: PartedEvent['type'];
  readonly stream: string;
  readonly data: Pick<PartedEvent['data'], 'account_id' | 'amount_micros'>;
}

const partedTypes = {
  credit_granted: true,
  credit_topped_up: true,
  credit_reversed: true,
  credit_captured: true,
  credit_corrected: true,
  credit_expired: true,
} as const satisfies Record<PartedEvent['type'], true>;

/** Whether an event changes how much granted and how much bought credit an account has. */
export function isParted<E extends { readonly type: string }>(
  event: E,
): event is E & { readonly type: PartedEvent['type'] } {
  return event.type in partedTypes;
}

/** An amount of credit in micros by its origin. */
export interface CreditParts {
  readonly granted: bigint;
  readonly bought: bigint;
}

const nothing: CreditParts = { granted: 0n, bought: 0n };

/**
 * What each account has of granted and of bought credit, and the order of use: granted credit is used, and expires, before bought credit,
 * so that a customer keeps bought credit longest, and income is not recognised too early. A payment that does not stand takes bought
 * credit back first. A correction returns the credit used last: bought before granted. A hold takes from neither.
 */
export class CreditOrder {
  readonly #accounts: Map<number, CreditParts>;
  /** The captures that a correction may follow: those of recovered completions, by stream. */
  readonly #correctable = new Map<string, CreditParts>();

  /** @param accounts what accounts have by earlier events */
  constructor(accounts: Iterable<readonly [accountId: number, parts: CreditParts]> = []) {
    this.#accounts = new Map(accounts);
  }

  /** Those that have or had credit. */
  list(): Iterable<readonly [accountId: number, parts: CreditParts]> {
    return this.#accounts;
  }

  /** What an earlier capture of a recovered completion used; undefined: that was corrected since. */
  recallCapture(stream: string, used: CreditParts | undefined): void {
    if (used) this.#correctable.set(stream, used);
    else this.#correctable.delete(stream);
  }

  /** The parts that the next event moves; neither is below zero. `isRecovered`: it is of a completion whose process had ended. */
  apply({ type, stream, data }: MovedCredit, isRecovered: boolean): CreditParts {
    const has = this.of(data.account_id);
    const micros = BigInt(data.amount_micros);
    switch (type) {
      case 'credit_granted':
        return this.#add(data.account_id, { granted: micros, bought: 0n });
      case 'credit_topped_up':
        return this.#add(data.account_id, { granted: 0n, bought: micros });
      case 'credit_reversed': {
        const bought = least(micros, has.bought);
        return this.#take(data.account_id, { granted: micros - bought, bought });
      }
      case 'credit_expired':
        return this.#take(data.account_id, grantedFirst(micros, has));
      case 'credit_captured': {
        const parts = grantedFirst(micros, has);
        if (isRecovered) this.#correctable.set(stream, parts);
        return this.#take(data.account_id, parts);
      }
      case 'credit_corrected': {
        const used = this.#correctable.get(stream) ?? { granted: 0n, bought: micros };
        this.#correctable.delete(stream);
        const bought = least(micros, used.bought);
        return this.#add(data.account_id, { granted: micros - bought, bought });
      }
    }
  }

  /** What an account has, held credit included. */
  of(accountId: number): CreditParts {
    return this.#accounts.get(accountId) ?? nothing;
  }

  #add(accountId: number, parts: CreditParts): CreditParts {
    const { granted, bought } = this.of(accountId);
    this.#accounts.set(accountId, { granted: granted + parts.granted, bought: bought + parts.bought });
    return parts;
  }

  #take(accountId: number, parts: CreditParts): CreditParts {
    this.#add(accountId, { granted: -parts.granted, bought: -parts.bought });
    return parts;
  }
}

function grantedFirst(micros: bigint, has: CreditParts): CreditParts {
  const granted = least(micros, has.granted);
  return { granted, bought: micros - granted };
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
