import type { FastifyInstance } from 'fastify';
import type { RefusalCode } from '../../../base/errors/refusal.ts';
import { parseAddress } from '../../../base/values/primitives.ts';
import type { Identity } from '../../../accounts/use-cases/context.ts';
import {
  issueLinkTerms,
  type LinkAnswer,
  linkUserWallet,
  type UnlinkAnswer,
  unlinkUserWallet,
} from '../../../accounts/use-cases/link-wallet.ts';
import { takeAttempt } from '../../../accounts/use-cases/sign-in-limits.ts';
import { listWallets } from '../../../accounts/store/sign-in-ways.ts';
import {
  type LinkedWalletJson,
  siweVerify,
  type WalletTermsJson,
} from '../../../accounts/http/schemas/identity.ts';
import { sendRefusal } from '../../../ledger/http/errors.ts';
import { addressOf } from '../../../base/http/request-values.ts';
import { termsJson, whyRefused } from '../../../accounts/http/siwe.ts';
import { guardForUsers } from '../../../accounts/http/session-user.ts';

/** The wallets of a session's user, with which they can sign in. */
export function walletRoutes(identity: Identity) {
  return async (app: FastifyInstance): Promise<void> => {
    const { onRequest, userOf } = guardForUsers(identity);
    app.addHook('onRequest', onRequest);

    app.get('/wallets', async (request, reply) => {
      const wallets = await listWallets(identity.pool, userOf(request).userId);
      return reply.send({
        wallets: wallets.map(({ address, chainId, addedAt }) => ({
          ...walletJson(address, chainId),
          added_at: addedAt.toISOString(),
        })),
      });
    });

    app.post('/wallets/nonce', async (request, reply) => {
      const retryAfterSecs = await takeAttempt(identity, addressOf(request), { kind: 'nonce' });
      if (retryAfterSecs > 0) return sendRefusal(request, reply, 'too_many_attempts', { retryAfterSecs });
      const answer = await issueLinkTerms(identity, userOf(request), request.headers.origin);
      if (answer.kind === 'stale') return sendRefusal(request, reply, 'session_not_fresh');
      const { statement } = answer.terms;
      const terms: WalletTermsJson = { ...termsJson(answer.terms), statement };
      return reply.send(terms);
    });

    app.post('/wallets', async (request, reply) => {
      const body = siweVerify.safeParse(request.body);
      if (!body.success) return sendRefusal(request, reply, 'invalid_request');
      const answer = await linkUserWallet(identity, userOf(request), body.data, addressOf(request));
      if (answer.kind === 'linked')
        return reply.code(201).send(walletJson(answer.wallet.address, answer.wallet.contractOn ?? 0));
      const { code, ...more } = linkRefusals[answer.kind];
      const why = answer.kind === 'refused' ? whyRefused(answer) : {};
      return sendRefusal(request, reply, code, { ...more, ...why });
    });

    app.delete<{ Params: { address: string } }>('/wallets/:address', async (request, reply) => {
      const address = parseAddress(request.params.address);
      if (address === undefined) return sendRefusal(request, reply, 'wallet_not_found');
      const { kind } = await unlinkUserWallet(identity, userOf(request), address);
      if (kind === 'removed') return reply.send({ address, status: 'removed' });
      return sendRefusal(request, reply, unlinkRefusals[kind]);
    });
  };
}

/** What a wallet that was not added is refused with; the pages say it with the same codes. */
export const linkRefusals: Readonly<
  Record<
    Exclude<LinkAnswer['kind'], 'linked'>,
    { readonly code: RefusalCode; readonly retryAfterSecs?: number }
  >
> = {
  refused: { code: 'siwe_mismatch' },
  taken: { code: 'wallet_taken' },
  stale: { code: 'session_not_fresh' },
  limited: { code: 'too_many_attempts', retryAfterSecs: 60 },
  unavailable: { code: 'sign_in_unavailable', retryAfterSecs: 2 },
};

export const unlinkRefusals: Readonly<Record<Exclude<UnlinkAnswer['kind'], 'removed'>, RefusalCode>> = {
  last: 'last_way_to_sign_in',
  unknown: 'wallet_not_found',
  stale: 'session_not_fresh',
};

/** A chain is named only for a contract. */
function walletJson(address: string, chainId: number): LinkedWalletJson {
  return { address, contract_on: chainId === 0 ? null : chainId };
}
