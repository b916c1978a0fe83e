import { late, within } from '../../runtime/within.ts';

/** A request to the facilitator, as far as a signature over it needs to know. */
export interface FacilitatorCall {
  readonly method: 'GET' | 'POST';
  /** With the port where it is not the protocol's own. */
  readonly host: string;
  /** From the root, as it is sent. */
  readonly path: string;
  readonly operation: 'verify' | 'settle' | 'supported';
}

/**
 * Makes the headers that authorize one request, such as a bearer JWT. Asked for each request, within that call's own
 * time-out. Where it throws or is late, nothing is sent, and clients are told no more than that.
 */
export type AuthorizeCall = (call: FacilitatorCall) => Promise<Readonly<Record<string, string>>>;

/**
 * The signer's headers, their names in lower case; an Error where it gave none in time. Never rejects.
 * @param endsAt by `performance.now()`
 */
export async function authorizationHeaders(
  authorize: AuthorizeCall,
  call: FacilitatorCall,
  endsAt: number,
): Promise<Readonly<Record<string, string>> | Error> {
  try {
    const headers = await within(endsAt - performance.now(), lowerCased(authorize, call));
    if (headers !== late && performance.now() < endsAt) return headers;
    return new Error('The signer of facilitator calls was late');
  } catch (error) {
    return error instanceof Error ? error : new Error('The signer of facilitator calls failed');
  }
}

async function lowerCased(authorize: AuthorizeCall, call: FacilitatorCall) {
  const headers = Object.entries(await authorize(call));
  if (headers.some(([, value]) => typeof value !== 'string')) {
    throw new TypeError('The signer of facilitator calls gave a header that is no text');
  }
  return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
}
