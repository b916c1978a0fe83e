import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseCredit } from '../../../base/values/price.ts';
import type { Identity } from '../../../accounts/use-cases/context.ts';
import type { ChatContext } from '../../use-cases/context.ts';
import type { SessionUser } from '../../../accounts/use-cases/sessions.ts';
import {
  createUserApiKey,
  listUserApiKeys,
  revokeUserApiKey,
  revokeUserApiKeys,
  takeKeyTurn,
} from '../../../accounts/use-cases/user-api-keys.ts';
import { setUserWebhook } from '../../../accounts/use-cases/budget-alerts.ts';
import type { ApiKey } from '../../../accounts/store/api-keys.ts';
import { findAccountWebhook, setAccountWebhook } from '../../../accounts/store/budget-alerts.ts';
import { budgetTerms, keyFacts } from '../key-budget.ts';
import { sendRefusal } from '../../../ledger/http/errors.ts';
import { idOf } from '../../../base/http/request-values.ts';
import { guardForUsers } from '../../../accounts/http/session-user.ts';
import {
  type AlertWebhookJson,
  alertWebhookRequest,
  keyRequest,
  type MadeKeyJson,
  type RevokedKeysJson,
  type UserKeyJson,
} from '../../../accounts/http/schemas/identity.ts';

/** The API keys of a session's user. The user is taken from nothing but the session. */
export function apiKeyRoutes(identity: Identity, current: () => ChatContext) {
  return async (app: FastifyInstance): Promise<void> => {
    const { onRequest, userOf } = guardForUsers(identity);
    const route = (method: 'GET' | 'POST' | 'DELETE', url: string, handle: Handler): void => {
      app.route<{ Params: { key_id?: string } }>({
        method,
        url,
        onRequest,
        handler: async (request, reply) => {
          const [user, keyId] = [userOf(request), idOf(request.params.key_id)];
          return handle({ context: current(), user, request, reply, keyId });
        },
      });
    };

    route('GET', '/keys', async ({ context, user, reply }) =>
      reply.send({ keys: (await listUserApiKeys(context, user)).map(keyJson) }),
    );

    route('POST', '/keys', async ({ context, user, request, reply }) => {
      const body = keyRequest.safeParse(request.body);
      if (!body.success) return sendRefusal(request, reply, 'invalid_request');
      const { name, models, cap, budget: requested, expires_at: expires } = body.data;
      const unknown = models?.some((model) => !context.models.has(model)) ?? false;
      const expiresAt = expires === undefined ? undefined : new Date(expires);
      const nowMs = Date.now() + context.lane.state.clockOffsetMs;
      if (unknown || (expiresAt && expiresAt.getTime() <= nowMs))
        return sendRefusal(request, reply, 'invalid_request');
      const retryAfterSecs = await takeKeyTurn(identity, user, request.ip);
      if (retryAfterSecs > 0) return sendRefusal(request, reply, 'too_many_attempts', { retryAfterSecs });
      const capMicros = cap === undefined ? undefined : parseCredit(cap);
      const budget = budgetTerms(requested);
      const made = await createUserApiKey(context, user, { name, models, capMicros, budget, expiresAt });
      if (made.kind === 'too_many') return sendRefusal(request, reply, 'too_many_keys');
      const json: MadeKeyJson = { id: made.keyId, name, key: made.key };
      return reply.code(201).send(json);
    });

    route('GET', '/alert-webhook', async ({ context, user, reply }) => {
      const webhook = await findAccountWebhook(context.pool, user.accountId);
      const json: AlertWebhookJson = { url: webhook?.url ?? null };
      return reply.send(json);
    });

    route('POST', '/alert-webhook', async ({ user, request, reply }) => {
      const body = alertWebhookRequest.safeParse(request.body);
      const webhook = body.success ? await setUserWebhook(identity, user, body.data.url) : undefined;
      return webhook ? reply.send(webhook) : sendRefusal(request, reply, 'invalid_request');
    });

    route('DELETE', '/alert-webhook', async ({ context, user, reply }) => {
      await setAccountWebhook(context.pool, user.accountId, undefined);
      const json: AlertWebhookJson = { url: null };
      return reply.send(json);
    });

    route('DELETE', '/keys', async ({ context, user, reply }) => {
      const json: RevokedKeysJson = { revoked: await revokeUserApiKeys(context, user) };
      return reply.send(json);
    });

    route('DELETE', '/keys/:key_id', async ({ context, user, request, reply, keyId }) => {
      const done = await revokeUserApiKey(context, user, keyId);
      return done
        ? reply.send({ id: keyId, status: 'revoked' })
        : sendRefusal(request, reply, 'key_not_found');
    });
  };
}

type Handler = (args: {
  readonly context: ChatContext;
  readonly user: SessionUser;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly keyId: number;
}) => Promise<FastifyReply>;

function keyJson(key: ApiKey): UserKeyJson {
  return {
    id: key.keyId,
    ...keyFacts(key),
    revoked_at: key.revokedAt?.toISOString() ?? null,
    made_by: key.isOfUser ? 'user' : 'operator',
  };
}
