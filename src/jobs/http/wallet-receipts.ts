import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { siwxKey } from '../../accounts/rules/siwx.ts';
import { refusals } from '../../base/errors/refusal.ts';
import { encodeHeader } from '../../payments/rules/x402.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { receiptToken } from '../../payments/use-cases/receipt-keys.ts';
import { challengeWallet, openWallet, type SignedWallet, walletUrl } from '../use-cases/wallet-sign-in.ts';
import { makeCursor, readCursor } from '../../ledger/rules/page-cursor.ts';
import { type ListedPayment, listPayments } from '../../ledger/store/payments.ts';
import { readReceiptKey } from '../../ledger/store/secrets.ts';
import { type walletChallenge, walletQuery, type WalletReceipts } from './schemas/wallet.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { chargeFirst } from './charge.ts';

type Wallet = Extract<SignedWallet, { kind: 'wallet' }>;

/**
 * GET /x402/receipts: the paid calls of a wallet, with the tokens of their receipts, for its signature. Without one, or with one that is not
 * valid now, the answer is a 402 that offers nothing to pay and has a challenge.
 */
export function walletReceiptsRoute(current: () => JobsContext) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/x402/receipts', { onRequest: chargeFirst(current) }, async (request, reply) => {
      const context = current();
      const query = walletQuery.safeParse(request.query);
      if (!query.success) return sendRefusal(request, reply, 'invalid_request');
      const header = request.headers[siwxKey];
      if (header === undefined) return sendChallenge(context, request, reply, undefined);
      const wallet = await openWallet(context, String(header));
      if (wallet.kind === 'refused') return sendChallenge(context, request, reply, wallet.reason);
      if (wallet.kind === 'unavailable') return sendRefusal(request, reply, 'payer_signature_unchecked');
      return sendPage(context, request, reply, wallet, query.data);
    });
  };
}

async function sendChallenge(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  reason: string | undefined,
): Promise<FastifyReply> {
  const { sentence } = refusals.wallet_signature_required;
  const challenge: z.infer<typeof walletChallenge> = {
    x402Version: 2,
    error: reason === undefined ? sentence : `${sentence} (${reason})`,
    resource: { url: walletUrl(context), description: 'Your paid calls', mimeType: 'application/json' },
    accepts: [],
    extensions: { [siwxKey]: await challengeWallet(context) },
  };
  reply.header('payment-required', encodeHeader(challenge)).header('cache-control', 'no-store');
  return sendRefusal(
    request,
    reply,
    'wallet_signature_required',
    reason === undefined ? {} : { reason, context: { reason } },
  );
}

async function sendPage(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { address: payer, onlyOn: network }: Wallet,
  { cursor, limit }: z.infer<typeof walletQuery>,
): Promise<FastifyReply> {
  const { db, pool } = context;
  const key = await readReceiptKey(db);
  const list = `receipts:${payer}`;
  const after = cursor === undefined ? 0 : readCursor(key, list, cursor);
  if (after === undefined) return sendRefusal(request, reply, 'invalid_cursor');
  const { asOfSeq, rows } = await listPayments(pool, { payer, network }, after, limit);
  const last = rows.at(-1);
  const answer: WalletReceipts = {
    payer,
    as_of_seq: asOfSeq,
    receipts: rows.flatMap((row) => paidJson(context, row) ?? []),
    next: last !== undefined && rows.length === limit ? makeCursor(key, list, last.seq) : null,
  };
  return reply.header('cache-control', 'no-store').send(answer);
}

/** Undefined for a payment that has not settled: the wallet that it names may not have paid it. */
function paidJson(
  { receiptKeys, publicUrl }: Pick<JobsContext, 'receiptKeys' | 'publicUrl'>,
  row: ListedPayment,
): WalletReceipts['receipts'][number] | undefined {
  if (row.settled_at === null || row.transaction === null) return undefined;
  const { quote_digest: digest, service_id, job_index, state, settled_at, call_id } = row;
  const { network, asset, symbol, decimals, amount, transaction, refund_transaction, refunded_amount } = row;
  return {
    quote_digest: digest,
    receipt_token: receiptToken(receiptKeys, digest as Hex),
    receipt_url: `${publicUrl()}/x402/receipts/${digest}`,
    state,
    service_id,
    job_index,
    call_id,
    network,
    asset,
    symbol,
    decimals,
    amount,
    transaction,
    settled_at,
    refund_transaction,
    refunded_amount,
  } as WalletReceipts['receipts'][number];
}
