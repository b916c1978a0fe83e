import type { OpenAiError } from '../../base/errors/openai-error.ts';
import type { PaymentOffer } from '../../base/errors/payment-offer.ts';

/** What is left of one limit after a request. */
export interface LimitLeft {
  readonly limit: number;
  readonly remaining: number;
  /** Until one more request is admitted. */
  readonly resetSecs: number;
}

/** Of the limits that a request counts against: the one by the minute and the one by the UTC day that leave the least. */
export interface LimitState {
  readonly minute: LimitLeft;
  /** Undefined if no limit is by the day. */
  readonly day?: LimitLeft;
}

export interface Refused {
  readonly kind: 'refused';
  readonly error: OpenAiError;
  readonly retryAfterSecs?: number;
  /** Undefined when the request was refused before its limits were checked. */
  readonly limit?: LimitState;
  /** How the request could be paid, for a request without credentials on a model that costs credit. */
  readonly payment?: PaymentOffer;
  /** `PAYMENT-REQUIRED`: how this request alone could be paid by x402. */
  readonly offer?: string;
  /** The form of a page that it came by has made its completion already. */
  readonly isRepeatedForm?: true;
}

export type ChatAnswer =
  | Refused
  | {
      readonly kind: 'whole';
      readonly chatId: string;
      /** The upstream's JSON, unchanged. */
      readonly body: Buffer;
      readonly limit: LimitState;
    }
  | {
      readonly kind: 'stream';
      readonly chatId: string;
      /**
       * Server-sent events, to be read once; leaving the loop early aborts the upstream. When the upstream is lost, the last
       * event is an error and there is no `[DONE]`. Never throws.
       */
      readonly chunks: AsyncIterable<Buffer>;
      /** Resolves when the upstream is done and the completion is being settled; chunks may still be unread. */
      readonly ended: Promise<void>;
      readonly limit: LimitState;
    };

export function refuse(
  error: OpenAiError,
  more: Pick<Refused, 'retryAfterSecs' | 'limit' | 'payment'> = {},
): Refused {
  return { kind: 'refused', error, ...more };
}
