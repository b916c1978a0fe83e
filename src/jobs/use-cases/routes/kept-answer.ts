import { sha256 } from '../../../base/values/sha256.ts';
import { type LeaseName, readResult } from '../../../calls/store/calls.ts';
import { putResult } from '../../../calls/store/put-result.ts';
import { putStoredResult, type StoredResult } from '../../../calls/store/result-uploads.ts';
import { createPartWriter, readWhole, ResultUnreadableError } from '../../../calls/use-cases/large-result.ts';
import type { EventOf } from '../../../ledger/rules/event.ts';
import { readHead, storedContentType } from '../../rules/route-headers.ts';
import type { AnswerClient, AnswerHead } from './answer-client.ts';
import type { RouteOutcome, RoutePorts } from './route-request.ts';

/** The body of an answer: in memory, or in the result store. */
export type KeptBody =
  | { readonly kind: 'in_memory'; readonly body: Buffer }
  | { readonly kind: 'in_store'; readonly stored: StoredResult };

type Unkept = { readonly kind: 'too_large' | 'store_unavailable' };

/**
 * Reads the whole body of an answer: as long as the database takes it into memory, beyond that into the result store, if there is one.
 * @param most bytes; a longer answer is not kept
 * @throws where the body is not complete
 */
export async function readKept(
  { pool, results, log, config }: Pick<RoutePorts, 'pool' | 'results' | 'log' | 'config'>,
  upload: LeaseName,
  body: AsyncIterable<Buffer>,
  most: number,
): Promise<KeptBody | Unkept> {
  const inMemory = Math.min(most, config.delivery.maxResultBytes);
  const inStore = Math.min(most, config.resultStore?.maxBytes ?? 0);
  const writer = results && inStore > inMemory && createPartWriter({ pool, results, log }, upload, inStore);
  let pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > Math.max(inMemory, inStore)) return { kind: 'too_large' };
    pieces.push(piece);
    if (bytes <= inMemory) continue;
    if (!writer) return { kind: 'too_large' };
    for (const held of pieces) if (!(await succeeds(writer.add(held)))) return { kind: 'store_unavailable' };
    pieces = [];
  }
  if (!writer || bytes <= inMemory) return { kind: 'in_memory', body: Buffer.concat(pieces) };
  const stored = await writer.finish().catch(() => undefined);
  return stored ? { kind: 'in_store', stored } : { kind: 'store_unavailable' };
}

/** What fails in the store is logged there. */
async function succeeds(work: Promise<void> | undefined): Promise<boolean> {
  try {
    await work;
    return true;
  } catch {
    return false;
  }
}

/** Hash and length of a body, as the ledger has them. */
export function sumOf(kept: KeptBody): StoredResult {
  return kept.kind === 'in_store' ? kept.stored : { sha256: sha256(kept.body), bytes: kept.body.length };
}

/** Stores an answer under an attempt of its call, before it is on record. */
export async function storeAnswer(
  { pool }: Pick<RoutePorts, 'pool'>,
  place: LeaseName & { readonly attempt: number },
  { headers }: Pick<AnswerHead, 'headers'>,
  head: string,
  kept: KeptBody,
): Promise<void> {
  const contentType = storedContentType(headers);
  if (kept.kind === 'in_memory') await putResult(pool, place, contentType, kept.body, head);
  else await putStoredResult(pool, place, contentType, kept.stored, head);
}

/** An answer that is stored, and is the one that the ledger has. */
interface Kept {
  readonly head: AnswerHead;
  readonly upload: LeaseName;
  readonly kept: KeptBody;
}

/** The stored answer of a call; undefined where it is kept no longer, or is not the one that the ledger has. */
export async function findKept(
  { db, log }: Pick<RoutePorts, 'db' | 'log'>,
  callId: number,
  { data }: EventOf<'completed'>,
): Promise<Kept | undefined> {
  const result = await readResult(db, callId, data.attempt);
  if (!result || result.head === undefined) return undefined;
  const { head, body, stored, leaseId } = result;
  const kept: KeptBody = stored ? { kind: 'in_store', stored } : { kind: 'in_memory', body };
  if (sumOf(kept).sha256 === data.result_sha256 && sha256(head) === data.head_sha256)
    return { head: readHead(head), upload: { callId, leaseId }, kept };
  log.error({ call_id: callId }, 'a stored answer differs from the one in the ledger: it is not repeated');
  return undefined;
}

/** Gives a client an answer that is stored. */
export async function sendKept(
  { results, log }: Pick<RoutePorts, 'results' | 'log'>,
  { head, upload, kept }: Kept,
  client: AnswerClient,
): Promise<RouteOutcome> {
  if (kept.kind === 'in_memory') {
    client.whole(head, kept.body);
    return { kind: 'answered' };
  }
  if (!results) return { kind: 'refused', code: 'result_store_unavailable' };
  try {
    for await (const piece of readWhole({ results, log }, upload, kept.stored)) {
      if (client.left.aborted) return { kind: 'answered' };
      client.begin(head);
      await client.write(piece);
    }
  } catch (error) {
    if (!(error instanceof ResultUnreadableError)) throw error;
    client.cut();
    return { kind: 'refused', code: 'result_store_unavailable' };
  }
  client.begin(head);
  client.end([]);
  return { kind: 'answered' };
}
