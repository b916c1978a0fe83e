import type { Hex } from '../values/primitives.ts';
import { type OfferExtra, publicExtra, writeOfferExtra } from './offer-extra.ts';
import type { SettlementOption } from './quote.ts';
import type { QuoteEcho } from './quote-echo.ts';
import type { SignedPayment } from './payment.ts';
import { schemes } from './schemes/schemes.ts';

/** One offer of x402 version 2, as clients and the facilitator read it. `amount` is in the token's atoms. */
export type RequirementV2 = {
  readonly scheme: string;
  readonly network: string;
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Readonly<Record<string, unknown>>;
};

/** The offers of a quote's options, in their order; `echoes` are in the same order. */
export function offersV2(
  {
    options,
    digest,
    secret,
    echoes,
  }: Omit<OfferExtra, 'echo'> & {
    readonly options: readonly SettlementOption[];
    readonly echoes: readonly QuoteEcho[] | undefined;
  },
  maxTimeoutSecs: number,
): RequirementV2[] {
  return options.map((option, index) =>
    offerV2(option, { digest, secret, echo: echoes?.[index] }, maxTimeoutSecs),
  );
}

/** The offer of an option, as its recipient gets it. Clients echo `extra`: so a payment names its quote. */
export function offerV2(option: SettlementOption, extra: OfferExtra, maxTimeoutSecs: number): RequirementV2 {
  return requirementV2(option, writeOfferExtra(extra), maxTimeoutSecs);
}

function requirementV2(
  option: Omit<SettlementOption, 'symbol' | 'decimals'>,
  extra: Readonly<Record<string, unknown>>,
  maxTimeoutSecs: number,
): RequirementV2 {
  const scheme = schemes[option.transferMethod];
  return {
    scheme: scheme.x402Scheme,
    network: option.network,
    amount: String(option.amount),
    asset: option.asset,
    payTo: option.payTo,
    maxTimeoutSeconds: maxTimeoutSecs,
    extra: { ...scheme.offerExtraV2(option), ...extra },
  };
}

/** The body of `/verify` and `/settle`, rebuilt from checked fields: none of the client's text is passed on. */
export function facilitatorRequest(payment: SignedPayment, digest: Hex) {
  const requirement = requirementV2(payment, publicExtra(digest), payment.maxTimeoutSecs);
  const payload = schemes[payment.transferMethod].facilitatorPayload(payment);
  return {
    x402Version: 2 as const,
    paymentPayload: { x402Version: 2, accepted: requirement, payload },
    paymentRequirements: requirement,
  };
}

export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64');
}
