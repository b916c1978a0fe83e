import { betterAuth } from 'better-auth';
import { APIError, createAuthMiddleware, getSessionFromCtx } from 'better-auth/api';
import { hashPassword, verifyPassword } from 'better-auth/crypto';
import { getAdapter } from 'better-auth/db/adapter';
import type { BetterAuthOptions } from 'better-auth/types';
import { refusals } from '../../base/errors/refusal.ts';
import { isUserDisabled, markEmailProven, openIdentityDatabase } from '../store/identity.ts';
import { guardAdapter } from './auth-adapter.ts';
import { reportNewPassword, sendExistingMail, sendResetMail, sendVerificationMail } from './auth-mails.ts';
import type { Identity } from './context.ts';
import { inBackground } from '../../base/runtime/background.ts';
import { keepProvider, providersPlugin, type ReachedProvider } from './auth-providers.ts';
import type { PasswordSender } from './password-queue.ts';
import { cookiePrefix, freshSecs, isHttps, noteSession } from './sessions.ts';
import { isUnreachable } from './wallet-user.ts';

/** The part of better-auth that the gateway uses. */
export interface Auth {
  /** Answers a request below `/api/auth`. */
  handler(request: Request, sender: PasswordSender): Promise<Response>;
  /** Starts a session of a user; its token is returned only here. Undefined if an operator has disabled the user. */
  startSession(userId: string): Promise<StartedSession | undefined>;
}

export interface StartedSession {
  readonly token: string;
  readonly expiresAt: Date;
}

const backgroundFailed = 'a background task of sign-in failed';
const minPasswordChars = 10;
const daySecs = 86_400;

/**
 * Paths of the library that the gateway does not offer: listing sessions and ending one need their tokens, which are not
 * stored; providers' tokens are not stored; a signed-in user has no need to verify a password.
 */
const disabledPaths = [
  '/list-sessions',
  '/revoke-session',
  '/revoke-other-sessions',
  '/update-session',
  '/get-access-token',
  '/refresh-token',
  '/account-info',
  '/verify-password',
  '/change-email',
  '/delete-user',
  '/delete-user/callback',
];

/** What a client may set for a sign-in by a provider; other keys would change the request to the provider. */
const providerKeys = [
  'provider',
  'callbackURL',
  'errorCallbackURL',
  'newUserCallbackURL',
  'disableRedirect',
  'requestSignUp',
];

/** Sets better-auth up with these providers. */
export async function createAuth(identity: Identity, providers: readonly ReachedProvider[]): Promise<Auth> {
  const options = optionsOf(identity, providers);
  const database = openIdentityDatabase(identity.pool);
  const inner = await getAdapter({ ...options, database: { db: database, type: 'postgres' } });
  const auth = betterAuth({ ...options, database: () => guardAdapter(inner, identity) });
  const context = await auth.$context;
  return {
    handler: (request, sender) => identity.passwords.as(sender, () => auth.handler(request)),
    async startSession(userId) {
      try {
        const { token, expiresAt } = await context.internalAdapter.createSession(userId);
        return { token, expiresAt };
      } catch (error) {
        if (error instanceof APIError && error.body?.code === userDisabled) return undefined;
        throw error;
      }
    },
  };
}

