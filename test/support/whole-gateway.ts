import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Logger, pino } from 'pino';
import { onTestFinished } from 'vitest';
import { startModelUpstream } from '../../src/devnet/model-upstream.ts';
import { oneModel } from './chat-gateway.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { startTestGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';

/** The secrets of a configuration, each a text that occurs nowhere else. */
export const configuredSecrets = {
  RUNNER_TOKEN: 'canary-of-the-token-of-the-runner-7f3a',
  SECOND_RUNNER_TOKEN: 'canary-of-the-second-token-of-the-runner-1c5e',
  RECEIPT_KEY: 'canary-of-the-key-of-receipt-tokens-91d2',
  SECOND_RECEIPT_KEY: 'canary-of-the-second-key-of-receipt-tokens-40be',
  QUOTE_KEY: 'canary-of-the-key-of-quotes-2d7b',
  SECOND_QUOTE_KEY: 'canary-of-the-second-key-of-quotes-a3c0',
  FACILITATOR_TOKEN: 'canary-of-the-token-for-the-facilitator-b86c',
  SESSION_SECRET: 'canary-of-the-secret-of-the-sessions-33f9',
  SECOND_SESSION_SECRET: 'canary-of-the-second-secret-of-the-sessions-e04d',
  OFFER_KEY: 'd4'.repeat(16) + '2b'.repeat(16),
  LOG_KEY: 'c7'.repeat(16) + '19'.repeat(16),
  UPSTREAM_KEY: 'canary-of-the-key-for-the-upstream-5a27',
  ALERT_SECRET: 'canary-of-the-secret-of-alerts-d1b8',
};

export interface WholeGateway extends TestGateway {
  readonly database: TestDatabase;
  readonly mailDir: string;
}

interface WholeOptions {
  readonly logger?: Logger;
  readonly upstreamUrl?: string;
  readonly top?: string;
  readonly tables?: string;
  /** The job prices and policies of a test gateway by default. */
  readonly jobs?: string;
}

/** A gateway with everything on: paid jobs, a runner that polls, chat, user accounts, the sealed log, alerts. */
export async function startWholeGateway(
  chain: TestGatewayOptions['chain'],
  options: WholeOptions = {},
): Promise<WholeGateway> {
  const { mailDir, ...whole } = await wholeOptions(chain, options);
  return { ...(await startTestGateway(whole)), database: whole.database, mailDir };
}

/** Its configuration, on its own database. */
export async function wholeOptions(
  chain: TestGatewayOptions['chain'],
  options: WholeOptions = {},
): Promise<TestGatewayOptions & { readonly mailDir: string }> {
  const mailDir = mkdtempSync(path.join(tmpdir(), 'tollbook-mail-'));
  onTestFinished(() => rmSync(mailDir, { recursive: true, force: true }));
  const model = await startModelUpstream({ port: 0 });
  onTestFinished(() => model.close());
  const database = await createDatabase();
  return {
    mailDir,
    database,
    chain,
    ...(options.jobs !== undefined && { jobs: options.jobs }),
    env: configuredSecrets,
    logger: options.logger ?? pino({ level: 'silent' }),
    top: `features = ["x402", "chat"]
receipt_key = ["env:RECEIPT_KEY", "env:SECOND_RECEIPT_KEY"]
quote_key = ["env:QUOTE_KEY", "env:SECOND_QUOTE_KEY"]
facilitator_token = "env:FACILITATOR_TOKEN"
${options.top ?? ''}`,
    tables: `
[[runners]]
name = "poller"
services = [1]
mode = "lease"
token = ["env:RUNNER_TOKEN", "env:SECOND_RUNNER_TOKEN"]
${oneModel(options.upstreamUrl ?? model.url, 'key = "env:UPSTREAM_KEY"')}
[identity]
secret = ["env:SESSION_SECRET", "env:SECOND_SESSION_SECRET"]
mail_dir = "${mailDir}"
[offer_receipt]
format = "jws"
key = "env:OFFER_KEY"
[log]
origin = "jobs.example/log"
key = "env:LOG_KEY"
[alerts]
webhook = "http://127.0.0.1:9/alerts"
secret = "env:ALERT_SECRET"
${options.tables ?? ''}`,
  };
}
