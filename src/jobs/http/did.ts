import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { didDocument } from '../../payments/rules/offer-key.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import type { didDocument as didDocumentSchema } from './schemas/job.ts';
import { sendTagged, withTag } from '../../base/http/etag.ts';

type DidContext = Pick<JobsContext, 'offerKeys' | 'publicUrl'>;

/** GET /.well-known/did.json: the public keys of signed offers and receipts. */
export function didRoute(current: () => DidContext) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/.well-known/did.json', async (request, reply) => {
      const { offerKeys, publicUrl } = current();
      if (!offerKeys) return sendRefusal(request, reply, 'not_found');
      const document: z.infer<typeof didDocumentSchema> = didDocument(publicUrl(), offerKeys);
      return sendTagged(
        request,
        reply,
        withTag({ body: JSON.stringify(document), type: 'application/json' }),
      );
    });
  };
}
