import type { FastifyInstance } from 'fastify';
import type { IdentityConfig, ChatConfig } from '../config/config.ts';
import { createPromiseTracker } from '../runtime/promise-tracker.ts';
import type { FeatureParts } from './feature.ts';
import { identityRoutes } from '../http/identity/routes.ts';
import { createContractSignatureChecker } from '../peers/rpc/contract-signature.ts';
import { createFolderMailer } from '../peers/mail/mailer.ts';
import { createAuth } from '../identity/auth.ts';
import { createAuthLoader } from '../identity/auth-loader.ts';
import type { Identity } from '../identity/context.ts';
import type { ChatContext } from '../chat/context.ts';
import { pruneSessions } from '../identity/sessions.ts';
import { sweepIdentity } from '../store/identity.ts';
import { type Loop, startLoop } from '../workers/loop.ts';

const sweepMs = 60_000;
const piece = 100;

export type RunningIdentity = ReturnType<typeof composeIdentity>;

/** People's accounts beside model chat: signing in, sessions, their keys. */
export function composeIdentity(
  { ledger, logger, publicUrl, mailer, settings: chat }: FeatureParts & { readonly settings: ChatConfig },
  settings: IdentityConfig,
) {
  const { mailDir } = settings;
  const identity: Identity = {
    settings,
    pool: ledger.pool,
    lane: ledger.lane,
    publicUrl,
    ipv6Prefix: chat.ipv6Prefix,
    mailer: mailer ?? (mailDir === undefined ? undefined : createFolderMailer(mailDir)),
    contractSignatures: createContractSignatureChecker({ timeoutMs: 3_000, gasCap: 500_000 }),
    running: createPromiseTracker(),
    log: logger,
  };
  const door = createAuthLoader(identity, createAuth);
  const loops: Loop[] = [];
  return {
    identity,
    async register(app: FastifyInstance, current: () => ChatContext): Promise<void> {
      await app.register(identityRoutes(identity, door, current));
    },
    startWorkers(): void {
      // providers are asked who they are before the first person comes
      door
        .load(false)
        .catch((err: unknown) =>
          logger.error({ err }, 'signing in could not be set up: tried again when wanted'),
        );
      loops.push(
        startLoop(
          async () => {
            const swept = await pruneSessions(identity, piece);
            return swept + (await sweepIdentity(identity.pool, piece)) > 0;
          },
          { pollMs: sweepMs, log: logger, failureMessage: 'expired sessions could not be pruned' },
        ),
      );
    },
    async finish(): Promise<void> {
      await identity.running.drained();
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    stop: (): Promise<void> => identity.contractSignatures.close(),
  };
}
