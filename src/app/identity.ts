import { isDeepStrictEqual } from 'node:util';
import type { IdentityConfig } from '../base/config/config.ts';
import { createPromiseTracker } from '../base/runtime/promise-tracker.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { identityRoutes } from '../chat/http/identity/routes.ts';
import { createContractSignatureChecker } from '../base/peers/rpc/contract-signature.ts';
import { createFolderMailer, type Mailer } from '../base/peers/mail/mailer.ts';
import { createSmtpMailer } from '../base/peers/mail/smtp.ts';
import { sendBudgetAlerts } from '../accounts/use-cases/budget-alerts.ts';
import { createAuth } from '../accounts/use-cases/auth.ts';
import { type AuthLoader, createAuthLoader } from '../accounts/use-cases/auth-loader.ts';
import { guessConditions } from '../accounts/use-cases/factor-guesses.ts';
import { createPasswordQueue } from '../accounts/use-cases/password-queue.ts';
import type { Identity } from '../accounts/use-cases/context.ts';
import type { ChatContext } from '../chat/use-cases/context.ts';
import { createEventAllowance } from '../ledger/store/event-allowance.ts';
import { createRequestTally } from '../ledger/store/request-tally.ts';
import { startRequestCounter } from '../jobs/workers/request-counter.ts';
import { pruneSessions } from '../accounts/use-cases/sessions.ts';
import { type Loop, startLoop } from '../ledger/workers/loop.ts';

const passwordsAtOnce = 2;
const passwordWaitMs = 3_000;
const pruneMs = 60_000;
const budgetsMs = 2_000;
const piece = 100;
/** Without the feature chat, whose key says it otherwise. */
const ipv6Prefix = 64;

/** User accounts: sign-in, sessions, API keys. */
export async function createIdentity(
  { config, ledger, logger, budget, publicUrl, mailer }: FeatureParts,
  current: () => IdentityConfig,
): Promise<Identity> {
  const { quoteEventsPerSec } = config.limits;
  const asking = { pool: ledger.pool, log: logger };
  const refusalEvents = await createEventAllowance(asking, 'refused_sign_in', quoteEventsPerSec);
  const sessionEvents = {
    strangers: await createEventAllowance(asking, 'session', quoteEventsPerSec),
    customers: await createEventAllowance(asking, 'customer_session', quoteEventsPerSec),
  };
  return {
    get settings() {
      return current();
    },
    pool: ledger.pool,
    lane: ledger.lane,
    publicUrl,
    loopbackWebhooks: config.loopbackWebhooks,
    ipv6Prefix: config.chat?.ipv6Prefix ?? ipv6Prefix,
    mailer: mailer ?? configuredMailer(current()),
    hasPages: config.pages !== undefined,
    hasConsole: config.console !== undefined,
    budget,
    passwords: createPasswordQueue({ places: passwordsAtOnce, waitMs: passwordWaitMs }),
    refusalEvents,
    sessionEvents,
    keyEvents: await createEventAllowance(asking, 'key', quoteEventsPerSec),
    requestTally: createRequestTally(),
    contractSignatures: createContractSignatureChecker({ timeoutMs: 3_000, gasCap: 500_000 }),
    running: createPromiseTracker(),
    log: logger,
  };
}

function configuredMailer({ mailDir, smtp }: IdentityConfig): Mailer | undefined {
  if (smtp) return createSmtpMailer(smtp);
  return mailDir === undefined ? undefined : createFolderMailer(mailDir);
}

/** Routes and workers of user accounts. */
export function composeIdentity(
  identity: Identity,
  putInForce: (settings: IdentityConfig) => void,
  current: (() => ChatContext) | undefined,
): RunningFeature & { readonly auth: AuthLoader } {
  const { log } = identity;
  const auth = createAuthLoader(identity, createAuth);
  const loops: Loop[] = [];
  return {
    auth,
    async register(app) {
      await app.register(identityRoutes(identity, auth, current));
    },
    prepareReload({ identity: next = identity.settings }) {
      const isNew = !isDeepStrictEqual(next.secrets, identity.settings.secrets);
      return {
        putInForce() {
          putInForce(next);
          if (isNew) auth.forget();
        },
      };
    },
    startOwnLoops() {
      loops.push(startRequestCounter(identity));
      // reads the providers' metadata before the first user signs in
      auth
        .load(false)
        .catch((err: unknown) =>
          log.error({ err }, 'sign-in could not be set up; the next sign-in tries again'),
        );
    },
    startWorkers() {
      loops.push(
        startLoop(async () => (await pruneSessions(identity, piece)) > 0, {
          pollMs: pruneMs,
          log,
          failureMessage: 'expired sessions could not be pruned',
        }),
        ...(['mail', 'webhook'] as const).map((channel) =>
          startLoop(() => sendBudgetAlerts(identity, channel), {
            pollMs: budgetsMs,
            log,
            failureMessage: 'messages about budgets could not be read',
            fields: { channel },
          }),
        ),
      );
    },
    conditions: () => guessConditions(identity),
    async finish() {
      await identity.running.drained();
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    async stop() {
      await identity.contractSignatures.close();
      await identity.mailer?.close?.();
    },
  };
}
