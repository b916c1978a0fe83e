import type { Answer } from '../support/gateway.ts';
import { documentOf } from '../support/documented.ts';
import { configuredSecrets } from '../support/whole-gateway.ts';
import { documentedPath } from './auth-actions.ts';

export type FuzzAnswer = Pick<Answer, 'status' | 'headers' | 'text'>;
/** The faults of an answer; empty for what the document allows. */
export type Judge = (
  request: { readonly method: string; readonly path: string },
  answer: FuzzAnswer,
) => readonly string[];

const secrets = Object.values(configuredSecrets);
/** A lease carries up to 16 MiB of bodies and one more, in base64. */
const maxAnswerChars = (path: string): number => (path === '/runner/leases' ? 25 * 2 ** 20 : 2 ** 20);
/** What an answer shows when an exception, a query or a path of the machine gets into it. */
const traces: Readonly<Record<string, RegExp>> = {
  'a stack trace': /\n {4}at |\\n {4}at |node:internal|\/src\/\w+\/.*\.ts:\d|node_modules\//,
  'a query':
    /\b(?:select|insert into|update|delete from)\s+[\w".]*(?:tollbook|identity)\.|syntax error at or near/i,
  'a path of the machine': /(?:\/tmp\/|\/work\/|\/home\/|\/dev\/shm\/)/,
};

export async function judgeOf(gateway: { readonly url: string }): Promise<Judge> {
  const check = await documentOf(gateway);
  return ({ method, path }, answer) => {
    const faults: string[] = [];
    const all = `${JSON.stringify([...answer.headers])}\n${answer.text}`;
    if (secrets.some((secret) => all.includes(secret))) faults.push('a secret in the answer');
    for (const [name, pattern] of Object.entries(traces))
      if (pattern.test(all)) faults.push(`${name} in the answer`);
    if (answer.text.length > maxAnswerChars(path)) faults.push('an answer that is too large');
    // before a route is found the answer belongs to no operation
    const isRouteless = /"code":"(?:invalid_request|not_found|request_timeout|headers_too_large)"/.test(
      answer.text,
    );
    if (!isRouteless) faults.push(...check(method, documentedPath(path), answer));
    if (answer.status === 500) faults.push('status 500');
    return faults;
  };
}
