import type { FastifyInstance } from 'fastify';
import { parseJobId } from '../../domain/payments/job.ts';
import { schemes } from '../../domain/payments/schemes/schemes.ts';
import { findJob, inputJson, isSold, type Job, jobUrl } from '../../jobs/catalog.ts';
import type { JobsContext } from '../../jobs/context.ts';
import { sendRefusal } from '../server/errors.ts';
import { sendTagged } from './etag.ts';

/** GET /x402/jobs/{service_id}/{job_index}/price: what a job costs now. Issues no quote and writes nothing. */
export function priceRoutes(current: () => JobsContext) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get<{ Params: { service_id: string; job_index: string } }>(
      '/x402/jobs/:service_id/:job_index/price',
      async (request, reply) => {
        const context = current();
        const id = parseJobId(request.params.service_id, request.params.job_index);
        const job = id && findJob(context.catalog, id);
        if (!job) return sendRefusal(request, reply, 'job_not_found');
        if (!isSold(job)) return sendRefusal(request, reply, 'x402_disabled');
        const body = JSON.stringify(priceJson(context, job));
        return sendTagged(request, reply, { body, type: 'application/json' });
      },
    );
  };
}

/** The price is the same whether or not it can be paid now: what keeps it from being offered stands beside it. */
function priceJson(context: JobsContext, job: Job) {
  const offered = context.offers.of(job.options);
  const input = inputJson(job);
  const notOffered = context.offers.withoutRate(context.settings.acceptedTokens);
  const endpoint = jobUrl(context.publicUrl(), job);
  return {
    service_id: job.serviceId,
    job_index: job.jobIndex,
    price_wei: String(job.priceWei),
    invocation_mode: job.mode,
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
