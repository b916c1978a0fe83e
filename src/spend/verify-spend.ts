import { bytesToHex } from 'viem/utils';
import { openAiError } from '../domain/errors/openai-error.ts';
import {
  readSpendAuth,
  recoverSpender,
  type SpendAuth,
  spendAuthDigest,
  spendAuthHash,
  spendTermsFault,
} from '../domain/spend/spend-auth.ts';
import { mayAuthenticate } from '../store/credit.ts';
import { type Refused, refuse } from '../chat/answer.ts';
import type { ChatContext } from '../chat/context.ts';
import { askingSecs, domainOf, spendError, type Spending, type VerifiedSpend } from './spend.ts';

/**
 * Whether a spend authorization is what it says: its operator's terms first, then its signature against its account's key on
 * the chain. Nothing is taken, and no nonce is used up. Signatures that are none count against the client's address.
 */
export async function verifySpend(
  context: ChatContext,
  header: string,
  client: string,
): Promise<VerifiedSpend | Refused> {
  const { spending } = context;
  if (!spending)
    return refuse(openAiError('invalid_api_key', { message: 'Spend authorizations are not taken here.' }));
  const auth = readSpendAuth(header);
  if ('fault' in auth) return refuse(spendError(auth.fault));
  const refused = checkTerms(context, spending, auth);
  if (refused) return refused;
  const domain = domainOf(spending.settings);
  const signer = recoverSpender(domain, auth);
  const failures = `auth:${client}`;
  const perMinute = context.settings.failedAuthPerMinute;
  if (!(await mayAuthenticate(context.pool, failures, perMinute, false)))
    return refuse(openAiError('rate_limit_exceeded'), { retryAfterSecs: 60 });
  const account = await spending.prepaid.getAccount(auth.commitment);
  if (account.kind === 'unavailable') {
    context.log.warn({ cause: account.cause, err: account.error }, 'the credits contract could not be asked');
    return refuse(openAiError('chain_unavailable'), { retryAfterSecs: 2 });
  }
  if (signer === undefined || signer !== account.value?.spendingKey) {
    await mayAuthenticate(context.pool, failures, perMinute, true);
    return refuse(spendError('signer_mismatch'));
  }
  const { token, balance, nonce } = account.value;
  if (token !== spending.settings.token)
    return refuse(spendError('invalid_spend_auth', 'The account holds another token than is taken here.'));
  // one whose nonce has passed may have been debited for it already: that is looked at where it is taken
  if (auth.nonce >= nonce && balance < auth.amount) return refuse(spendError('insufficient_balance'));
  return { auth, authHash: spendAuthHash(auth), digest: bytesToHex(spendAuthDigest(domain, auth)) };
}

function checkTerms(
  context: ChatContext,
  { settings: spend, prepaid }: Spending,
  auth: SpendAuth,
): Refused | undefined {
  const { serviceId, minCharge, maxSpend } = spend;
  const untilSecs =
    neededUntilSecs(context, spend) + Math.ceil((spend.authorizeTimeoutMs + spend.nonceWaitMs) / 1_000);
  const terms = { operator: prepaid.operator, serviceId: BigInt(serviceId), minCharge, maxSpend };
  const fault = spendTermsFault(auth, terms, untilSecs);
  if (!fault) return undefined;
  const messages: Partial<Record<typeof fault, string>> = {
    operator_mismatch: `The operator here is ${prepaid.operator}.`,
    service_id_mismatch: `The service here is ${serviceId}.`,
    below_min_charge: `The least charge is ${minCharge} atoms.`,
    exceeds_max_spend: `One spend authorization may be of ${maxSpend} atoms at most.`,
    invalid_spend_auth: `The spend authorization must hold until ${untilSecs} at least: its request, and claiming it, take time.`,
  };
  return refuse(spendError(fault, messages[fault]));
}

/** When a spend that has landed may expire at the earliest, so that it can be claimed for an answer that is asked for now. */
export function neededUntilSecs(
  { settings, models, lane }: ChatContext,
  { claimMarginSecs }: Spending['settings'],
): number {
  const upstreams = new Map(settings.upstreams.map((upstream) => [upstream.name, upstream]));
  const nowSecs = Math.ceil((Date.now() + lane.state.clockOffsetMs) / 1_000);
  return nowSecs + askingSecs(upstreams, models.values()) + claimMarginSecs;
}
