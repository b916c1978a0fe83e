import { openAiError } from '../../base/errors/openai-error.ts';
import { creditText } from '../../base/values/price.ts';
import type { CreditDetail, CreditRefusal } from '../../ledger/store/append-batch.ts';
import { type LimitLeft, type LimitState, type Refused, refuse } from './answer.ts';
import { type Caller, spendingOf } from './caller.ts';
import type { ChatContext } from './context.ts';
import { creditPlace } from './credit-place.ts';
import type { Limits } from './refusal-cache.ts';

const formPrefix = 'form:';

/** Too little credit for the requested answer, but perhaps enough for a shorter one. */
export interface Short {
  readonly kind: 'short';
  readonly availableMicros: bigint;
  readonly refused: Refused;
}

/** The limits of a completion: of its credential, and, if the operator sets them, of what several credentials have in common. */
export function limitsOf(context: Pick<ChatContext, 'settings'>, caller: Caller, isFree: boolean): Limits {
  const { freePerDay: perDay } = context.settings;
  const { others = [], ...own } = credentialLimits(context, caller);
  const { account_id: account } = spendingOf(caller) ?? {};
  const free = [caller.client, ...(account === undefined ? [] : [`account:${account}`])];
  return {
    ...own,
    others: [
      ...others,
      ...(isFree && perDay !== undefined
        ? free.map((subject) => ({ subject: `free:${subject}`, perMinute: perDay, perDay }))
        : []),
      ...('formId' in caller ? [{ subject: `${formPrefix}${caller.formId}`, perMinute: 1, perDay: 1 }] : []),
    ],
  };
}

/** The limits that a request counts against whatever its model is. */
function credentialLimits({ settings }: Pick<ChatContext, 'settings'>, caller: Caller): Limits {
  const perDay = undefined;
  const ofAccount = (accountId: number) =>
    settings.accountPerMinute === undefined
      ? []
      : [{ subject: `account:${accountId}`, perMinute: settings.accountPerMinute, perDay }];
  switch (caller.kind) {
    case 'api_key': {
      const { keyId, accountId } = caller.key;
      return {
        subject: `key:${keyId}`,
        perMinute: settings.keyPerMinute,
        perDay,
        others: ofAccount(accountId),
      };
    }
    case 'session': {
      const { userId, accountId } = caller;
      return {
        subject: `user:${userId}`,
        perMinute: settings.sessionPerMinute,
        perDay,
        others: ofAccount(accountId),
      };
    }
    case 'spend_auth': {
      const subject = `spend:${caller.spend.auth.commitment}`;
      return { subject, perMinute: settings.spendAuthPerMinute, perDay };
    }
    case 'x402':
      return { subject: `payer:${caller.payer}`, perMinute: settings.spendAuthPerMinute, perDay };
    case 'anonymous':
      return {
        subject: caller.client,
        perMinute: settings.anonymousPerMinute,
        perDay: settings.anonymousPerDay,
      };
  }
}

/**
 * The limits of a request that is refused before its admission: those of its credential. A spend's do not count it, because anyone
 * can send a spend that a chain shows: it counts against its client address. So does a request without a credential where completions
 * are sold to such callers: each of them begins with a refusal, the offer.
 */
export function refusedLimits(context: Pick<ChatContext, 'settings' | 'isSold'>, caller: Caller): Limits {
  const { refusedPerMinute: perMinute } = context.settings;
  return caller.kind === 'spend_auth' || (caller.kind === 'anonymous' && context.isSold)
    ? { subject: `refused:${caller.client}`, perMinute, perDay: undefined }
    : credentialLimits(context, caller);
}

export function limitStateOf(detail: CreditDetail): LimitState {
  const minute = limitLeft(detail.per_minute, detail.remaining, detail.reset_ms);
  return detail.per_day == null
    ? { minute }
    : { minute, day: limitLeft(detail.per_day, detail.remaining_today, detail.reset_today_ms) };
}

type Figure = number | null | undefined;

function limitLeft(limit: Figure, remaining: Figure, resetMs: Figure): LimitLeft {
  return {
    limit: numberOf(limit),
    remaining: numberOf(remaining),
    resetSecs: Math.ceil(numberOf(resetMs) / 1_000),
  };
}

/** How a client is answered whose admission the ledger has refused. */
export function refuseAdmission(
  { settings, lane, config }: Pick<ChatContext, 'settings' | 'lane' | 'config'>,
  { code, detail }: { readonly code: CreditRefusal; readonly detail: CreditDetail },
  caller: Caller | undefined,
  holdMicros: bigint,
  limit: LimitState,
): Refused | Short {
  switch (code) {
    case 'rate_limit_exceeded':
    case 'daily_quota_exceeded': {
      if (detail.full_subject?.startsWith(formPrefix))
        return { ...refuse(openAiError(code), { limit }), isRepeatedForm: true };
      const retryAfterSecs = Math.max(1, Math.ceil(numberOf(detail.retry_ms) / 1_000));
      const message = `Too many requests. Nothing was charged. Send the request again in ${retryAfterSecs} s.`;
      const more = code === 'rate_limit_exceeded' ? { message } : {};
      return refuse(openAiError(code, more), { retryAfterSecs, limit });
    }
    case 'insufficient_funds':
    case 'key_cap_reached':
    case 'key_budget_reached': {
      const availableMicros = BigInt(numberOf(detail.available));
      const { currency } = settings;
      const until = detail.budget_until ?? '';
      const isOfUser = caller?.kind === 'session' || (caller?.kind === 'api_key' && caller.key.isOfUser);
      const place = isOfUser ? creditPlace(config) : undefined;
      const addCredit = place === undefined ? 'Ask the operator for credit' : `Add credit at ${place}`;
      const { subject, advice } = {
        insufficient_funds: { subject: 'The balance', advice: addCredit },
        key_cap_reached: { subject: "The rest of this key's cap", advice: 'Use a key with a higher cap' },
        key_budget_reached: {
          subject: "The rest of this key's budget",
          advice: `Wait until ${until}, when the budget starts anew`,
        },
      }[code];
      const message =
        `${subject} is ${creditText(availableMicros)} ${currency}, and this request may cost up to ` +
        `${creditText(holdMicros)} ${currency}. Nothing was charged. ${advice}, or request fewer tokens with max_tokens.`;
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

/** How a client is answered of whose limits one is known to be full. */
export function refuseFull(
  context: Pick<ChatContext, 'settings' | 'lane' | 'config'>,
  full: Parameters<typeof refuseAdmission>[1],
  holdMicros: bigint,
): Refused {
  const result = refuseAdmission(context, full, undefined, holdMicros, limitStateOf(full.detail));
  return result.kind === 'short' ? result.refused : result;
}

function numberOf(value: Figure): number {
  if (value == null) throw new Error("the ledger's answer to an admission lacks a number");
  return value;
}
