import { RefusedRequestError } from './request-bodies.ts';

/** No form of a page has as many. */
const maxFields = 1_000;

/**
 * The fields of a form, or of the query that a page was asked with: each look-up passes over all of them.
 * @throws RefusedRequestError `invalid_request` if there are more than a thousand
 */
export function formFields(text: string): URLSearchParams {
  let fields = 1;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) fields += 1;
  if (fields > maxFields) throw new RefusedRequestError('invalid_request');
  return new URLSearchParams(text);
}
