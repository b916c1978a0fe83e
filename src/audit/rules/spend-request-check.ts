import type { EventData } from '../../ledger/rules/event.ts';

interface Bound {
  readonly binding: string;
  /** The stream that bound it first. */
  readonly stream: string;
}

/** That a spend pays for no other request than its first, unless it was released before it could be public. */
export class SpendRequestCheck {
  /** By everything that its account signed. */
  readonly #bound = new Map<string, Bound>();
  /** The spend of each stream. */
  readonly #spends = new Map<string, string>();

  /** Returns the problem, or undefined if the spend is bound to this request or to none. */
  accept(stream: string, data: EventData<'spend_accepted'>): string | undefined {
    const { network, contract, commitment, service_id, job_index, amount, operator, nonce, expiry, binding } =
      data;
    const signed = [network, contract, commitment, service_id, job_index, amount, operator, nonce, expiry];
    const spend = signed.join('/');
    const bound = this.#bound.get(spend);
    this.#spends.set(stream, spend);
    if (!bound) this.#bound.set(spend, { binding, stream });
    return !bound || bound.binding === binding ? undefined : 'this spend is bound to another request';
  }

  release(stream: string, mayHaveLanded: boolean): undefined {
    const spend = this.#spends.get(stream) ?? '';
    if (!mayHaveLanded && this.#bound.get(spend)?.stream === stream) this.#bound.delete(spend);
    this.#spends.delete(stream);
    return undefined;
  }
}
