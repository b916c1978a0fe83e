import { createHmac } from 'node:crypto';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';
import { logSecondSecret } from '../../base/runtime/second-secret.ts';

/** What checks the values that a gateway signed. */
interface Signing {
  readonly settings: { readonly secrets: RotatingSecret };
  readonly log: OperatorLog;
}

/** A cookie's value as better-auth writes it: the text, a dot, and its HMAC-SHA-256 in base64. */
export function signedValue([secret]: RotatingSecret, text: string): string {
  return encodeURIComponent(`${text}.${createHmac('sha256', secret).update(text).digest('base64')}`);
}

/** The text of a signed cookie; undefined when the signature is not this gateway's. */
export function verifiedText(signing: Signing, value: string): string | undefined {
  const text = /^([A-Za-z0-9_-]{1,128})(?:\.|%2E)/i.exec(value)?.[1] ?? '';
  const given = decoded(value);
  return isSigned(signing, given, (secret) => decoded(signedValue([secret], text))) ? text : undefined;
}

/** A cookie's value for better-auth, which checks only with the secret in use: values that the second secret signed are signed again. */
export function valueWithSecretInUse(signing: Signing, value: string): string {
  const { secrets } = signing.settings;
  const text = secrets.length === 1 ? undefined : verifiedText(signing, value);
  return text === undefined ? value : signedValue(secrets, text);
}

/** The same for the token of a link in a mail, a JSON web token with HS256. */
export function tokenWithSecretInUse(signing: Signing, token: string): string {
  const { secrets } = signing.settings;
  const [, content, signature] = /^([\w-]{1,2000}\.[\w-]{1,2000})\.([\w-]{43})$/.exec(token) ?? [];
  if (content === undefined || signature === undefined || secrets.length === 1) return token;
  const sign = (secret: string): string => createHmac('sha256', secret).update(content).digest('base64url');
  return isSigned(signing, signature, sign) ? `${content}.${sign(secrets[0])}` : token;
}

/** Whether one of the secrets has signed it; says so in the log where it is the second one. */
function isSigned({ settings, log }: Signing, given: string, sign: (secret: string) => string): boolean {
  const index = settings.secrets.findIndex((secret) => areEqualSecrets(given, sign(secret)));
  if (index > 0) logSecondSecret(log, 'identity.secret');
  return index >= 0;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return '';
  }
}
