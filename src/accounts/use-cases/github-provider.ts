import { createAuthorizationURL, type OAuthProvider } from 'better-auth/oauth2';
import { z } from 'zod';
import type { ProviderConfig } from '../../base/config/config.ts';
import { askProvider } from '../peers/provider-answers.ts';
import { tokensFor } from './provider-tokens.ts';

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
