import type { Hex } from '../../base/values/primitives.ts';
import { type OfferExtra, publicExtra, writeOfferExtra } from './offer-extra.ts';
import type { SettlementOption } from './quote.ts';
import type { QuoteEcho } from './quote-echo.ts';
import type { SignedPayment } from './payment.ts';
import { schemes } from './schemes/schemes.ts';
import type { OfferedResource } from './x402-v1.ts';

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

/** What a quote adds to its offers; `echoes` are in the order of its options. */
export type QuoteOfferExtra = Omit<OfferExtra, 'echo'> & {
  readonly echoes: readonly QuoteEcho[] | undefined;
};

/**
 * The offers of options as JSON, each with the part that all their quotes share: it lacks the rest of `extra` and its two closing
 * brackets. Clients echo `extra`: so a payment names its quote.
 */
export function offerTextsV2(
  options: readonly SettlementOption[],
  maxTimeoutSecs: number,
  isAnsweredFirst = false,
): readonly string[] {
  return options.map(
    (option) => `${JSON.stringify(requirementV2(option, {}, maxTimeoutSecs, isAnsweredFirst)).slice(0, -2)},`,
  );
}

/** The offers of a quote, as their recipient gets them: a JSON list. */
export function offersV2Text(texts: readonly string[], { digest, secret, echoes }: QuoteOfferExtra): string {
  const offers = texts.map((text, index) => {
    const extra = writeOfferExtra({ digest, secret, echo: echoes?.[index] });
    return `${text}${JSON.stringify(extra).slice(1)}}`;
  });
  return `[${offers.join(',')}]`;
}

/** As x402 names it: the payment is settled before the job runs. The other flow of x402 is not named in an offer. */
export const paymentFlow = 'upfront';

/** An offer without its quote, or a price. */
export function requirementV2(
  option: Omit<SettlementOption, 'symbol' | 'decimals'>,
  extra: Readonly<Record<string, unknown>>,
  maxTimeoutSecs: number,
  isAnsweredFirst = false,
): RequirementV2 {
  const scheme = schemes[option.transferMethod];
  return {
    scheme: scheme.x402Scheme,
    network: option.network,
    amount: String(option.amount),
    asset: option.asset,
    payTo: option.payTo,
    maxTimeoutSeconds: maxTimeoutSecs,
    extra: { ...scheme.offerExtraV2(option), ...(isAnsweredFirst ? {} : { paymentFlow }), ...extra },
  };
}

/** The fields that go to the facilitator with a payment. */
export interface PassedOn {
  readonly resource?: OfferedResource;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/**
 * The body of `/verify` and `/settle`, rebuilt from checked fields: only extensions are passed on as the client wrote them.
 * @param atoms what is moved, where that is less than was signed
 */
export function facilitatorRequest(
  payment: SignedPayment,
  digest: Hex,
  { resource, extensions = {} }: PassedOn = {},
  atoms = payment.amount,
) {
  const requirement = requirementV2(payment, publicExtra(digest), payment.maxTimeoutSecs);
  const payload = schemes[payment.transferMethod].facilitatorPayload(payment);
  return {
    x402Version: 2 as const,
    paymentPayload: {
      x402Version: 2,
      ...(resource && { resource }),
      accepted: requirement,
      payload,
      ...(Object.keys(extensions).length > 0 && { extensions }),
    },
    paymentRequirements: { ...requirement, amount: String(atoms) },
  };
}

export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64');
}
