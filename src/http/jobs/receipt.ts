import type { FastifyInstance } from 'fastify';
import { isHex32 } from '../../domain/values/primitives.ts';
import type { JobsContext } from '../../jobs/context.ts';
import { isReceiptToken } from '../../jobs/receipt-keys.ts';
import { readReceipt } from '../../jobs/receipt.ts';
import type { Receipt } from '../schemas/receipt.ts';
import { sendRefusal } from '../server/errors.ts';
import { noteFacts } from '../server/request-log.ts';
import { bearerToken } from '../server/request-values.ts';

type ReceiptContext = Pick<JobsContext, 'pool' | 'db' | 'receiptKeys' | 'log'>;

/** GET /x402/receipts/{quote_digest}: a quote's receipt; with its receipt token also the runner's result. */
export function receiptRoute(current: () => ReceiptContext) {
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
      const receipt: Receipt | undefined = await readReceipt(context, digest, token !== undefined);
      if (!receipt) return sendRefusal(request, reply, 'receipt_not_found');
      return reply.header('cache-control', 'no-store').send(receipt);
    });
  };
}
