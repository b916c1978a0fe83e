import { authorizationCodeRequest, getOAuth2Tokens } from 'better-auth/oauth2';
import { z } from 'zod';
import type { ProviderConfig } from '../../base/config/config.ts';
import { askProvider } from '../peers/provider-answers.ts';

const tokenAnswer = z.object({
  token_type: z.string().optional(),
  access_token: z.string().optional(),
  id_token: z.string().optional(),
  scope: z.string().optional(),
});

type Tokens = ReturnType<typeof getOAuth2Tokens>;

/** What a browser brought back from a provider. */
export interface BroughtCode {
  readonly code: string;
  readonly codeVerifier?: string | undefined;
  readonly redirectURI: string;
}

/** The tokens that a provider gives for a code; null if it gives none. Not the library's own request: it reads answers of any length. */
export async function tokensFor(
  { clientId, clientSecret }: Pick<ProviderConfig, 'clientId' | 'clientSecret'>,
  { code, codeVerifier, redirectURI }: BroughtCode,
  tokenEndpoint: string,
  authentication: 'basic' | 'post',
): Promise<Tokens | null> {
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
