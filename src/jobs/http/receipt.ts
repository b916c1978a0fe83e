import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isFinal } from '../../payments/rules/quote-state.ts';
import { type Hex, isHex32 } from '../../base/values/primitives.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { isReceiptToken } from '../../payments/use-cases/receipt-keys.ts';
import {
  awaitReceipt,
  type Following,
  type FollowPorts,
  followReceipt,
  maxWaitSecs,
} from '../use-cases/follow-receipt.ts';
import { readReceipt, type ReceiptReading } from '../use-cases/receipt.ts';
import { type Receipt, receiptQuery } from './schemas/receipt.ts';
import { createSharedReads, type SharedReads } from '../../base/runtime/shared-reads.ts';
import type { LogReader, OwnLogReaders } from '../../audit/use-cases/log/log-reader.ts';
import type { Read, ReplicaReads } from '../../ledger/use-cases/replicas.ts';
import { setAsOf } from '../../ledger/http/as-of.ts';
import { decodeLeaf } from '../../ledger/rules/event.ts';
import { proofsJson } from '../../audit/http/proofs-json.ts';
import { sendRefusal, sendInvalid } from '../../ledger/http/errors.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { eventStream } from '../../base/http/event-stream.ts';
import { leftSignal } from '../../base/http/left-signal.ts';
import { addressOf, bearerToken } from '../../base/http/request-values.ts';
import type { WaitPlaces } from '../../base/http/wait-places.ts';

type ReceiptContext = FollowPorts & { readonly log: OperatorLog };

/** What a receipt proves: that money moved, and what changed that later. */
const settlementTypes: ReadonlySet<string> = new Set([
  'payment_settled',
  'settlement_confirmed',
  'settlement_disproved',
  'settlement_reorged',
  'operator_settlement_resolved',
  'refunded',
]);

/** How long an event stream is silent before a comment keeps proxies from closing it. */
const keepAliveMs = 15_000;
/** When a client that follows a receipt connects again. */
const reconnectMs = 1_000;

export interface ReceiptParts {
  readonly current: () => ReceiptContext;
  readonly replicas: ReplicaReads;
  /** Proves the settlement, if the ledger is sealed. */
  readonly logOn: OwnLogReaders;
  readonly places: WaitPlaces;
}

/**
 * GET /x402/receipts/{quote_digest}: a quote's receipt; with its receipt token also the runner's result. With `wait_secs` the answer
 * waits for the end, and as an event stream it has each change.
 */
export function receiptRoute(given: ReceiptParts) {
  const parts = {
    ...given,
    reads: createSharedReads<ReceiptReading | undefined>(),
    answers: createSharedReads<Receipt>(),
  };
  return async (app: FastifyInstance): Promise<void> => {
    app.get<{ Params: { quote_digest: string } }>('/x402/receipts/:quote_digest', async (request, reply) => {
      const context = parts.current();
      const digest = request.params.quote_digest.toLowerCase();
      if (!isHex32(digest)) return sendRefusal(request, reply, 'receipt_not_found');
      noteFacts(request, { quote_digest: digest });
      const query = receiptQuery.safeParse(request.query);
      if (!query.success) return sendInvalid(request, reply, query.error);
      const token = bearerToken(request);
      if (token !== undefined && !isReceiptToken(context.receiptKeys, digest, token, context.log)) {
        return sendRefusal(request, reply, 'invalid_receipt_token');
      }
      const isStream = request.headers.accept?.includes('text/event-stream') ?? false;
      const waitSecs = query.data.wait_secs ?? (isStream ? maxWaitSecs : 0);
      const withResult = token !== undefined;
      reply.header('cache-control', 'no-store').header('vary', 'Accept');
      if (waitSecs === 0 && !isStream) {
        const { value: receipt, asOf } = await readPresentReceipt(parts, digest, withResult);
        return receipt
          ? setAsOf(reply, asOf).send(receipt)
          : sendRefusal(request, reply, 'receipt_not_found');
      }
      const leave = parts.places.take(addressOf(request));
      if (!leave) return sendRefusal(request, reply, 'too_many_waits');
      reply.raw.once('close', leave);
      const following = { digest, withResult, waitSecs, signal: leftSignal(reply), reads: parts.reads };
      return isStream
        ? sendStream(parts, request, reply, following)
        : sendWhole(parts, request, reply, following);
    });
  };
}

