import { openAiError } from '../domain/errors/openai-error.ts';
import { creditText } from '../domain/credit/price.ts';
import type { Admission, CreditDetail, CreditRefusal } from '../store/append-batch.ts';
import { type LimitState, type Refused, refuse } from './answer.ts';
import { type Caller, spendingOf } from './caller.ts';
import type { ChatContext } from './context.ts';

const formPrefix = 'form:';

export type Limits = Pick<Admission, 'subject' | 'perMinute' | 'perDay' | 'others'>;

/** Too little credit for the requested answer, but perhaps enough for a shorter one. */
export interface Short {
  readonly kind: 'short';
  readonly availableMicros: bigint;
  readonly refused: Refused;
}

/**
 * The limits of a completion: of its credential, and of what all credentials have in common, since keys, sessions and accounts are
 * free to create.
 */
export function limitsOf(context: Pick<ChatContext, 'settings'>, caller: Caller, isFree: boolean): Limits {
  const { freePerMinute: perMinute, freePerDay: perDay } = context.settings;
  const { others = [], ...own } = credentialLimits(context, caller);
  const { account_id: account } = spendingOf(caller) ?? {};
  const free = [caller.client, ...(account === undefined ? [] : [`account:${account}`])];
  return {
    ...own,
    others: [
      ...others,
      ...(isFree ? free.map((subject) => ({ subject: `free:${subject}`, perMinute, perDay })) : []),
      ...('formId' in caller ? [{ subject: `${formPrefix}${caller.formId}`, perMinute: 1, perDay: 1 }] : []),
    ],
  };
}

/** The limits that a request counts against whatever its model is. */
function credentialLimits({ settings }: Pick<ChatContext, 'settings'>, caller: Caller): Limits {
  const perDay = undefined;
  switch (caller.kind) {
    case 'api_key': {
      const { keyId, accountId } = caller.key;
      const others = [{ subject: `account:${accountId}`, perMinute: settings.accountPerMinute, perDay }];
      return { subject: `key:${keyId}`, perMinute: settings.keyPerMinute, perDay, others };
    }
    case 'session': {
      const { userId, accountId } = caller;
      const others = [{ subject: `account:${accountId}`, perMinute: settings.accountPerMinute, perDay }];
      return { subject: `user:${userId}`, perMinute: settings.sessionPerMinute, perDay, others };
    }
    case 'spend_auth': {
      const subject = `spend:${caller.spend.auth.commitment}`;
      return { subject, perMinute: settings.spendAuthPerMinute, perDay };
    }
    case 'anonymous':
      return {
        subject: caller.client,
        perMinute: settings.anonymousPerMinute,
        perDay: settings.anonymousPerDay,
      };
  }
}

/**
 * The limits of a request that is refused before its admission. With `count = "requests"` the credential's count it too; that of a spend
 * does not, because anyone can send a spend that a chain shows, nor that of a client without credentials that asks for a price.
 */
export function refusedLimits(
  context: Pick<ChatContext, 'settings'>,
  caller: Caller,
  isUnpaid: boolean,
): Limits {
  const { count, refusedPerMinute: perMinute } = context.settings;
  const ofRefusals = { subject: `refused:${caller.client}`, perMinute, perDay: undefined };
  if (count === 'admitted' || isUnpaid || caller.kind === 'spend_auth') return ofRefusals;
  const { others = [], ...own } = credentialLimits(context, caller);
  return { ...own, perDay: undefined, others: [...others, ofRefusals] };
}

export function limitStateOf({ perMinute, perDay }: Limits, detail: CreditDetail): LimitState {
  const minute = {
    perMinute,
    remaining: numberOf(detail.remaining),
    resetSecs: Math.ceil(numberOf(detail.reset_ms) / 1_000),
  };
  // a refusal by another limit says nothing of this day
  if (perDay === undefined || detail.remaining_today == null) return minute;
  const resetSecs = Math.ceil(numberOf(detail.reset_today_ms) / 1_000);
  return { ...minute, day: { limit: perDay, remaining: numberOf(detail.remaining_today), resetSecs } };
}

/** How a client is answered whose admission the ledger has refused. */
export function refuseAdmission(
  { settings, lane }: Pick<ChatContext, 'settings' | 'lane'>,
  { code, detail }: { readonly code: CreditRefusal; readonly detail: CreditDetail },
  holdMicros: bigint,
  limit: LimitState,
): Refused | Short {
  switch (code) {
    case 'rate_limit_exceeded':
    case 'daily_quota_exceeded': {
      if (detail.full_subject?.startsWith(formPrefix))
        return { ...refuse(openAiError(code), { limit }), isRepeatedForm: true };
      const retryAfterSecs = Math.max(1, Math.ceil(numberOf(detail.retry_ms) / 1_000));
      return refuse(openAiError(code), { retryAfterSecs, limit });
    }
    case 'insufficient_funds':
    case 'key_cap_reached':
    case 'key_budget_reached': {
      const availableMicros = BigInt(numberOf(detail.available));
      const { currency } = settings;
      const until = detail.budget_until ?? '';
      const { subject, advice } = {
        insufficient_funds: { subject: 'The balance', advice: 'or add credit' },
        key_cap_reached: { subject: "The rest of this key's cap", advice: 'or add credit' },
        key_budget_reached: {
          subject: "The rest of this key's budget",
          advice: `or wait: the budget starts anew at ${until}`,
        },
      }[code];
      const message =
        `${subject} is ${creditText(availableMicros)} ${currency}, and this request may cost up to ` +
        `${creditText(holdMicros)} ${currency}. Nothing was charged; request fewer tokens, ${advice}.`;
      if (code !== 'key_budget_reached')
        return {
          kind: 'short',
          availableMicros,
          refused: refuse(openAiError('insufficient_funds', { message }), { limit }),
        };
      const nowMs = Date.now() + lane.state.clockOffsetMs;
      const retryAfterSecs = Math.max(1, Math.ceil((Date.parse(until) - nowMs) / 1_000));
      const refused = refuse(openAiError(code, { message }), { limit, retryAfterSecs });
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
