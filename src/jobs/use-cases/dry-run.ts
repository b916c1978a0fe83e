import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import type { EventType } from '../../ledger/rules/event.ts';
import { parseCaller } from '../../payments/rules/caller-signature.ts';
import type { AuthMode } from '../../base/values/job.ts';
import { readSignedPayment } from '../../payments/rules/payment.ts';
import type { Address } from '../../base/values/primitives.ts';
import { type RefusalCode, refusals } from '../../base/errors/refusal.ts';
import {
  type CallerCheck,
  type CallerPorts,
  checkCaller,
  failed,
  findDelegatedCaller,
  passed,
  type FoundCaller,
} from './authorize-caller.ts';
import { LaneFullError } from '../../ledger/store/lane.ts';
import { type Catalog, findJob, type Job } from './catalog.ts';
import type { RequestTally } from '../../ledger/store/request-tally.ts';
import { bindRequest, type BoundRequest, type OpenedRequest } from './job-request.ts';
import {
  checkSignature,
  findSignedToken,
  type SignaturePorts,
} from '../../payments/use-cases/payer-signature.ts';

export interface DryRunPorts extends CallerPorts, SignaturePorts {
  readonly catalog: Catalog;
  readonly requestTally: RequestTally;
}

export type DryRunCheck = CallerCheck<RefusalCode>;

export type DryRunVerdict =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'refused'; readonly code: RefusalCode; readonly retryAfterSecs?: number };

/** What the authorization of this request would come to. */
export interface DryRun {
  readonly verdict: DryRunVerdict;
  readonly mode: Job['mode'] | undefined;
  /** False for a job that is not sold now: what its fields would allow, an operator learns before enabling it. */
  readonly isEnabled: boolean;
  readonly authMode: AuthMode | undefined;
  readonly caller: Address | undefined;
  /** True if nothing proves that the client is this caller. */
  readonly isAsserted: boolean;
  readonly checks: readonly DryRunCheck[];
}

/**
 * Runs the paid flow's authorization of a job on a request and reports every check. Settles nothing, enqueues nothing and uses
 * no nonce; it is counted and charged to the request budget. Called for what {@link refuseDryRunByHead} lets through.
 */
export async function dryRun(context: DryRunPorts, opened: OpenedRequest, body: Buffer): Promise<DryRun> {
  const job = opened.job && findJob(context.catalog, opened.job);
  if (!job) return summed(context, withoutChecks(refused('job_not_found'), undefined));
  const request = bindRequest({ ...opened, body });
  const run = await runChecks(context, request, job);
  const event = {
    type: eventOf(run.verdict),
    data: {
      service_id: job.serviceId,
      job_index: job.jobIndex,
      ...(run.authMode ? { mode: run.authMode } : {}),
      ...(run.caller ? { caller: run.caller } : {}),
      ...(run.verdict.kind === 'refused' ? { code: run.verdict.code } : {}),
    },
  };
  try {
    await context.lane.append({ stream: request.stream, events: [event] });
    return run;
  } catch (error) {
    if (error instanceof LaneFullError) return summed(context, run);
    throw error;
  }
}

/** The dry run of a request that its headers alone refuse, so that its body need not be read; undefined for any other. */
export function refuseDryRunByHead(context: DryRunPorts, request: OpenedRequest): DryRun | undefined {
  const job = request.job && findJob(context.catalog, request.job);
  if (!job) return summed(context, withoutChecks(refused('job_not_found'), undefined));
  const retryAfterSecs = request.charge.waitSecs();
  if (retryAfterSecs === 0) return undefined;
  return summed(context, withoutChecks({ ...refused('rate_limited'), retryAfterSecs }, job));
}

/** Counted without a separate event: a full lane takes none, and clients must not fill the ledger with trials. */
function summed(context: DryRunPorts, run: DryRun): DryRun {
  context.requestTally.addRefusal(eventOf(run.verdict));
  return run;
}

