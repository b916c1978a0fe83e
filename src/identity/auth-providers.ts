import type { GenericOAuthConfig } from 'better-auth/plugins/generic-oauth';
import { z } from 'zod';
import type { ProviderConfig } from '../config/config.ts';
import type { Identity } from './context.ts';

/** An identity provider that has just answered. */
export interface ReachedProvider extends ProviderConfig {
  /** How the provider accepts the client's secret. */
  readonly authentication: 'basic' | 'post';
}

const discoveryTimeoutMs = 3_000;

/** GitHub has no OpenID Connect; better-auth knows how GitHub reports which email address is verified. */
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
            // some providers send the string "false", which is truthy
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
  // the default of OpenID Connect Discovery
  token_endpoint_auth_methods_supported: z.array(z.string()).default(['client_secret_basic']),
});

/** The provider; undefined when it does not answer now, or its issuer is not the configured one. */
export async function reachProvider(
  { log }: Pick<Identity, 'log'>,
  provider: ProviderConfig,
): Promise<ReachedProvider | undefined> {
  const { name, issuer } = provider;
  if (issuer === undefined) return { ...provider, authentication: 'post' };
  try {
    const signal = AbortSignal.timeout(discoveryTimeoutMs);
    const response = await fetch(discoveryUrl(issuer), { signal, redirect: 'error' });
    const metadata = discovery.parse(await response.json());
    const takesBasic = metadata.token_endpoint_auth_methods_supported.includes('client_secret_basic');
    if (metadata.issuer.replace(/\/$/, '') === issuer)
      return { ...provider, authentication: takesBasic ? 'basic' : 'post' };
    log.warn({ provider: name }, 'an identity provider reports another issuer than the configured one');
  } catch {
    log.warn({ provider: name }, 'an identity provider does not answer: users cannot sign in through it');
  }
  return undefined;
}
