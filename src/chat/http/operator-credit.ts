import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { creditText, parseCredit, requestIdPattern } from '../../base/values/price.ts';
import { sendKeyMail } from '../../accounts/use-cases/auth-mails.ts';
import { inBackground } from '../../base/runtime/background.ts';
import { userOfAccount } from '../../accounts/store/identity.ts';
import { issueApiKey, revokeKey } from '../../accounts/use-cases/api-keys.ts';
import { findCreditAccount, grantCredit, openCreditAccount } from '../../accounts/use-cases/credit/credit.ts';
import type { ChatContext } from '../use-cases/context.ts';
import { listApiKeys, type ListedKey } from '../../accounts/store/api-keys.ts';
import { type Account, listAccounts } from '../../accounts/store/credit.ts';
import type { OperatorToken } from '../../accounts/store/operator-tokens.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { creditsJson } from './credits.ts';
import { budgetTerms, keyFacts } from './key-budget.ts';
import { operatorRoutesOn } from '../../accounts/http/operator-access.ts';
import { idOf } from '../../base/http/request-values.ts';
import {
  type AccountJson,
  accountsQuery,
  grantRequest,
  type IssuedKeyJson,
  keyRequest,
  keysQuery,
  type ListedKeyJson,
} from './schemas/operator-credit.ts';

const dayMs = 86_400_000;
const badRequestId = {
  formErrors: [],
  fieldErrors: { 'Idempotency-Key': ['must be 16 to 128 of A-Z, a-z, 0-9, _ and -'] },
};

/** Keys and credit of model chat, for an operator: every route requires a token with the scope it names. */
export function operatorCreditRoutes(
  ledger: Pick<ChatContext, 'pool' | 'db' | 'lane' | 'identity' | 'settings'>,
) {
  const { db, lane, identity, settings } = ledger;
  const notify = (account: string, name: string): void => {
    const userId = userOfAccount(account);
    if (!identity || userId === undefined) return;
    inBackground(identity, sendKeyMail(identity, userId, name), 'a mail about a new key could not be sent');
  };
  return async (app: FastifyInstance): Promise<void> => {
    const route = operatorRoutesOn(app, ledger);

    route('GET', '/operator/keys', 'keys:read', keysQuery, async ({ parsed, operator, request, reply }) => {
      const { account, ...page } = parsed;
      if (!mayUse(operator, account)) return sendRefusal(request, reply, 'forbidden');
      const accountId = account === undefined ? undefined : await findCreditAccount(ledger, account);
      if (account !== undefined && accountId === undefined)
        return sendRefusal(request, reply, 'account_not_found');
      const keys = await listApiKeys(db, { ...page, accountId, accounts: operator.accounts });
      return reply.send({ keys: keys.map(listedKeyJson) });
    });

    route(
      'POST',
      '/operator/keys',
      'keys:write',
      keyRequest,
      async ({ parsed, operator, request, reply }) => {
        const { account, name, models, cap, budget, days } = parsed;
        if (!mayUse(operator, account)) return sendRefusal(request, reply, 'forbidden');
        const nowMs = Date.now() + lane.state.clockOffsetMs;
        const { keyId, key } = await issueApiKey(ledger, {
          accountId: await openCreditAccount(ledger, account),
          name,
          models: models && [...new Set(models)],
          capMicros: cap === undefined ? undefined : parseCredit(cap),
          budget: budgetTerms(budget),
          expiresAt: days === undefined ? undefined : new Date(nowMs + days * dayMs),
          tokenId: operator.tokenId,
        });
        notify(account, name);
        const issued: IssuedKeyJson = { key_id: keyId, account, name, key };
        return reply.code(201).send(issued);
      },
    );

    route(
      'POST',
      '/operator/keys/:key_id/revoke',
      'keys:write',
      z.unknown(),
      async ({ param, operator, request, reply }) => {
        const keyId = idOf(param);
        const done = await revokeKey(ledger, {
          keyId,
          accounts: operator.accounts,
          tokenId: operator.tokenId,
        });
        if (!done) return sendRefusal(request, reply, 'key_not_found');
        return reply.send({ key_id: keyId, status: 'revoked' });
      },
    );

    route('GET', '/operator/accounts', 'credit:read', accountsQuery, async ({ parsed, operator, reply }) => {
      const accounts = await listAccounts(db, { ...parsed, names: operator.accounts });
      return reply.send({ accounts: accounts.map(accountJson) });
    });

    route(
      'POST',
      '/operator/accounts/:account/grants',
      'credit:write',
      grantRequest,
      async ({ parsed, param: account, operator, request, reply }) => {
        const requestId = request.headers['idempotency-key'];
        if (requestId !== undefined && !requestIdPattern.test(String(requestId)))
          return sendRefusal(request, reply, 'invalid_request', { context: { details: badRequestId } });
        if (!mayUse(operator, account)) return sendRefusal(request, reply, 'forbidden');
        const accountId = await findCreditAccount(ledger, account);
        if (accountId === undefined) return sendRefusal(request, reply, 'account_not_found');
        const amountMicros = parseCredit(parsed.amount) ?? 0n;
        const result = await grantCredit(ledger, accountId, amountMicros, {
          tokenId: operator.tokenId,
          requestId: requestId && String(requestId),
          currency: settings.currency,
        });
        if (result.kind === 'request_id_taken') return sendRefusal(request, reply, 'idempotency_conflict');
        if (result.kind === 'not_allowed') return sendRefusal(request, reply, 'account_full');
        return reply.send({ account, balance: creditText(result.balanceMicros) });
      },
    );
  };
}

/** Whether a token is for this account; for all accounts if none is named. The answer reveals no account's existence. */
function mayUse({ accounts }: OperatorToken, account: string | undefined): boolean {
  return accounts === undefined || account === undefined || accounts.includes(account);
}

function listedKeyJson(key: ListedKey): ListedKeyJson {
  return {
    key_id: key.keyId,
    account: key.account,
    ...keyFacts(key),
    revoked_at: key.revokedAt?.toISOString() ?? null,
  };
}

function accountJson(account: Account): AccountJson {
  return { account_id: account.accountId, account: account.name, ...creditsJson(account) };
}
