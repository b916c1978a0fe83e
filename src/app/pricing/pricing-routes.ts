import { Code, ConnectError, type ConnectRouter, createContextKey } from '@connectrpc/connect';
import type { FairQueue } from './fair-queue.ts';
import { PricingService } from './generated/pricing_pb.ts';
import { priceMessage } from './price-messages.ts';
import type { PriceRefusal, PricingEngine } from './pricing-engine.ts';

/** What is logged of a request: ids only. */
export interface PriceFacts {
  service_id?: number;
  job_index?: number;
  quote_digest?: string;
  code?: string;
}

export const priceFacts = createContextKey<PriceFacts>({}, { description: 'what is logged of a request' });

const codes = {
  invalid_request: Code.InvalidArgument,
  unknown_job: Code.NotFound,
  too_many_requests: Code.ResourceExhausted,
  overloaded: Code.Unavailable,
  unavailable: Code.Unavailable,
} as const satisfies Record<PriceRefusal['code'] | 'too_many_requests', Code>;

/** The client: clients share the engine's capacity. */
export const askingClient = createContextKey('', { description: 'the address of the client' });

/** @param turns in which the engine works for its clients */
export function pricingRoutes(engine: PricingEngine, turns: FairQueue) {
  return (router: ConnectRouter): void => {
    router.service(PricingService, {
      async getJobPrice(message, { values }) {
        const facts = values.get(priceFacts);
        const outcome = await turns.take(
          values.get(askingClient),
          () => engine.getJobPrice(message),
          (priced) => priced.kind === 'refused' && priced.code === 'overloaded',
        );
        if (!outcome) throw refusalError(facts, 'too_many_requests', waitReason);
        if (outcome.kind === 'refused') throw refusalError(facts, outcome.code, outcome.reason);
        const { quote, digest } = outcome;
        Object.assign(facts, {
          service_id: quote.serviceId,
          job_index: quote.jobIndex,
          quote_digest: digest,
        });
        return priceMessage(engine.operator, outcome);
      },
    });
  };
}

const waitReason =
  'Too many of your requests wait for an answer. Nothing was charged. Ask again once some were answered.';

function refusalError(facts: PriceFacts, code: keyof typeof codes, reason: string): ConnectError {
  facts.code = code;
  return new ConnectError(reason, codes[code]);
}
