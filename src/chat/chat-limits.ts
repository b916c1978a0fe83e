import { openAiError } from '../domain/errors/openai-error.ts';
import { creditText } from '../domain/credit/price.ts';
import type { Admission, CreditDetail, CreditRefusal } from '../store/append-batch.ts';
import { type LimitState, type Refused, refuse } from './answer.ts';
import type { Caller } from './caller.ts';
import type { ChatContext } from './context.ts';

export type Limits = Pick<Admission, 'subject' | 'perMinute' | 'perDay'>;

/** Too little credit for the requested answer, but perhaps enough for a shorter one. */
export interface Short {
  readonly kind: 'short';
  readonly availableMicros: bigint;
  readonly refused: Refused;
}

export function limitsOf({ settings }: Pick<ChatContext, 'settings'>, caller: Caller): Limits {
  switch (caller.kind) {
    case 'api_key':
      return { subject: `key:${caller.key.keyId}`, perMinute: settings.keyPerMinute, perDay: undefined };
    case 'session':
      return { subject: `user:${caller.userId}`, perMinute: settings.sessionPerMinute, perDay: undefined };
    case 'spend_auth': {
      const subject = `spend:${caller.spend.auth.commitment}`;
      return { subject, perMinute: settings.spendAuthPerMinute, perDay: undefined };
    }
    case 'anonymous':
      return {
        subject: caller.client,
        perMinute: settings.anonymousPerMinute,
        perDay: settings.anonymousPerDay,
      };
  }
}

export function limitStateOf({ perMinute, perDay }: Limits, detail: CreditDetail): LimitState {
  const minute = {
    perMinute,
    remaining: numberOf(detail.remaining),
    resetSecs: Math.ceil(numberOf(detail.reset_ms) / 1_000),
  };
  if (perDay === undefined) return minute;
  const resetSecs = Math.ceil(numberOf(detail.reset_today_ms) / 1_000);
  return { ...minute, day: { limit: perDay, remaining: numberOf(detail.remaining_today), resetSecs } };
}

/** How a client is answered whose admission the ledger has refused. */
export function refuseAdmission(
  { settings }: Pick<ChatContext, 'settings'>,
  { code, detail }: { readonly code: CreditRefusal; readonly detail: CreditDetail },
  holdMicros: bigint,
  limit: LimitState,
): Refused | Short {
  switch (code) {
    case 'rate_limit_exceeded':
    case 'daily_quota_exceeded': {
      const retryAfterSecs = Math.max(1, Math.ceil(numberOf(detail.retry_ms) / 1_000));
      return refuse(openAiError(code), { retryAfterSecs, limit });
    }
    case 'insufficient_funds':
    case 'key_cap_reached': {
      const availableMicros = BigInt(numberOf(detail.available));
      const { currency } = settings;
      const subject = code === 'insufficient_funds' ? 'The balance' : "The rest of this key's cap";
      const message =
        `${subject} is ${creditText(availableMicros)} ${currency}, and this request may cost up to ` +
        `${creditText(holdMicros)} ${currency}. Nothing was charged; request fewer tokens, or add credit.`;
      const refused = refuse(openAiError('insufficient_funds', { message }), { limit });
      return { kind: 'short', availableMicros, refused };
    }
    default:
      throw new Error(`the ledger refused an admission as ${code}`);
  }
}

function numberOf(value: number | null | undefined): number {
  if (value == null) throw new Error("the ledger's answer to an admission lacks a number");
  return value;
}
