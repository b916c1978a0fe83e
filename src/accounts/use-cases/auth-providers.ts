import type { BetterAuthPlugin } from 'better-auth/types';
import { addOAuthServerContext, getOAuthState } from 'better-auth/api';
import {
  createAuthorizationURL,
  type OAuthProvider,
  validateAuthorizationCode,
  validateToken,
} from 'better-auth/oauth2';
import { z } from 'zod';
import type { ProviderConfig } from '../../base/config/config.ts';
import { jsonValue } from '../../base/values/bounded-json.ts';
import { createHttpPool } from '../../base/peers/http/http.ts';
import type { Identity } from './context.ts';

/** An identity provider that has just answered. */
export interface ReachedProvider extends ProviderConfig {
  /** An OpenID provider's metadata; read once, so that the checked text is the used text. */
  readonly metadata?: Metadata;
}

const timeoutMs = 3_000;
const maxResponseBytes = 262_144;

const discovery = z.object({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  jwks_uri: z.url(),
  userinfo_endpoint: z.url().optional(),
  // the default of OpenID Connect Discovery
  token_endpoint_auth_methods_supported: z.array(z.string()).default(['client_secret_basic']),
});

type Metadata = z.output<typeof discovery>;

const person = z.object({
  email: z.string().optional(),
  // some providers send the string "false", which is truthy
  email_verified: z.unknown().optional(),
  name: z.string().optional(),
});

const idTokenClaims = person.extend({
  sub: z.string().min(1).max(255),
  nonce: z.string(),
  exp: z.number(),
  azp: z.string().optional(),
});

type Claims = z.output<typeof idTokenClaims>;

/** GitHub has no OpenID Connect; better-auth knows how GitHub reports which email address is verified. */
export function githubIn(providers: readonly ReachedProvider[]) {
  const github = providers.find(({ issuer }) => issuer === undefined);
  if (!github) return {};
  const { clientId, clientSecret } = github;
  return { github: { clientId, clientSecret, disableIdTokenSignIn: true } };
}

/** The origins of the issuers: known without asking them, and those at which most of them sign people in. */
export function issuerOrigins(providers: readonly ProviderConfig[]): readonly string[] {
  const places = providers.map(({ issuer = 'https://github.com' }) => new URL(issuer).origin);
  return [...new Set(places)];
}

/**
 * The OpenID providers. Not the library's own plugin: that one reads the metadata once more without comparing the issuer, and
 * where a provider sends no ID token it believes whatever the userinfo endpoint says.
 */
export function openIdPlugin(
  { log }: Pick<Identity, 'log'>,
  providers: readonly ReachedProvider[],
): BetterAuthPlugin {
  const reached = providers.flatMap((provider) =>
    provider.metadata ? [openIdProvider(log, provider, provider.metadata)] : [],
  );
  return {
    id: 'openid',
    init: ({ socialProviders }) => ({
      context: { socialProviders: [...reached, ...socialProviders].map(boundToState) },
    }),
  };
}

/** Adds to the state of a sign-in the provider with which it was begun. */
export async function keepProvider(provider: string): Promise<void> {
  await addOAuthServerContext({ provider });
}

/** The library takes any provider's answer to a state: the code of one provider would be sent to another one. */
function boundToState(provider: OAuthProvider): OAuthProvider {
  return {
    ...provider,
    async validateAuthorizationCode(answer) {
      const state = await getOAuthState();
      if (state?.serverContext?.['provider'] !== provider.id) return null;
      return provider.validateAuthorizationCode(answer);
    },
  };
}