function eventOf(verdict: DryRunVerdict): Extract<EventType, `dry_run_${string}`> {
  if (verdict.kind === 'allowed') return 'dry_run_allowed';
  return refusals[verdict.code].status >= 500 ? 'dry_run_error' : 'dry_run_denied';
}

function refused(code: RefusalCode): Extract<DryRunVerdict, { kind: 'refused' }> {
  return { kind: 'refused', code };
}

function withoutChecks(verdict: DryRunVerdict, job: Job | undefined): DryRun {
  return {
    verdict,
    mode: job?.mode,
    isEnabled: job?.isSold ?? false,
    authMode: job?.restriction?.authMode,
    caller: undefined,
    isAsserted: false,
    checks: [],
  };
}

async function runChecks(context: DryRunPorts, request: BoundRequest, job: Job): Promise<DryRun> {
  const { restriction } = job;
  if (!restriction) return withoutChecks(job.isSold ? { kind: 'allowed' } : refused('x402_disabled'), job);
  const isDelegated = restriction.authMode === 'delegated_caller_signature';
  const found = isDelegated
    ? findDelegatedCaller(context, request, job)
    : await payerOf(context, request, job);
  if (found.kind === 'failed') return withChecks(job, [failed('caller', found.code)]);
  const { caller, isProven } = found;
  const isAsserted = !isDelegated && !isProven;
  const checks: DryRunCheck[] = [passed('caller', detailOf(found, isDelegated))];
  for await (const check of checkCaller(context, request, job, restriction, found)) checks.push(check);
  return { ...withChecks(job, checks), caller, isAsserted };
}

function detailOf({ caller, claim, isProven }: FoundCaller, isDelegated: boolean): string {
  if (isDelegated) return `${caller}, until ${new Date((claim?.expiry ?? 0) * 1_000).toISOString()}`;
  return isProven ? `${caller} signed the payment` : `${caller}, asserted and not proven`;
}

type Payer = FoundCaller | { readonly kind: 'failed'; readonly code: RefusalCode };

/** The payer in the payment header, by its own signature; without a payment, the address in X-NET-CALLER. */
async function payerOf(context: DryRunPorts, request: BoundRequest, job: Job): Promise<Payer> {
  const { sent } = request;
  if (sent.kind === 'decoded') return provenPayer(context, sent.decoded, job);
  if (sent.kind === 'undecodable') return { kind: 'failed', code: 'payment_invalid' };
  const { caller: header } = request.callerHeaders;
  if (header === undefined) return { kind: 'failed', code: 'missing_caller' };
  const caller = parseCaller(header);
  return caller ? payer(caller, false) : { kind: 'failed', code: 'invalid_caller' };
}

function payer(caller: Address, isProven: boolean): FoundCaller {
  return { kind: 'found', caller, claim: undefined, isProven };
}

async function provenPayer(context: DryRunPorts, decoded: DecodedPayment, job: Job): Promise<Payer> {
  const option = await findSignedToken(context, decoded, job.options);
  const payment = option && readSignedPayment(decoded, option);
  if (!payment) return { kind: 'failed', code: 'payment_invalid' };
  const signed = await checkSignature(context, payment);
  switch (signed.kind) {
    case 'signed':
      return payer(payment.payer, true);
    case 'unchecked':
      // the paid flow relies on the facilitator here, which a dry run does not ask
      return payer(payment.payer, false);
    case 'not_deployed':
      return { kind: 'failed', code: 'wallet_not_deployed' };
    case 'not_signed':
      return { kind: 'failed', code: 'payment_invalid' };
    case 'unavailable':
      return { kind: 'failed', code: 'facilitator_unavailable' };
  }
}

/** The first failed check decides, as it would in the paid flow. */
function withChecks(job: Job, checks: readonly DryRunCheck[]): DryRun {
  const firstFailed = checks.find(({ result }) => result.kind === 'failed');
  const verdict: DryRunVerdict =
    firstFailed?.result.kind === 'failed' ? refused(firstFailed.result.code) : { kind: 'allowed' };
  return { ...withoutChecks(verdict, job), checks };
}