/** Those who wait are woken by what the primary has, and read it there. */
async function readPresentReceipt(
  { current, replicas, logOn }: ReceiptParts,
  digest: Hex,
  withResult: boolean,
): Promise<Read<Receipt | undefined>> {
  const context = current();
  const { pool, db } = context;
  const { value, ...read } = await replicas.present(
    { pool, db },
    async (from) => {
      const reading = await readReceipt({ ...context, ...from }, digest, withResult);
      const receipt = reading && (await withProof(logOn(from.pool), reading, { digest, withResult }));
      return { receipt, lastSeq: reading?.lastSeq ?? 0 };
    },
    ({ lastSeq }) => lastSeq,
  );
  return { ...read, value: value.receipt };
}

async function sendWhole(
  { current, logOn, answers }: ReceiptParts & { readonly answers: SharedReads<Receipt> },
  request: FastifyRequest,
  reply: FastifyReply,
  following: Following,
) {
  const reading = await awaitReceipt(current(), following);
  if (!reading) return sendRefusal(request, reply, 'receipt_not_found');
  const { digest, withResult } = following;
  const prove = (): Promise<Receipt> =>
    current().streams.turns.take(() => withProof(logOn(current().pool), reading, following));
  return reply.send(await answers.read(`${digest}/${withResult}/${reading.version}`, prove));
}

/** Each state is an event whose id is the version of the receipt; a client that connects again gets the later ones. */
async function sendStream(
  { current, logOn }: ReceiptParts,
  request: FastifyRequest,
  reply: FastifyReply,
  following: Following,
) {
  const readings = followReceipt(current(), { ...following, withProgress: true });
  const first = await readings.next();
  if (first.done) return sendRefusal(request, reply, 'receipt_not_found');
  let told = Number(request.headers['last-event-id']) || 0;
  async function* events(): AsyncGenerator<Buffer> {
    yield Buffer.from(`retry: ${reconnectMs}\n\n`);
    for (let next: IteratorResult<ReceiptReading> = first; !next.done; next = await readings.next()) {
      const { version, receipt } = next.value;
      const isLast = isFinal(receipt.state);
      const isNew = version > told || isLast;
      if (!isNew && !receipt.progress) continue;
      if (!isNew) {
        yield Buffer.from(`event: progress\ndata: ${JSON.stringify(receipt.progress)}\n\n`);
        continue;
      }
      told = version;
      const json = JSON.stringify(
        isLast ? await withProof(logOn(current().pool), next.value, following) : receipt,
      );
      yield Buffer.from(`id: ${version}\nevent: ${isLast ? 'final' : 'state'}\ndata: ${json}\n\n`);
    }
  }
  const body = await eventStream(events(), { keepAliveMs, isCutShort: () => false });
  // asks proxies not to buffer the stream
  return reply.headers({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }).send(body);
}

/**
 * A present receipt, with the proof of its settlement; undefined for an unknown digest.
 * @param isOpened for the payer: with the result and the proven events
 */
export async function readProvenReceipt(
  context: ReceiptContext,
  log: LogReader | undefined,
  digest: Hex,
  isOpened: boolean,
): Promise<Receipt | undefined> {
  const reading = await readReceipt(context, digest, isOpened);
  return reading && withProof(log, reading, { digest, withResult: isOpened });
}

async function withProof(
  log: LogReader | undefined,
  { receipt }: ReceiptReading,
  { digest, withResult }: Pick<Following, 'digest' | 'withResult'>,
): Promise<Receipt> {
  const isSettled = receipt.events.some(({ type }) => settlementTypes.has(type));
  const proof = log && (isSettled ? await proveSettlement(log, digest, withResult) : notSettled);
  return { ...receipt, ...proof };
}

const notSettled = { log_proof: null, log_proof_reason: 'not_settled' } as const;
const notSealed = { log_proof: null, log_proof_reason: 'not_sealed' } as const;

/** Proofs of the events about the settlement; the events themselves are for those who have the receipt token. */
async function proveSettlement(
  log: LogReader,
  digest: string,
  withLeaves: boolean,
): Promise<Pick<Receipt, 'log_proof' | 'log_proof_reason'>> {
  const stream = await log.proveStream(digest);
  if (!stream) return notSealed;
  const { head, leaves } = stream;
  const settling = new Set(
    [...leaves].flatMap(([seq, leaf]) => (settlementTypes.has(decodeLeaf(leaf).type) ? [seq] : [])),
  );
  const proofs = stream.proofs.filter(({ seq }) => settling.has(seq));
  if (proofs.length === 0) return notSealed;
  const pending = settling.size - proofs.length;
  return { log_proof: proofsJson({ head, proofs }, pending, withLeaves ? leaves : undefined) };
}
