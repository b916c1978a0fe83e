import type { RecordedEvent } from '../../../../ledger/rules/event.ts';
import { claimBinding, encodeClaim } from '../../../../ledger/store/claim-key.ts';
import {
  countClaims,
  type ExpectedClaim,
  type ExpectedNonceClaim,
  findWrongClaims,
  findWrongNonceClaims,
  readClaims,
} from '../../../../ledger/store/claim-rows.ts';
import { missingIn, type RowSnapshot, type WrongRow } from '../../../../ledger/store/stored-rows.ts';
import { claimsOfStream, type StreamClaim, type StreamClaims } from './stream-claims.ts';

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
  async compare(parts: readonly StreamClaims[], inOutbox: ReadonlySet<string>): Promise<WrongRow[]> {
    const isHeld = ({ withCallOf }: { readonly withCallOf: string | undefined }): boolean =>
      withCallOf === undefined || inOutbox.has(withCallOf);
    const known = parts.flatMap((part) => part.known.filter(isHeld).flatMap((one) => this.#expected(one)));
    const nonces: ExpectedNonceClaim[] = parts.flatMap((part) =>
      part.nonces.filter(isHeld).map(({ stream, payment }) => ({ stream, binding: claimBinding(payment) })),
    );
    const wrong = [
      ...(await findWrongClaims(this.#snapshot, known)),
      ...(await findWrongNonceClaims(this.#snapshot, nonces)),
    ];
    // a row of no event must not count for one that is missing
    this.#found += known.length + nonces.length - missingIn(wrong);
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
   * Names rows that no event has made, where there are more rows than were expected.
   * @param readStreams reads whole streams, without those that cannot be read
   */
  async findStray(
    readStreams: (streams: readonly string[]) => Promise<readonly (readonly RecordedEvent[])[]>,
  ): Promise<WrongRow[]> {
    const stored = await countClaims(this.#snapshot);
    if (stored <= this.#found) return [];
    for (let after = ''; ;) {
      const rows = await readClaims(this.#snapshot, after, rowsAtOnce);
      if (rows.length === 0) break;
      const streams = await readStreams([...new Set(rows.map(({ stream }) => stream))]);
      const held = new Map(
        streams.map((events) => [events[0]?.stream ?? '', rowNames(claimsOfStream(events))]),
      );
      const stray = rows.filter(({ key, stream }) => {
        const names = held.get(stream);
        return !names || !(names.keys.has(key) || names.hasNonces);
      });
      if (stray.length > 0)
        return stray.map((row) => ({ table: 'claim', expected: null, stored: { ...row } }));
      after = rows.at(-1)?.key ?? after;
    }
    return [{ table: 'claim', expected: { rows: this.#found }, stored: { rows: stored } }];
  }
}

function rowNames({ known, nonces }: StreamClaims): {
  readonly keys: ReadonlySet<string>;
  readonly hasNonces: boolean;
} {
  return { keys: new Set(known.map(({ claim }) => encodeClaim(claim).key)), hasNonces: nonces.length > 0 };
}
