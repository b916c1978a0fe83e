import type { FastifyInstance, FastifyReply } from 'fastify';
import { creditText } from '../../base/values/price.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { readGeneration } from '../use-cases/generation.ts';
import type { ChatContext } from '../use-cases/context.ts';
import type { ApiKey } from '../../accounts/store/api-keys.ts';
import { type Account, findAccount } from '../../accounts/store/credit.ts';
import { accountOf, keyOf } from './credentials.ts';
import { sendOpenAiError } from '../../ledger/http/openai-errors.ts';
import { sendGenerations, sendGenerationsCsv } from './generations.ts';
import { keyFacts } from './key-budget.ts';
import { type Asked, sendUsage, sendUsageCsv } from './usage.ts';
import { type CreditsJson, generationQuery, type KeyStateJson } from './schemas/credit.ts';

/** The values that a caller may read: its account's credit, its completions, and its key's remaining amount. */
export function creditRoutes(current: () => ChatContext) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/key', async (request, reply) => {
      const context = current();
      const caller = await keyOf(context, request);
      if (caller.kind === 'refused') return sendOpenAiError(request, reply, caller.error, caller);
      const account = await openedAccount(context, caller.key.accountId);
      return reply.header('cache-control', 'no-store').send(keyJson(context, caller.key, account));
    });
    const route = (path: string, handle: Handler): void => {
      app.get(path, async (request, reply) => {
        const context = current();
        const account = await accountOf(context, request);
        if (account.kind === 'refused') return sendOpenAiError(request, reply, account.error, account);
        reply.header('cache-control', 'no-store');
        return handle({ context, accountId: account.accountId, request, reply });
      });
    };

    route('/credits', async ({ context, accountId, reply }) =>
      reply.send(creditsJson(await openedAccount(context, accountId))),
    );
    route('/usage', sendUsage);
    route('/usage.csv', sendUsageCsv);
    route('/generations', sendGenerations);
    route('/generations.csv', sendGenerationsCsv);
    route('/generation', async ({ context, accountId, request, reply }) => {
      const { data: query } = generationQuery.safeParse(request.query);
      const generation = query && (await readGeneration(context, { accountId }, query.id));
      // a completion of another account looks like an unknown one
      return generation ? reply.send(generation) : sendOpenAiError(request, reply, openAiError('not_found'));
    });
  };
}

type Handler = (asked: Asked) => Promise<FastifyReply>;

async function openedAccount({ db }: ChatContext, accountId: number): Promise<Account> {
  const account = await findAccount(db, { accountId });
  if (!account) throw new Error(`the account ${accountId} of a valid caller does not exist`);
  return account;
}

export function creditsJson(account: Account): CreditsJson {
  return {
    balance: creditText(BigInt(account.balanceMicros)),
    held: creditText(BigInt(account.heldMicros)),
    total_used: creditText(BigInt(account.usedMicros)),
  };
}

function keyJson({ settings }: ChatContext, key: ApiKey, { balanceMicros }: Account): KeyStateJson {
  const { capMicros, spentMicros, budget } = key;
  const left = [
    balanceMicros,
    capMicros === undefined ? balanceMicros : Math.max(0, capMicros - spentMicros),
    budget === undefined ? balanceMicros : budget.micros - budget.spentMicros,
  ];
  return {
    id: key.keyId,
    ...keyFacts(key),
    remaining: creditText(BigInt(Math.min(...left))),
    currency: settings.currency,
    requests_per_minute: settings.keyPerMinute,
  };
}
