import { Code, ConnectError, type ConnectRouter, createContextKey } from '@connectrpc/connect';
import { hexToBytes } from 'viem/utils';
import { PricingService, ProofOfWorkRequiredSchema } from './generated/pricing_pb.ts';
import { priceMessage } from './price-answer.ts';
import type { PriceRefusal, PricingEngine } from './pricing-engine.ts';
import { proofWindowSecs } from './proof-of-work.ts';

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
  proof_of_work_required: Code.FailedPrecondition,
  proof_of_work_refused: Code.FailedPrecondition,
  proofs_full: Code.ResourceExhausted,
  unavailable: Code.Unavailable,
} as const satisfies Record<PriceRefusal['code'], Code>;

/** @param isBusy whether so many requests are being answered that no further one may wait for the signer */
export function pricingRoutes(engine: PricingEngine, isBusy: () => boolean) {
  return (router: ConnectRouter): void => {
    router.service(PricingService, {
      async getJobPrice(message, { values }) {
        const facts = values.get(priceFacts);
        if (isBusy()) throw refusalError(engine, facts, busy);
        const outcome = await engine.getJobPrice(message);
        if (outcome.kind === 'refused') throw refusalError(engine, facts, outcome);
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

const busy: PriceRefusal = {
  kind: 'refused',
  code: 'unavailable',
  reason: 'Too many requests are being answered. Nothing was charged. Ask again.',
};

function refusalError(
  engine: PricingEngine,
  facts: PriceFacts,
  { code, reason }: PriceRefusal,
): ConnectError {
  facts.code = code;
  const isAboutProof = codes[code] === Code.FailedPrecondition;
  return new ConnectError(reason, codes[code], undefined, isAboutProof ? [proofRequired(engine)] : []);
}

/** What a client needs to make a proof. */
function proofRequired({ operator, proofOfWorkBits, nowSecs }: PricingEngine) {
  return {
    desc: ProofOfWorkRequiredSchema,
    value: {
      bits: proofOfWorkBits,
      operatorId: hexToBytes(operator),
      timestamp: BigInt(nowSecs()),
      windowSecs: BigInt(proofWindowSecs),
    },
  };
}
