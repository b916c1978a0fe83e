import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { didDocument } from '../../domain/payments/offer-key.ts';
import type { JobsContext } from '../../jobs/context.ts';
import { sendRefusal } from '../server/errors.ts';
import type { didDocument as didDocumentSchema } from '../schemas/job.ts';
import { sendTagged, withTag } from './etag.ts';

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
