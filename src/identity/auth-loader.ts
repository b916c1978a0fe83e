import type { GenericOAuthConfig } from 'better-auth/plugins/generic-oauth';
import { z } from 'zod';
import type { ProviderConfig } from '../config/config.ts';
import { late, within } from '../runtime/within.ts';
import type { Auth } from './auth.ts';
import type { Identity } from './context.ts';

/** A provider that has just answered. */
export interface ReachedProvider extends ProviderConfig {
  /** How it wants to be told the client's secret. */
  readonly authentication: 'basic' | 'post';
}

/** better-auth with the providers that can be reached; those that could not are asked again when they are wanted. */
export interface AuthLoader {
  /** @param wantsProviders whether the request is of no use without them */
  load(wantsProviders: boolean): Promise<Auth>;
}

const discoveryTimeoutMs = 3_000;
const setUpTimeoutMs = 5_000;
const retryMs = 1_000;

/**
 * The library asks each provider once, when it is set up, without a time limit, and forgets for good who did not answer.
 * So it is only told of providers that have just answered, and set up again while some are missing.
 */
export function createAuthLoader(
  identity: Identity,
  createAuth: (identity: Identity, providers: readonly ReachedProvider[]) => Promise<Auth>,
): AuthLoader {
  const { providers } = identity.settings;
  let present: Promise<Auth> | undefined;
  let missing = 0;
  let builtAtMs = 0;

  const build = async (): Promise<Auth> => {
    builtAtMs = performance.now();
    const asked = providers.map((provider) => reach(identity, provider));
    const there = (await Promise.all(asked)).filter((provider) => provider !== undefined);
    missing = providers.length - there.length;
    const first = await within(setUpTimeoutMs, createAuth(identity, there));
    if (first !== late) return first;
    missing = providers.length;
    return createAuth(
      identity,
      there.filter(({ issuer }) => issuer === undefined),
    );
  };

  return {
    async load(wantsProviders) {
      const isDue = wantsProviders && missing > 0 && performance.now() - builtAtMs > retryMs;
      if (present && !isDue) return present;
      const building = build();
      // who needs no provider goes on with what there is
      present ??= building;
      try {
        await building;
        present = building;
      } catch (error) {
        if (present === building) present = undefined;
        throw error;
      }
      return building;
    },
  };
}

/** GitHub does not speak OpenID Connect; the library knows how it says which mail address is proven. */
export function githubIn(providers: readonly ReachedProvider[]) {
  const github = providers.find(({ issuer }) => issuer === undefined);
  if (!github) return {};
  const { clientId, clientSecret } = github;
  return { github: { clientId, clientSecret, disableIdTokenSignIn: true } };
}

export function oidcIn(providers: readonly ReachedProvider[]): GenericOAuthConfig[] {
  return providers.flatMap(({ name, issuer, clientId, clientSecret, authentication }) =>
    issuer === undefined
      ? []
      : [
          {
            providerId: name,
            discoveryUrl: discoveryUrl(issuer),
            clientId,
            clientSecret,
            authentication,
            scopes: ['openid', 'email', 'profile'],
            pkce: true,
            requireIdTokenVerification: true,
            disableProviderLogout: true,
            // some say "false" in quotes, which is not false
            mapProfileToUser: (profile) => ({ emailVerified: profile['email_verified'] === true }),
          },
        ],
  );
}

function discoveryUrl(issuer: string): string {
  return `${issuer}/.well-known/openid-configuration`;
}

const discovery = z.object({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  jwks_uri: z.url(),
  // the standard's own default
  token_endpoint_auth_methods_supported: z.array(z.string()).default(['client_secret_basic']),
});

/** The provider, if it answers now, and is who it is said to be. */
async function reach({ log }: Identity, provider: ProviderConfig): Promise<ReachedProvider | undefined> {
  const { name, issuer } = provider;
  if (issuer === undefined) return { ...provider, authentication: 'post' };
  try {
    const signal = AbortSignal.timeout(discoveryTimeoutMs);
    const response = await fetch(discoveryUrl(issuer), { signal, redirect: 'error' });
    const told = discovery.parse(await response.json());
    const takesBasic = told.token_endpoint_auth_methods_supported.includes('client_secret_basic');
    if (told.issuer.replace(/\/$/, '') === issuer)
      return { ...provider, authentication: takesBasic ? 'basic' : 'post' };
    log.warn({ provider: name }, 'an identity provider is not who the configuration says it is');
  } catch {
    log.warn({ provider: name }, 'an identity provider does not answer: nobody can sign in by it');
  }
  return undefined;
}