function optionsOf(identity: Identity, providers: readonly ReachedProvider[]) {
  const { settings, publicUrl } = identity;
  return {
    appName: 'Tollbook',
    baseURL: publicUrl(),
    basePath: '/api/auth',
    // given as a list, no environment variable overrides it
    secrets: [{ version: 1, value: settings.secrets[0] }],
    trustedOrigins: [publicUrl(), ...settings.trustedOrigins],
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    // with a level set, the library would write to the console itself
    logger: { log: (level, message) => logFault(identity, level, message) },
    disabledPaths,
    // an answer of a provider that belongs to no sign-in of this browser does not name a page
    ...(identity.hasPages && { onAPIError: { errorURL: `${publicUrl()}/sign-in` } }),
    ...tables,
    session: {
      ...tables.session,
      expiresIn: settings.sessionDays * daySecs,
      disableSessionRefresh: true,
      freshAge: freshSecs,
    },
    user: { ...tables.user, validateUserInfo: ({ user, source }) => refuseUser(user, source) },
    verification: { ...tables.verification, storeIdentifier: 'hashed' },
    account: {
      ...tables.account,
      // only for an email that the provider has verified, and that was verified here too
      accountLinking: { enabled: true, trustedProviders: [], allowDifferentEmails: false },
    },
    emailAndPassword: passwordOptions(identity),
    emailVerification: {
      // the library would wait for the mail that another link is sent with: how long, or that it failed, tells who has an account
      sendVerificationEmail: async ({ user, url }) =>
        inBackground(identity, sendVerificationMail(identity, user.email, url), backgroundFailed),
      autoSignInAfterVerification: false,
      expiresIn: 3_600,
    },
    plugins: [providersPlugin(identity, providers)],
    databaseHooks: {
      user: {
        create: {
          before: async ({ name }) => ({ data: { name: shownName(name) } }),
        },
      },
      session: {
        create: {
          before: ({ userId }) => refuseDisabled(identity, userId),
          after: (session, context) => recordStart(identity, session, context),
        },
      },
    },
    hooks: {
      before: createAuthMiddleware(async (context) => {
        const { path, body } = context;
        const provider = checkedProvider(path, body);
        if (provider !== undefined) await keepProvider(provider);
        checkProfile(path, body);
        if (path === '/link-social') checkFreshness((await getSessionFromCtx(context))?.session);
      }),
    },
    advanced: {
      cookiePrefix: cookiePrefix(publicUrl()),
      // its own prefix would be the weaker `__Secure-`
      useSecureCookies: false,
      defaultCookieAttributes: {
        secure: isHttps(publicUrl()),
        httpOnly: true,
        sameSite: 'lax',
        path: '/',
      },
      ipAddress: { disableIpTracking: true },
      database: { generateId: 'uuid' },
      // set explicitly: the library switches them off when NODE_ENV is "test"
      disableOriginCheck: false,
      disableCSRFCheck: false,
      backgroundTasks: {
        handler: (work) => inBackground(identity, work, backgroundFailed),
      },
    },
  } satisfies BetterAuthOptions;
}

function passwordOptions(identity: Identity) {
  return {
    enabled: identity.mailer !== undefined,
    requireEmailVerification: true,
    autoSignIn: false,
    minPasswordLength: minPasswordChars,
    maxPasswordLength: 128,
    password: queuedPasswords(identity),
    resetPasswordTokenExpiresIn: 3_600,
    revokeSessionsOnPasswordReset: true,
    sendResetPassword: ({ user, url, token }) => sendResetMail(identity, user.email, url, token),
    onExistingUserSignUp: ({ user }) => sendExistingMail(identity, user.email),
    // a reset proves that the mail was read, as the verification link does
    onPasswordReset: async ({ user }) => {
      await markEmailProven(identity.pool, user.id);
      reportNewPassword(identity, user.id);
    },
  } satisfies BetterAuthOptions['emailAndPassword'];
}

/** Clients with many addresses can send more passwords than there are threads, which DNS look-ups need too. */
function queuedPasswords({ passwords }: Identity) {
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const done = await passwords.run(async () => ({ value: await work() }));
    if (!done) throw APIError.fromStatus('SERVICE_UNAVAILABLE');
    return done.value;
  };
  return {
    hash: (password: string) => inTurn(() => hashPassword(password)),
    verify: (attempt: { readonly hash: string; readonly password: string }) =>
      inTurn(() => verifyPassword(attempt)),
  };
}

/** A new user needs a deliverable email address, and a provider must have verified it. */
function refuseUser(
  user: { readonly email?: string | undefined; readonly emailVerified?: boolean | undefined },
  { action, method }: { readonly action: string; readonly method: string },
) {
  if (method === 'oauth' && action !== 'sign-in' && user.emailVerified !== true)
    return { error: 'email_not_verified' };
  if (user.email === undefined || user.email.length > 254 || isUnreachable(user.email))
    return { error: 'email_not_allowed' };
}

