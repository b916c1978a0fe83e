import type { OpenAiError } from '../domain/errors/openai-error.ts';
import type { PaymentOffer } from '../spend/spend.ts';

/** Where a caller stands with its limits, after this request. */
export interface LimitState {
  readonly perMinute: number;
  readonly remaining: number;
  /** Until there is room for one more. */
  readonly resetSecs: number;
  /** Where there is a limit by UTC day too. */
  readonly day?: { readonly limit: number; readonly remaining: number; readonly resetSecs: number };
}

export interface Refused {
  readonly kind: 'refused';
  readonly error: OpenAiError;
  readonly retryAfterSecs?: number;
  /** Undefined where the limits were not asked. */
  readonly limit?: LimitState;
  /** How it could be paid, where nothing was sent for a model that costs. */
  readonly payment?: PaymentOffer;
}

export type ChatAnswer =
  | Refused
  | {
      readonly kind: 'whole';
      readonly chatId: string;
      /** The upstream's JSON, untouched. */
      readonly body: Buffer;
      readonly limit: LimitState;
    }
  | {
      readonly kind: 'stream';
      readonly chatId: string;
      /**
       * Events ready to be sent, to be read once; leaving the loop early aborts the upstream. A lost upstream ends it with
       * an error event and no `[DONE]`. Never throws.
       */
      readonly chunks: AsyncIterable<Buffer>;
      /** The upstream's part is over and settled; what has come may still be read. */
      readonly ended: Promise<void>;
      readonly limit: LimitState;
    };

export function refuse(
  error: OpenAiError,
  more: Pick<Refused, 'retryAfterSecs' | 'limit' | 'payment'> = {},
): Refused {
  return { kind: 'refused', error, ...more };
}
