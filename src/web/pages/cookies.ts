import { cookiePrefix, isHttps } from '../../accounts/use-cases/sessions.ts';

/** The name of a cookie of the pages; over https one that browsers accept only from this host. */
export function ownCookieName(publicUrl: string, name: string): string {
  return `${cookiePrefix(publicUrl)}.${name}`;
}

/** A cookie that scripts cannot read, until the browser is closed. */
export function ownCookie(publicUrl: string, name: string, value: string): string {
  const secure = isHttps(publicUrl) ? '; Secure' : '';
  return `${ownCookieName(publicUrl, name)}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}

/** Takes a cookie of the pages from the browser. */
export function endedCookie(publicUrl: string, name: string): string {
  return `${ownCookie(publicUrl, name, '')}; Max-Age=0`;
}