/** The provider that a sign-in is to begin with; undefined for every other request. */
function checkedProvider(path: string, body: unknown): string | undefined {
  if (path !== '/sign-in/social' && path !== '/link-social') return undefined;
  const sent: Readonly<Record<string, unknown>> = Object(body);
  const keys = Object.keys(sent);
  if (keys.some((key) => !providerKeys.includes(key)))
    throw APIError.fromStatus('BAD_REQUEST', {
      message: `takes ${providerKeys.join(', ')} and nothing else`,
    });
  return typeof sent['provider'] === 'string' ? sent['provider'] : undefined;
}

/** The library asks for a recent sign-in to remove a way to sign in, but not to add one. */
function checkFreshness(session: { readonly createdAt: Date } | undefined): void {
  if (session && Date.now() - session.createdAt.getTime() >= freshSecs * 1_000)
    throw APIError.fromStatus('FORBIDDEN', {
      code: 'SESSION_NOT_FRESH',
      message: 'Sign in again first: a way to sign in is added within ten minutes of a sign-in.',
    });
}

/** A name as a provider sends it may have any length, and marks of which the database does not take all. */
function shownName(name: string): string {
  const line = name.replaceAll(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, ' ').trim();
  return /^.{0,100}/u.exec(line)?.[0] ?? '';
}

/** Allows a name that fits on a line, and no picture: its URL could point anywhere. */
function checkProfile(path: string, body: unknown): void {
  if (path !== '/sign-up/email' && path !== '/update-user') return;
  const { name, image } = Object(body) as { readonly name?: unknown; readonly image?: unknown };
  const isShown = typeof name !== 'string' || /^\P{Cc}{1,100}$/u.test(name);
  if (!isShown || image != null)
    throw APIError.fromStatus('BAD_REQUEST', {
      message: 'The name must have 1 to 100 characters on one line, and no picture is accepted.',
    });
}

const userDisabled = 'USER_DISABLED';

/** Every way to sign in creates a session, and asks here. */
async function refuseDisabled({ pool }: Identity, userId: string): Promise<void> {
  if (await isUserDisabled(pool, userId))
    throw APIError.fromStatus('FORBIDDEN', {
      code: userDisabled,
      message: refusals.user_disabled.sentence,
    });
}

async function recordStart(
  identity: Identity,
  { id, userId, expiresAt }: { readonly id: string; readonly userId: string; readonly expiresAt: Date },
  context: {
    readonly path?: string | undefined;
    readonly params?: Readonly<Record<string, string | undefined>> | undefined;
  } | null,
): Promise<void> {
  const isProvider = context?.path?.startsWith('/callback/') ?? false;
  const method = isProvider ? 'provider' : context ? 'password' : 'wallet';
  const provider = isProvider ? context?.params?.['id'] : undefined;
  await noteSession(identity, { sessionId: id, userId, method, provider, expiresAt });
}

/** The library's messages may contain an email address: only messages that cannot are logged. */
function logFault({ log }: Identity, level: string, message: string): void {
  if (level !== 'error') return;
  const text = /^[\w .,:;'"()/-]{1,200}$/.test(message)
    ? message
    : 'a message that may contain personal data';
  log.warn({ text }, 'better-auth reported a fault');
}

/** The names of better-auth's tables and columns in this database. */
const tables = {
  user: { fields: { emailVerified: 'email_verified', createdAt: 'created_at', updatedAt: 'updated_at' } },
  session: {
    fields: {
      userId: 'user_id',
      expiresAt: 'expires_at',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
      ipAddress: 'ip_address',
      userAgent: 'user_agent',
    },
  },
  account: {
    modelName: 'credential',
    fields: {
      userId: 'user_id',
      accountId: 'account_id',
      providerId: 'provider_id',
      accessToken: 'access_token',
      refreshToken: 'refresh_token',
      idToken: 'id_token',
      accessTokenExpiresAt: 'access_token_expires_at',
      refreshTokenExpiresAt: 'refresh_token_expires_at',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
    },
  },
  verification: {
    fields: { expiresAt: 'expires_at', createdAt: 'created_at', updatedAt: 'updated_at' },
  },
} as const;
