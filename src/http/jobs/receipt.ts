import type { FastifyInstance } from 'fastify';
import { isHex32 } from '../../domain/values/primitives.ts';
import type { JobsContext } from '../../jobs/context.ts';
import { isReceiptToken } from '../../jobs/receipt-keys.ts';
import { readReceipt } from '../../jobs/receipt.ts';
import type { Receipt } from '../schemas/receipt.ts';
import type { LogReader } from '../../log/log-reader.ts';
import { decodeLeaf } from '../../domain/events/event.ts';
import { proofsJson } from '../log/log.ts';
import { sendRefusal } from '../server/errors.ts';
import { noteFacts } from '../server/request-log.ts';
import { bearerToken } from '../server/request-values.ts';

type ReceiptContext = Pick<JobsContext, 'pool' | 'db' | 'receiptKeys' | 'log'>;

/** What a receipt proves: that money moved, and what changed that later. */
const settlementTypes: ReadonlySet<string> = new Set([
  'payment_settled',
  'settlement_confirmed',
  'settlement_disproved',
  'settlement_reorged',
  'operator_settlement_resolved',
  'refunded',
]);

/**
 * GET /x402/receipts/{quote_digest}: a quote's receipt; with its receipt token also the runner's result.
 * @param log proves the settlement; undefined where the ledger is not sealed
 */
export function receiptRoute(current: () => ReceiptContext, log: LogReader | undefined) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get<{ Params: { quote_digest: string } }>('/x402/receipts/:quote_digest', async (request, reply) => {
      const context = current();
      const digest = request.params.quote_digest.toLowerCase();
      if (!isHex32(digest)) return sendRefusal(request, reply, 'receipt_not_found');
      noteFacts(request, { quote_digest: digest });
      const token = bearerToken(request);
      if (token !== undefined && !isReceiptToken(context.receiptKeys, digest, token, context.log)) {
        return sendRefusal(request, reply, 'invalid_receipt_token');
      }
      const known = await readReceipt(context, digest, token !== undefined);
      if (!known) return sendRefusal(request, reply, 'receipt_not_found');
      const isSettled = known.events.some(({ type }) => settlementTypes.has(type));
      const proof = log && (isSettled ? await proveSettlement(log, digest, token !== undefined) : notSettled);
      const receipt: Receipt = { ...known, ...proof };
      return reply.header('cache-control', 'no-store').send(receipt);
    });
  };
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
