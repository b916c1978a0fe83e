import type { BetterAuthPlugin } from 'better-auth/types';
import { addOAuthServerContext, getOAuthState } from 'better-auth/api';
import {
  authorizationCodeRequest,
  createAuthorizationURL,
  getOAuth2Tokens,
  type OAuthProvider,
  verifyJwsAccessToken,
} from 'better-auth/oauth2';
import { z } from 'zod';
import type { ProviderConfig } from '../../base/config/config.ts';
import { askProvider } from '../peers/provider-answers.ts';
import type { Identity } from './context.ts';

/** An identity provider that has just answered. */
export interface ReachedProvider extends ProviderConfig {
  /** An OpenID provider's metadata; read once, so that the checked text is the used text. */
  readonly metadata?: Metadata;
}

const metadataTimeoutMs = 3_000;

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

/** The library reads the keys that a token names. */
const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

type Claims = z.output<typeof idTokenClaims>;

/** The origins of the issuers: known without asking them, and those at which most of them sign people in. */
export function issuerOrigins(providers: readonly ProviderConfig[]): readonly string[] {
  const places = providers.map(({ issuer = 'https://github.com' }) => new URL(issuer).origin);
  return [...new Set(places)];
}

/**
 * The providers. Not the library's own plugin for OpenID: that one reads the metadata once more without comparing the issuer, and
 * if a provider sends no ID token it believes whatever the userinfo endpoint says.
 */
export function providersPlugin(
  { log }: Pick<Identity, 'log'>,
  providers: readonly ReachedProvider[],
): BetterAuthPlugin {
  const socialProviders = providers
    .map((provider): OAuthProvider =>
      provider.metadata ? openIdProvider(log, provider, provider.metadata) : githubProvider(provider),
    )
    .map(boundToState);
  return { id: 'providers', init: () => ({ context: { socialProviders } }) };
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
    validateAuthorizationCode: (brought) =>
      tokensFor(provider, brought, metadata.token_endpoint, takesBasic ? 'basic' : 'post'),
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
    const payload = await verifyJwsAccessToken(idToken, {
      jwksFetch: async () => keySet.parse(await askProvider(jwks_uri)),
      verifyOptions: { issuer, audience: clientId },
    });
    const claims = idTokenClaims.parse(payload);
    const isForThis = claims.nonce === nonce && (claims.azp ?? clientId) === clientId;
    return isForThis ? claims : undefined;
  } catch {
    return undefined;
  }
}

/** What the provider says about a user whose ID token has no email address; undefined if that is about another user. */
async function userInfo({ userinfo_endpoint }: Metadata, sub: string, accessToken: string | undefined) {
  if (userinfo_endpoint === undefined || accessToken === undefined) return undefined;
  const answer = await askProvider(userinfo_endpoint, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
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
  const place = `${issuer}/.well-known/openid-configuration`;
  const answer = discovery.safeParse(await askProvider(place, { timeoutMs: metadataTimeoutMs }));
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

const github = {
  authorize: 'https://github.com/login/oauth/authorize',
  token: 'https://github.com/login/oauth/access_token',
  user: 'https://api.github.com/user',
} as const;

const account = z.object({
  id: z.number(),
  login: z.string(),
  name: z.string().nullish(),
  email: z.string().nullish(),
});

type Account = z.output<typeof account>;

const addresses = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));

/**
 * GitHub, which has no OpenID Connect. Not the library's own: that one reads answers of any length, and asks for as long as they take.
 * @param places its addresses
 */
export function githubProvider(
  config: Pick<ProviderConfig, 'clientId' | 'clientSecret'>,
  places: Readonly<Record<keyof typeof github, string>> = github,
): OAuthProvider<Account> {
  const { clientId, clientSecret } = config;
  return {
    id: 'github',
    name: 'GitHub',
    accountSubject: ({ profile }) => profile.id,
    createAuthorizationURL: ({ state, codeVerifier, redirectURI }) =>
      createAuthorizationURL({
        id: 'github',
        options: { clientId, clientSecret },
        authorizationEndpoint: places.authorize,
        scopes: ['read:user', 'user:email'],
        state,
        codeVerifier,
        redirectURI,
      }),
    validateAuthorizationCode: (brought) => tokensFor(config, brought, places.token, 'post'),
    async getUserInfo({ accessToken }) {
      if (accessToken === undefined) return null;
      const headers = { authorization: `Bearer ${accessToken}`, 'user-agent': 'tollbook' };
      const profile = account.safeParse(await askProvider(places.user, { headers }));
      if (!profile.success) return null;
      const known = addresses.safeParse(await askProvider(`${places.user}/emails`, { headers })).data;
      const { login, name } = profile.data;
      const email = profile.data.email || known?.find(({ primary }) => primary)?.email;
      const isVerified = known?.find((address) => address.email === email)?.verified === true;
      return { user: { name: name || login, email, emailVerified: isVerified }, data: profile.data };
    },
  };
}

const tokenAnswer = z.object({
  token_type: z.string().optional(),
  access_token: z.string().optional(),
  id_token: z.string().optional(),
  scope: z.string().optional(),
});

/** What a browser brought back from a provider. */
interface BroughtCode {
  readonly code: string;
  readonly codeVerifier?: string | undefined;
  readonly redirectURI: string;
}

/** The tokens that a provider gives for a code; null if it gives none. Not the library's own request: it reads answers of any length. */
async function tokensFor(
  { clientId, clientSecret }: Pick<ProviderConfig, 'clientId' | 'clientSecret'>,
  { code, codeVerifier, redirectURI }: BroughtCode,
  tokenEndpoint: string,
  authentication: 'basic' | 'post',
): Promise<ReturnType<typeof getOAuth2Tokens> | null> {
  const { body, headers } = await authorizationCodeRequest({
    code,
    codeVerifier,
    redirectURI,
    options: { clientId, clientSecret },
    tokenEndpoint,
    authentication,
  });
  const { authorization } = headers;
  const answer = await askProvider(tokenEndpoint, {
    form: body,
    ...(authorization !== undefined && { headers: { authorization } }),
  });
  const given = tokenAnswer.safeParse(answer);
  return given.success ? getOAuth2Tokens(given.data) : null;
}
