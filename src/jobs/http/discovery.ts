import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { requirementV2 } from '../../payments/rules/x402.ts';
import { type Job, jobUrl, soldJobs } from '../use-cases/catalog.ts';
import type { wellKnown, didDocument as didDocumentSchema } from './schemas/job.ts';
import { sendTagged, withTag } from '../../base/http/etag.ts';
import { llmsText } from './llms-text.ts';
import { priceJson, type Prices } from './prices.ts';
import { didDocument } from '../../payments/rules/offer-key.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';

/** More are in the catalogue, which has pages. */
const mostListed = 1_000;
/** A document of a thousand jobs is made at most once in this long: asking for it again and again costs little. */
const remadeAfterMs = 1_000;

/** GET /.well-known/x402 and GET /llms.txt: what is sold, for crawlers and for agents. */
export function discoveryRoutes(current: () => Prices) {
  return async (app: FastifyInstance): Promise<void> => {
    const resources = remade(current, (prices) => JSON.stringify(wellKnownJson(prices)));
    const text = remade(current, textOf);
    app.get('/.well-known/x402', async (request, reply) =>
      sendTagged(request, reply, withTag({ body: resources(), type: 'application/json' })),
    );
    app.get('/llms.txt', async (request, reply) =>
      sendTagged(request, reply, withTag({ body: text(), type: 'text/plain' })),
    );
  };
}

/** Makes a document from the present prices, anew after a reload, a change of prices, and a second. */
function remade(current: () => Prices, make: (prices: Prices) => string): () => string {
  let made = '';
  let of: Prices['catalog'] | undefined;
  let untilMs = 0;
  return () => {
    const prices = current();
    if (prices.catalog !== of || performance.now() > untilMs) {
      made = make(prices);
      of = prices.catalog;
      untilMs = performance.now() + remadeAfterMs;
    }
    return made;
  };
}

/** Crawlers read `version` and `resources`; `items` has the fields that a facilitator's discovery service lists. */
function wellKnownJson(prices: Prices): z.infer<typeof wellKnown> {
  const publicUrl = prices.publicUrl();
  const jobs = soldJobs(prices.catalog).slice(0, mostListed);
  return {
    version: 1,
    x402Version: 2,
    resources: jobs.map((job) => jobUrl(publicUrl, job)),
    instructions: `POST to a resource without a payment: the 402 has the offer. ${publicUrl}/llms.txt says how to pay it. What stands in accepts here is a price and no offer.`,
    items: jobs.map((job) => itemOf(prices, job)),
    catalogue: `${publicUrl}/x402/jobs`,
    openapi: `${publicUrl}/openapi.json`,
    llms: `${publicUrl}/llms.txt`,
  };
}

function itemOf(prices: Prices, job: Job): z.infer<typeof wellKnown>['items'][number] {
  const { maxTimeoutSecs } = prices.settings;
  const options = prices.offers.of(job.options);
  return {
    resource: jobUrl(prices.publicUrl(), job),
    type: 'http',
    method: 'POST',
    x402Version: 2,
    ...(job.name === undefined ? {} : { name: job.name }),
    ...(job.description === undefined ? {} : { description: job.description }),
    mimeType: 'application/json',
    accepts: options.map((option) => requirementV2(option, {}, maxTimeoutSecs)),
  };
}

function textOf(prices: Prices): string {
  const jobs = soldJobs(prices.catalog);
  return llmsText({
    publicUrl: prices.publicUrl(),
    jobs: jobs.slice(0, mostListed).map((job) => priceJson(prices, job)),
    total: jobs.length,
  });
}

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
