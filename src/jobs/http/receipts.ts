import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { receiptTypedData } from '../../payments/rules/payer-signatures.ts';
import { type Hex, isHex32 } from '../../base/values/primitives.ts';
import type { JobsContext } from '../use-cases/context.ts';
import {
  type NamedPayment,
  openReceipt,
  openReceiptOfPayment,
  type ReceiptAccess,
  type SignedChallenge,
} from '../use-cases/receipt-request.ts';
import { sendRefusal, sendInvalid } from '../../ledger/http/errors.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { type RefundRequestAnswer, requestRefund } from '../use-cases/request-refund.ts';
import {
  paymentTokenBody,
  type ReceiptToken,
  receiptTokenBody,
  refundRequestBody,
  type RequestedRefund,
} from './schemas/receipt.ts';
import { chargeFirst } from './charge.ts';
import { receiptRoute, type ReceiptParts } from './receipt.ts';
import { walletReceiptsRoute } from './wallet-receipts.ts';

/** The longest signature of a contract wallet, and the other fields. */
const bodyLimit = 16_384;

/**
 * Receipts, and their tokens: one is in the 202; POST /x402/receipts/{quote_digest}/token, and /x402/receipts/token for a payer who
 * does not know the digest, give it for the payer's signature. POST /x402/receipts/{quote_digest}/refund-request takes what the payer
 * asks for.
 */
export function receiptRoutes(
  parts: Omit<ReceiptParts, 'current'> & { readonly current: () => JobsContext },
) {
  const { current } = parts;
  const options = { bodyLimit, onRequest: chargeFirst(current) };
  return async (app: FastifyInstance): Promise<void> => {
    await app.register(receiptRoute(parts));
    await app.register(walletReceiptsRoute(current));

    app.post<{ Params: { quote_digest: string } }>(
      '/x402/receipts/:quote_digest/token',
      options,
      async (request, reply) => {
        const context = current();
        const digest = request.params.quote_digest.toLowerCase();
        if (!isHex32(digest)) return sendRefusal(request, reply, 'receipt_not_found');
        const body = receiptTokenBody.safeParse(request.body ?? {});
        if (!body.success) return sendInvalid(request, reply, body.error);
        return sendAccess(context, request, reply, await openReceipt(context, digest, signedIn(body.data)));
      },
    );

    app.post<{ Params: { quote_digest: string } }>(
      '/x402/receipts/:quote_digest/refund-request',
      options,
      async (request, reply) => {
        const context = current();
        const digest = request.params.quote_digest.toLowerCase();
        if (!isHex32(digest)) return sendRefusal(request, reply, 'receipt_not_found');
        const body = refundRequestBody.safeParse(request.body ?? {});
        if (!body.success) return sendInvalid(request, reply, body.error);
        return sendRequested(
          context,
          request,
          reply,
          digest,
          await requestRefund(context, digest, body.data),
        );
      },
    );

    app.post('/x402/receipts/token', options, async (request, reply) => {
      const context = current();
      const body = paymentTokenBody.safeParse(request.body ?? {});
      if (!body.success) return sendInvalid(request, reply, body.error);
      const payment = body.data.payment as NamedPayment;
      const access = await openReceiptOfPayment(context, payment, signedIn(body.data));
      return sendAccess(context, request, reply, access);
    });
  };
}

function signedIn({ signed }: z.infer<typeof receiptTokenBody>): SignedChallenge | undefined {
  return (
    signed && {
      challenge: signed.challenge as Hex,
      expiresAt: signed.expires_at,
      signature: signed.signature,
    }
  );
}

function sendRequested(
  { publicUrl }: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  digest: Hex,
  answer: RefundRequestAnswer,
): FastifyReply {
  reply.header('cache-control', 'no-store');
  if (answer.kind === 'refused') return sendRefusal(request, reply, answer.code);
  noteFacts(request, { quote_digest: digest });
  const body: RequestedRefund = {
    quote_digest: digest,
    refund_request: answer.refundRequest,
    receipt_url: `${publicUrl()}/x402/receipts/${digest}`,
  };
  return reply.send(body);
}

function sendAccess(
  { publicUrl }: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  access: ReceiptAccess,
): FastifyReply {
  reply.header('cache-control', 'no-store');
  switch (access.kind) {
    case 'not_found':
      return sendRefusal(request, reply, 'receipt_not_found');
    case 'not_signed':
      return sendRefusal(request, reply, 'invalid_payer_signature');
    case 'unavailable':
      return sendRefusal(request, reply, 'payer_signature_unchecked');
    case 'challenged': {
      const { domain, types, primaryType, message } = receiptTypedData(access.request);
      const { challenge, expiresAt } = access.request;
      const typedData = { domain, types, primaryType, message: { ...message, expiresAt } };
      const context = { challenge, expires_at: expiresAt, typed_data: typedData };
      return sendRefusal(request, reply, 'payer_signature_required', { context });
    }
    case 'opened': {
      const { digest, receiptToken } = access;
      noteFacts(request, { quote_digest: digest });
      const body: ReceiptToken = {
        quote_digest: digest,
        receipt_token: receiptToken,
        receipt_url: `${publicUrl()}/x402/receipts/${digest}`,
      };
      return reply.send(body);
    }
  }
}
