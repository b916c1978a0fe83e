import { late, within } from '../../../base/runtime/within.ts';

/** The parts of a request to the facilitator that a signature covers. */
export interface FacilitatorCall {
  readonly method: 'GET' | 'POST';
  /** With the port if it is not the protocol's default. */
  readonly host: string;
  /** The full path as sent. */
  readonly path: string;
  readonly operation: 'verify' | 'settle' | 'supported';
}

/**
 * Makes the headers that authorize one request, such as a bearer JWT. Called for each request, within that request's
 * time-out. If it throws or is late, nothing is sent.
 */
export type AuthorizeCall = (call: FacilitatorCall) => Promise<Readonly<Record<string, string>>>;

/**
 * The signer's headers, their names in lower case; an Error if it gave none in time. Never rejects.
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
    return new Error('The signer of facilitator calls timed out');
  } catch (error) {
    return error instanceof Error ? error : new Error('The signer of facilitator calls failed');
  }
}

async function lowerCased(authorize: AuthorizeCall, call: FacilitatorCall) {
  const headers = Object.entries(await authorize(call));
  if (headers.some(([, value]) => typeof value !== 'string')) {
    throw new TypeError('The signer of facilitator calls returned a header that is not text');
  }
  return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
}
