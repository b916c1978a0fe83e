import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { processEnvironment } from '../../base/config/environment.ts';
import { callerMessage } from '../../payments/rules/caller-signature.ts';
import { type JobId, parseJobId } from '../../base/values/job.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { fail, say } from '../../base/terminal/terminal.ts';
import { ArgumentError, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { jobCommands } from '../terminal/descriptions.ts';

const keyVariable = 'TOLLBOOK_CALLER_KEY';

/** What the gateway answers, allowed or not. */
const answer = z.object({
  allowed: z.boolean().optional(),
  enabled: z.boolean().default(true),
  mode: z.string().optional(),
  auth_mode: z.string().optional(),
  caller: z.string().optional(),
  asserted: z.boolean().optional(),
  code: z.string().optional(),
  error: z.string().optional(),
  checks: z.array(z.object({ name: z.string(), passed: z.boolean(), detail: z.string() })).default([]),
});

/** Signs a request as its caller would, and asks the gateway what it would say to it. Exit code 0 if it is allowed. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(jobCommands['auth-dry-run'], args);
  const [service = '', index = '', body = ''] = positionals;
  const job = parseJobId(service, index);
  const key = await readKey(values['key-file']);
  if (!job) throw new ArgumentError("which job? tollbook auth-dry-run SERVICE JOB 'BODY'");
  if (!/^-?\d{1,9}$/.test(values['ttl-secs']))
    throw new ArgumentError('--ttl-secs is a whole number of seconds');
  const ttlSecs = Number(values['ttl-secs']);
  if (!/^https?:\/\/\S+$/.test(values.url) || !URL.canParse(values.url))
    throw new ArgumentError('--url is the URL of the gateway, such as http://127.0.0.1:8402');
  if (!key)
    throw new ArgumentError(
      `set the caller's private key in ${keyVariable} or in --key-file FILE, never as an argument`,
    );
  const headers = await signedHeaders(key, job, body, values.nonce ?? randomUUID(), ttlSecs);
  const response = await fetch(`${values.url}/x402/jobs/${service}/${index}/auth-dry-run`, {
    method: 'POST',
    body,
    headers: { 'content-type': values['content-type'], ...headers },
  });
  const parsed = answer.safeParse(await response.json().catch(() => undefined));
  if (!parsed.success) {
    fail(`${values.url} answered ${response.status}, and not as a Tollbook does`);
    return exitCodes.notDone;
  }
  print(response.status, parsed.data);
  return parsed.data.allowed === true ? exitCodes.done : exitCodes.finding;
}

async function readKey(file: string | undefined): Promise<Hex | undefined> {
  const text = file === undefined ? processEnvironment()[keyVariable] : await readFile(file, 'utf8');
  const key = text?.trim();
  return key !== undefined && /^0x[0-9a-fA-F]{64}$/.test(key) ? (key as Hex) : undefined;
}

async function signedHeaders(key: Hex, job: JobId, body: string, nonce: string, ttlSecs: number) {
  const account = privateKeyToAccount(key);
  const expiry = Math.floor(Date.now() / 1_000) + ttlSecs;
  const message = callerMessage(job, Buffer.from(body), { nonce, expiry });
  return {
    'x-net-caller': account.address,
    'x-net-caller-sig': await account.signMessage({ message }),
    'x-net-caller-nonce': nonce,
    'x-net-caller-expiry': String(expiry),
  };
}

function print(
  status: number,
  { allowed, enabled, mode, auth_mode, caller, asserted, code, error, checks }: z.infer<typeof answer>,
): void {
  const width = Math.max(10, ...checks.map(({ name }) => name.length));
  say(
    `${mode ?? 'job'}${auth_mode ? `, ${auth_mode}` : ''}${caller ? `, caller ${caller}` : ''}${asserted ? ' (asserted)' : ''}`,
  );
  for (const check of checks)
    say(`  ${check.passed ? 'pass' : 'FAIL'}  ${check.name.padEnd(width)}  ${check.detail}`);
  const verdict = enabled ? 'allowed' : 'allowed, once the job is enabled';
  say(allowed === true ? verdict : `refused: ${status} ${code ?? ''} ${error ?? ''}`.trimEnd());
}
