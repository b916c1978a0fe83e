import { randomBytes } from 'node:crypto';
import { creditText } from '../../base/values/price.ts';
import { endMessage, returnMessage } from '../../ledger/store/tasks.ts';
import { webhookSecretText } from '../../base/values/webhook-secret.ts';
import {
  customerAddresses,
  customerUrl,
  sendCustomerWebhook,
} from '../../base/peers/http/customer-webhook.ts';
import { type BudgetMessage, setAccountWebhook, takeBudgetMessages } from '../store/budget-alerts.ts';
import { userOfAccount } from '../store/identity.ts';
import { sendBudgetMail } from './auth-mails.ts';
import type { Identity } from './context.ts';
import type { SessionUser } from './sessions.ts';

/** Mails are sent one after the other: a mail arrives in the order of its sending. */
const atOnce = { mail: 1, webhook: 16 };

/** Sets the webhook of a user, with a new secret; undefined if the URL is not one that may be called. */
export async function setUserWebhook(
  identity: Pick<Identity, 'pool' | 'loopbackWebhooks'>,
  { accountId }: SessionUser,
  url: string,
): Promise<{ readonly url: string; readonly secret: string } | undefined> {
  // only its text may contain characters that no column takes
  const href = customerUrl(url, identity.loopbackWebhooks)?.href;
  if (href === undefined) return undefined;
  const secret = randomBytes(24).toString('base64url');
  await setAccountWebhook(identity.pool, accountId, { url: href, secret });
  return { url: href, secret: webhookSecretText(secret) };
}

/**
 * Sends the due messages about budgets, by mail or webhook: at least once each. True if there may be more.
 */
export async function sendBudgetAlerts(identity: Identity, channel: 'mail' | 'webhook'): Promise<boolean> {
  const due = await takeBudgetMessages(identity.pool, channel, atOnce[channel]);
  await Promise.all(due.map((message) => sendOne(identity, channel, message)));
  return due.length > 0;
}

async function sendOne(
  identity: Identity,
  channel: 'mail' | 'webhook',
  message: BudgetMessage,
): Promise<void> {
  let isDone = false;
  try {
    isDone = await (channel === 'mail' ? mail(identity, message) : post(identity, message));
  } catch (err) {
    const facts = { err, account_id: message.account_id, key_id: message.key_id, tries: message.tries };
    identity.log.warn({ ...facts, channel }, 'a message about a budget could not be sent: it is sent again');
  }
  await (isDone ? endMessage : returnMessage)(identity.pool, message.message_id);
}

async function mail(identity: Identity, message: BudgetMessage): Promise<true> {
  const userId = userOfAccount(message.account);
  if (userId !== undefined) await sendBudgetMail(identity, userId, textOf(message));
  return true;
}

/** An address that cannot be reached is a customer's matter: it is not logged. */
async function post(identity: Identity, message: BudgetMessage): Promise<boolean> {
  const { url, secret, key_id: keyId, key_name: name, percent, used, budget, until } = message;
  if (url === null || secret === null) return true;
  const body = {
    type: 'key_budget.used',
    timestamp: message.created_at.toISOString(),
    data: {
      key_id: keyId,
      key_name: name,
      percent,
      period: message.budget_period,
      budget: creditText(BigInt(budget)),
      used: creditText(BigInt(used)),
      starts_anew_at: until.toISOString(),
    },
  };
  const sent = await sendCustomerWebhook(
    { url, secret },
    {
      // the same each time it is sent
      id: `budget-${keyId}-${message.budget_from.toISOString().slice(0, 10)}-${percent}-${message.message_id}`,
      timestampSecs: Math.floor(Date.now() / 1_000),
      body: JSON.stringify(body),
    },
    customerAddresses(identity.loopbackWebhooks),
  );
  return sent.kind === 'delivered';
}

function textOf({ key_name: name, percent, used, budget, budget_period: period, until }: BudgetMessage) {
  const amounts = `${creditText(BigInt(used))} of ${creditText(BigInt(budget))}`;
  const state =
    percent === 100
      ? 'is used up: requests that cost more than the rest of it are refused, and nothing is charged for them'
      : `is used to ${percent} percent`;
  return {
    subject:
      percent === 100
        ? 'The budget of an API key is used up'
        : `The budget of an API key is used to ${percent} %`,
    text:
      `The budget of the API key "${name ?? ''}" for this ${period} ${state} (${amounts}).\n\n` +
      `It starts anew at ${until.toISOString()}.`,
  };
}
