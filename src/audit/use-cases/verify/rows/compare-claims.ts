import type { RecordedEvent } from '../../../../ledger/rules/event.ts';
import { encodeClaim } from '../../../../ledger/store/claim-key.ts';
import {
  countClaims,
  type ExpectedClaim,
  findWrongClaims,
  findWrongNonces,
  readClaims,
  readNonces,
} from '../../../../ledger/store/claim-rows.ts';
import { missingIn, type RowSnapshot, type WrongRow } from '../../../../ledger/store/stored-rows.ts';
import { claimsOfStream, type StreamClaim } from './stream-claims.ts';

const rowsAtOnce = 2_000;

/** Compares the claims that streams hold with their rows, part by part; at the end every row must have been found. */
export class ClaimComparison {
  readonly #snapshot: RowSnapshot;
  #found = 0;
  /** Requests that spends are bound to, in hex: the first spend holds the claim, a later one for the same request none. */
  readonly #requests = new Set<string>();

  constructor(snapshot: RowSnapshot) {
    this.#snapshot = snapshot;
  }

  /**
   * Compares the claims of a part.
   * @param inOutbox the payments that have a call in the outbox
   */
  async compare(part: readonly StreamClaim[], inOutbox: ReadonlySet<string>): Promise<WrongRow[]> {
    const held = part
      .filter(({ withCallOf }) => withCallOf === undefined || inOutbox.has(withCallOf))
      .flatMap((one) => this.#expected(one));
    const wrong = [
      ...(await findWrongClaims(this.#snapshot, held)),
      ...(await findWrongNonces(this.#snapshot, held)),
    ];
    // a row without an event must not count for a missing row
    this.#found += held.length - missingIn(wrong);
    return wrong;
  }

  #expected({ claim, stream }: StreamClaim): ExpectedClaim[] {
    const encoded = encodeClaim(claim);
    if (claim.kind === 'spend_request') {
      if (this.#requests.has(encoded.key)) return [];
      this.#requests.add(encoded.key);
    }
    return [{ ...encoded, stream }];
  }

  /**
   * Names rows that no event has made, if there are more rows than were expected.
   * @param readStreams reads whole streams, without those that cannot be read
   */
  async findStray(
    readStreams: (streams: readonly string[]) => Promise<readonly (readonly RecordedEvent[])[]>,
  ): Promise<WrongRow[]> {
    const stored = await countClaims(this.#snapshot);
    if (stored <= this.#found) return [];
    for (const pages of [readClaims, readNonces])
      for await (const { table, rows } of pages(this.#snapshot, rowsAtOnce)) {
        const streams = await readStreams([...new Set(rows.map(({ stream }) => stream))]);
        const held = new Set(
          streams.flatMap(claimsOfStream).map(({ claim, stream }) => `${encodeClaim(claim).key} ${stream}`),
        );
        const stray = rows.filter(({ key, stream }) => !held.has(`${key} ${stream}`));
        if (stray.length > 0) return stray.map((row) => ({ table, expected: null, stored: { ...row } }));
      }
    return [{ table: 'claim', expected: { rows: this.#found }, stored: { rows: stored } }];
  }
}