function openIdProvider(log: Identity['log'], provider: ProviderConfig, metadata: Metadata): OAuthProvider {
  const { name, clientId, clientSecret } = provider;
  const takesBasic = metadata.token_endpoint_auth_methods_supported.includes('client_secret_basic');
  const own: OAuthProvider<Claims> = {
    id: name,
    name,
    issuer: metadata.issuer,
    requiresIdTokenNonce: true,
    accountSubject: ({ profile }) => profile.sub,
    createAuthorizationURL: ({ state, codeVerifier, redirectURI, idTokenNonce }) =>
      createAuthorizationURL({
        id: name,
        options: { clientId, clientSecret },
        authorizationEndpoint: metadata.authorization_endpoint,
        scopes: ['openid', 'email', 'profile'],
        state,
        codeVerifier,
        redirectURI,
        nonce: idTokenNonce,
      }),
    validateAuthorizationCode: ({ code, codeVerifier, redirectURI }) =>
      validateAuthorizationCode({
        code,
        codeVerifier,
        redirectURI,
        options: { clientId, clientSecret },
        tokenEndpoint: metadata.token_endpoint,
        authentication: takesBasic ? 'basic' : 'post',
      }),
    async getUserInfo({ idToken, accessToken, expectedIdTokenNonce }) {
      const claims = await verifiedClaims(provider, metadata, idToken, expectedIdTokenNonce);
      if (!claims) {
        log.warn({ provider: name }, 'an identity provider sent no valid ID token: the sign-in was refused');
        return null;
      }
      const from = claims.email === undefined ? await userInfo(metadata, claims.sub, accessToken) : claims;
      const user = { name: from?.name, email: from?.email, emailVerified: from?.email_verified === true };
      return { user, data: claims };
    },
  };
  return own;
}

/** Undefined unless the provider has signed the token for this client and this sign-in. */
async function verifiedClaims(
  { clientId }: ProviderConfig,
  { issuer, jwks_uri }: Metadata,
  idToken: string | undefined,
  nonce: string | undefined,
): Promise<Claims | undefined> {
  if (idToken === undefined || nonce === undefined) return undefined;
  try {
    const { payload } = await validateToken(idToken, jwks_uri, { issuer, audience: clientId });
    const claims = idTokenClaims.parse(payload);
    const isForThis = claims.nonce === nonce && (claims.azp ?? clientId) === clientId;
    return isForThis ? claims : undefined;
  } catch {
    return undefined;
  }
}

/** What the provider says about a user whose ID token has no email address; undefined where that is about another user. */
async function userInfo({ userinfo_endpoint }: Metadata, sub: string, accessToken: string | undefined) {
  if (userinfo_endpoint === undefined || accessToken === undefined) return undefined;
  const answer = await readJson(userinfo_endpoint, { authorization: `Bearer ${accessToken}` });
  const info = person.extend({ sub: z.literal(sub) }).safeParse(answer);
  return info.data;
}

/** The provider; undefined when it does not answer now, or its issuer is not the configured one. */
export async function reachProvider(
  { log }: Pick<Identity, 'log'>,
  provider: ProviderConfig,
): Promise<ReachedProvider | undefined> {
  const { name, issuer } = provider;
  if (issuer === undefined) return provider;
  const answer = discovery.safeParse(await readJson(`${issuer}/.well-known/openid-configuration`));
  if (!answer.success) {
    log.warn({ provider: name }, 'an identity provider does not answer: users cannot sign in through it');
    return undefined;
  }
  const metadata = answer.data;
  if (metadata.issuer.replace(/\/$/, '') !== issuer) {
    log.warn(
      { provider: name },
      'an identity provider reports another issuer than the configured one: it is not used',
    );
    return undefined;
  }
  const { authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint } = metadata;
  const endpoints = [authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint ?? issuer];
  if (issuer.startsWith('https:') && !endpoints.every((url) => url.startsWith('https:'))) {
    log.warn({ provider: name }, 'an identity provider names endpoints without https: it is not used');
    return undefined;
  }
  return { ...provider, metadata };
}

/** The JSON of a 200; no redirect is followed. Undefined for every other answer. */
async function readJson(url: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const { pathname, search } = new URL(url);
  const pool = createHttpPool(url, { connections: 1 });
  const answer = await pool.request({
    method: 'GET',
    path: pathname + search,
    headers: { accept: 'application/json', ...headers },
    timeoutMs,
    maxResponseBytes,
  });
  await pool.close();
  return answer.kind === 'response' && answer.status === 200 ? jsonValue(answer.body) : undefined;
}
