import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { jobPriceText } from '../../base/values/amount.ts';
import { parseJobId } from '../../base/values/job.ts';
import { schemes } from '../../payments/rules/schemes/schemes.ts';
import { findJob, inputJson, type Job, jobUrl, soldJobs } from '../use-cases/catalog.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { catalogueQuery, type price } from './schemas/job.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { sendTagged, withTag } from '../../base/http/etag.ts';

/** What is sold, and at which prices, comes only from here. */
export type Prices = Pick<JobsContext, 'catalog' | 'offers' | 'settings' | 'publicUrl'>;

/**
 * GET /x402/jobs/{service_id}/{job_index}/price: what a job costs now; GET /x402/jobs: all of them, in pages. They issue no quote
 * and write nothing.
 */
export function priceRoutes(current: () => Prices) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get<{ Params: { service_id: string; job_index: string } }>(
      '/x402/jobs/:service_id/:job_index/price',
      async (request, reply) => {
        const context = current();
        const id = parseJobId(request.params.service_id, request.params.job_index);
        const job = id && findJob(context.catalog, id);
        if (!job) return sendRefusal(request, reply, 'job_not_found');
        if (!job.isSold) return sendRefusal(request, reply, 'x402_disabled');
        const body = JSON.stringify(priceJson(context, job));
        return sendTagged(request, reply, withTag({ body, type: 'application/json' }));
      },
    );

    app.get('/x402/jobs', async (request, reply) => {
      const query = catalogueQuery.safeParse(request.query);
      if (!query.success) return sendRefusal(request, reply, 'invalid_request');
      const { cursor, limit } = query.data;
      const [, service = '', index = ''] = /^(\d+)-(\d+)$/.exec(cursor ?? '') ?? [];
      const after = parseJobId(service, index);
      if (cursor !== undefined && !after) return sendRefusal(request, reply, 'invalid_cursor');
      const context = current();
      const jobs = soldJobs(context.catalog, after);
      const last = jobs.length > limit ? jobs[limit - 1] : undefined;
      const body = JSON.stringify({
        jobs: jobs.slice(0, limit).map((job) => priceJson(context, job)),
        // a place in the catalogue: every gateway knows it, also after a reload
        next: last ? `${last.serviceId}-${last.jobIndex}` : null,
      });
      return sendTagged(request, reply, withTag({ body, type: 'application/json' }));
    });
  };
}

/** The price is the same whether or not it can be paid now: a further field names the reason why it is not offered. */
export function priceJson(context: Prices, job: Job): z.infer<typeof price> {
  const offered = context.offers.of(job.options);
  const input = inputJson(job);
  const notOffered = context.offers.withoutRate(context.settings.acceptedTokens);
  const endpoint = jobUrl(context.publicUrl(), job);
  return {
    service_id: job.serviceId,
    job_index: job.jobIndex,
    ...(job.name === undefined ? {} : { name: job.name }),
    ...(job.description === undefined ? {} : { description: job.description }),
    ...(job.route ? { methods: [...job.route.methods] } : {}),
    price: jobPriceText({ wei: job.priceWei, inUsd: job.inUsd }),
    ...(job.inUsd ? {} : { price_wei: String(job.priceWei) }),
    ...(job.priced ? { price_depends_on_request: true } : {}),
    invocation_mode: job.mode as Exclude<Job['mode'], 'disabled'>,
    ...(job.restriction ? { auth_mode: job.restriction.authMode } : {}),
    ...(input ? { input } : {}),
    settlement_options: offered.map((option) => ({
      protocol: 'x402',
      scheme: schemes[option.transferMethod].x402Scheme,
      network: option.network,
      asset: option.asset,
      symbol: option.symbol,
      decimals: option.decimals,
      amount: String(option.amount),
      pay_to: option.payTo,
      x402_endpoint: endpoint,
    })),
    ...(notOffered.length === 0 ? {} : { not_offered: notOffered }),
    ...(offered.length === 0 ? { unavailable: { reason: context.offers.whyNone(job.options) } } : {}),
    x402_endpoint: endpoint,
  };
}
