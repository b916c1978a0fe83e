import { type Hex, isHex32 } from '../../../base/values/primitives.ts';
import { cookieOf } from '../../../accounts/use-cases/sessions.ts';
import { isReceiptToken } from '../../../payments/use-cases/receipt-keys.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { ownCookie, ownCookieName } from '../cookies.ts';
import type { Visit } from '../visit.ts';

export const receiptsCookie = 'receipts';
/** A cookie has room for them. */
const mostOpened = 10;

interface Opened {
  readonly digest: Hex;
  readonly token: string;
}

/** The receipts that this browser has opened with their tokens, the newest first. */
export function openedReceipts(
  { site, request }: Pick<Visit, 'site' | 'request'>,
  { receiptKeys, log }: Pick<JobsContext, 'receiptKeys' | 'log'>,
): readonly Opened[] {
  const text = cookieOf(request.headers.cookie, ownCookieName(site.publicUrl(), receiptsCookie)) ?? '';
  return text
    .split('~')
    .slice(0, mostOpened)
    .flatMap((part) => {
      const [digest = '', token = ''] = part.split('.', 2);
      return isHex32(digest) && isReceiptToken(receiptKeys, digest, token, log) ? [{ digest, token }] : [];
    });
}

/** The cookie of a browser that opens one more. */
export function withReceipt(publicUrl: string, opened: readonly Opened[], one: Opened): string {
  const others = opened.filter(({ digest }) => digest !== one.digest);
  const all = [one, ...others].slice(0, mostOpened);
  return ownCookie(publicUrl, receiptsCookie, all.map(({ digest, token }) => `${digest}.${token}`).join('~'));
}
